#include "collectives/mpi/mpi_world.h"

#include <gmock/gmock.h>

#include <thread>

#include "collectives/mpi/fake_mpi.h"
#include "collectives/mpi/mpi_test_world.h"
#include "collectives/mpi/pieces.h"
#include "collectives/mpi/real_mpi.h"

namespace ringmaster::mpi {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Protocol = process_manager::Launch::Protocol;

MpiWorld::Clock::time_point In(milliseconds time) { return MpiWorld::Clock::now() + time; }

TEST(MpiWorldTest, WhatMpiDoesNotAllowIsRefusedWithTheWayOut) {
  FakeMpiJob job(2);
  MpiWorld world(job.At(0), {});
  job.SetThreads(RM_MPI_ONE_THREAD);
  EXPECT_THAT(world.Begin(0, 2).message(), HasSubstr("allows calls from one thread alone"));
  job.SetThreads(RM_MPI_SERIAL_THREADS);
  EXPECT_TRUE(world.Begin(0, 2).ok()) << "nobody else calls it";
  EXPECT_FALSE(world.parallel());
  job.SetBegun();
  EXPECT_THAT(world.Begin(0, 2).message(), HasSubstr("MPI_THREAD_MULTIPLE"));
  job.SetThreads(RM_MPI_PARALLEL_THREADS);
  EXPECT_TRUE(world.Begin(0, 2).ok());
  EXPECT_TRUE(world.parallel());
  EXPECT_EQ(world.Begin(1, 2).message(),
            "the test's MPI calls this process rank 0 of 2, and its launcher rank 1 of 2: they "
            "don't belong together");
  job.SetFinished(0);
  EXPECT_THAT(world.Begin(0, 2).message(), HasSubstr("has finalised MPI before init()"));
}

TEST(MpiWorldTest, ARankThatNeverConnectsEndsTheWaitAtTheDeadline) {
  FakeMpiJob job(2);
  MpiWorld world(job.At(0), {});
  ASSERT_TRUE(world.Begin(0, 2).ok());
  EXPECT_EQ(world.Connect(In(milliseconds(20))).code(), RM_ERR_TIMEOUT);
  EXPECT_TRUE(world.stuck());
}

TEST(MpiWorldTest, MpiIsFinalisedWhereWeHaveInitialisedItAndAllHaveCome) {
  MpiTestWorld world(2);
  EXPECT_EQ(world.at(0).Finish(In(milliseconds(20))).code(), RM_ERR_TIMEOUT);
  EXPECT_THAT(world.job.finished(), IsEmpty()) << "the other one has not come";

  MpiTestWorld together(2);
  std::thread other([&] { EXPECT_TRUE(together.at(1).Finish(In(milliseconds(30'000))).ok()); });
  EXPECT_TRUE(together.at(0).Finish(In(milliseconds(30'000))).ok());
  other.join();
  EXPECT_THAT(together.job.finished(), ElementsAre(0, 1));
  EXPECT_TRUE(together.at(0).Finish(In(milliseconds(20))).ok()) << "once is enough";
}

TEST(MpiWorldTest, AnMpiThatTheScriptHasInitialisedIsLeftToTheScript) {
  FakeMpiJob job(1);
  job.SetBegun();
  MpiWorld world(job.At(0), {});
  ASSERT_TRUE(world.Begin(0, 1).ok());
  ASSERT_TRUE(world.Connect(In(milliseconds(30'000))).ok());
  EXPECT_TRUE(world.Finish(In(milliseconds(20))).ok());
  EXPECT_THAT(job.finished(), IsEmpty());
}

TEST(RealMpiTest, TheLauncherChoosesThePluginUnlessOneIsNamed) {
  EXPECT_THAT(Candidates("", "/lib", Protocol::kPmix),
              ElementsAre("/lib/libringmaster_openmpi.so"));
  EXPECT_THAT(Candidates("", "/lib", Protocol::kPmi1), ElementsAre("/lib/libringmaster_mpich.so"));
  EXPECT_THAT(Candidates("", "", Protocol::kNone),
              ElementsAre("libringmaster_openmpi.so", "libringmaster_mpich.so"));
  EXPECT_THAT(Candidates("/x.so", "/lib", Protocol::kPmi1), ElementsAre("/x.so"));
}

TEST(RealMpiTest, WhereThereIsNoPluginTheErrorSaysWhatWasTriedAndWhatHelps) {
  std::unique_ptr<MpiApi> mpi;
  const Status none = LoadMpi({"/nowhere/a.so"}, &mpi);
  EXPECT_EQ(none.code(), RM_ERR_UNAVAILABLE);
  EXPECT_THAT(none.message(), HasSubstr("/nowhere/a.so"));
  EXPECT_THAT(none.message(), HasSubstr("RINGMASTER_MPI_LIBRARY"));
  const Status other = LoadMpi({"libm.so.6"}, &mpi);
  EXPECT_EQ(other.message(), "libm.so.6 has no rm_mpi_plugin_get");
}

TEST(PiecesTest, PiecesCoverEverythingOnce) {
  size_t at = 0;
  for (const Piece& piece : PiecesOf(10, 4)) {
    EXPECT_EQ(piece.begin, at);
    EXPECT_LE(piece.count, 4u);
    at += piece.count;
  }
  EXPECT_EQ(at, 10u);
  EXPECT_TRUE(PiecesOf(0, 4).empty());
}

TEST(PiecesTest, RoundsCoverEachBlockOnce) {
  const std::vector<size_t> blocks = {0, 9, 4};
  ASSERT_EQ(Rounds(blocks, 4), 3u);
  for (size_t block : blocks) {
    size_t at = 0;
    for (size_t round = 0; round < 3; ++round) {
      const Piece piece = PartInRound(block, round, 4);
      EXPECT_TRUE(piece.count == 0 || piece.begin == at);
      at += piece.count;
    }
    EXPECT_EQ(at, block);
  }
  EXPECT_EQ(Rounds({}, 4), 0u);
}

}  // namespace
}  // namespace ringmaster::mpi
