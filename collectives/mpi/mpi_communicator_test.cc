#include "collectives/mpi/mpi_communicator.h"

#include <gmock/gmock.h>

#include <cstring>
#include <future>
#include <latch>

#include "collectives/element/element.h"
#include "collectives/mpi/mpi_test_world.h"
#include "collectives/mpi/pieces.h"

namespace ringmaster::mpi {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr rm_op kOps[] = {RM_SUM, RM_AVERAGE, RM_MIN, RM_MAX, RM_PRODUCT};

// `count` small numbers of this type, others on each rank.
std::vector<std::byte> Numbers(int rank, size_t count, rm_dtype dtype) {
  std::vector<std::byte> out(count * element::Size(dtype));
  const size_t size = element::Size(dtype);
  for (size_t i = 0; i < count; ++i) {
    std::byte* const at = out.data() + i * size;
    element::FillIdentity(at, 1, dtype, RM_PRODUCT);  // 1
    if (dtype != RM_BOOL)
      element::CopyScaled(at, at, 1, dtype,
                          static_cast<double>((i + static_cast<size_t>(rank)) % 4 + 1));
    if (dtype == RM_BOOL && (i + static_cast<size_t>(rank)) % 3 == 0) *at = std::byte{0};
  }
  return out;
}

// Runs the call on both communicators, and compares what they give out.
template <typename Call>
void ExpectAlike(Communicator& host, Communicator& mpi, size_t bytes, const std::string& what,
                 const Call& call) {
  std::vector<std::byte> theirs(bytes), ours(bytes);
  const Status there = call(host, theirs.data()), here = call(mpi, ours.data());
  ASSERT_TRUE(there.ok()) << what << ": " << there.message();
  ASSERT_TRUE(here.ok()) << what << ": " << here.message();
  EXPECT_EQ(theirs, ours) << what;
}

void ReduceEverything(int rank, Communicator& host, Communicator& mpi) {
  constexpr size_t kCount = 100;
  for (int type = 0; type < element::kTypes; ++type) {
    const auto dtype = static_cast<rm_dtype>(type);
    for (rm_op op : kOps) {
      if (dtype == RM_BOOL && op == RM_AVERAGE) continue;
      const std::string what = std::string(element::Name(dtype)) + " " + element::OpName(op);
      const auto in = Numbers(rank, kCount, dtype);
      ExpectAlike(host, mpi, in.size(), what, [&](Communicator& on, void* out) {
        return on.Allreduce(in.data(), out, kCount, dtype, op);
      });
      ExpectAlike(host, mpi, in.size(), what + " in place", [&](Communicator& on, void* out) {
        std::memcpy(out, in.data(), in.size());
        return on.Allreduce(out, out, kCount, dtype, op);
      });
      const std::vector<size_t> counts = {37, 0, 63};
      const size_t own = counts[static_cast<size_t>(rank)] * element::Size(dtype);
      ExpectAlike(host, mpi, own, what + " scattered", [&](Communicator& on, void* out) {
        return on.ReduceScatter(in.data(), out, counts, dtype, op);
      });
    }
  }
}

void MoveEverything(int rank, Communicator& host, Communicator& mpi) {
  const auto in = Numbers(rank, 900, RM_UINT8);
  const std::vector<size_t> blocks = {300, 0, 77};
  ExpectAlike(host, mpi, Total(blocks), "allgather",
              [&](Communicator& on, void* out) { return on.Allgatherv(in.data(), out, blocks); });
  for (int root = 0; root < 3; ++root) {
    ExpectAlike(host, mpi, 900, "broadcast", [&](Communicator& on, void* out) {
      if (rank == root) std::memcpy(out, in.data(), 900);
      return on.Broadcast(out, 900, root);
    });
  }
  const std::vector<size_t> matrix = {0, 200, 3, 1, 50, 0, 100, 100, 300};
  size_t received = 0;
  for (size_t from = 0; from < 3; ++from) received += matrix[from * 3 + static_cast<size_t>(rank)];
  ExpectAlike(host, mpi, received, "alltoall",
              [&](Communicator& on, void* out) { return on.Alltoallv(in.data(), out, matrix); });
  EXPECT_TRUE(mpi.Barrier().ok());
}

TEST(MpiCommunicatorTest, EverythingHasTheResultsOfTheHostsCommunicator) {
  MpiTestWorld world(3);
  world.Run([](int rank, Communicator& host, MpiCommunicator& mpi) {
    ReduceEverything(rank, host, mpi);
    MoveEverything(rank, host, mpi);
  });
}

TEST(MpiCommunicatorTest, WhatIsTooMuchForOneCallMovesInPieces) {
  MpiTestWorld world(3, {.bytes = 48});
  world.Run([](int rank, Communicator& host, MpiCommunicator& mpi) {
    ReduceEverything(rank, host, mpi);
    MoveEverything(rank, host, mpi);
  });
  EXPECT_LE(world.job.largest(), 48u);
}

TEST(MpiCommunicatorTest, SizesThatRanksTellEachOtherDontGoByMpi) {
  MpiTestWorld world(2);
  world.Run([](int rank, Communicator&, MpiCommunicator& mpi) {
    const std::vector<uint64_t> mine = {static_cast<uint64_t>(rank), 7};
    std::vector<uint64_t> all(4);
    const std::vector<size_t> bytes(2, 16);
    EXPECT_TRUE(mpi.Allgatherv(mine.data(), all.data(), bytes).ok());
    EXPECT_THAT(all, ElementsAre(0, 7, 1, 7));
  });
  EXPECT_THAT(world.job.calls(0), Not(Contains("allgatherv")));
}

TEST(MpiCommunicatorTest, SomeOfTheRanksHaveACommunicatorOfTheirOwnWhichIsFreed) {
  MpiTestWorld world(3);
  world.Run([](int rank, Communicator&, MpiCommunicator& mpi) {
    EXPECT_STREQ(mpi.PathTo(1), "mpi");
    EXPECT_STREQ(mpi.PathTo(3), "");
    if (rank == 1) return;
    std::unique_ptr<Communicator> some;
    ASSERT_TRUE(mpi.Subset(std::vector<int>{0, 2}, 1, &some).ok());
    float value = static_cast<float>(rank + 1);
    EXPECT_TRUE(some->Allreduce(&value, &value, 1, RM_FLOAT32, RM_SUM).ok());
    EXPECT_EQ(value, 4.0f);
  });
  EXPECT_EQ(world.job.freed(), 2);
}

TEST(MpiCommunicatorTest, ADeadPeerEndsTheWaitOfTheOthersAndNothingIsBegunAnyMore) {
  MpiTestWorld world(3);
  std::latch begun(2);
  world.Run([&](int rank, Communicator&, MpiCommunicator& mpi) {
    std::vector<float> data(1000, 1.0f);
    if (rank == 2) {
      world.job.AwaitBegun(3 + 2);
      world.hosts.Close(2);
      return;
    }
    const Status status = mpi.Allreduce(data.data(), data.data(), 1000, RM_FLOAT32, RM_SUM);
    EXPECT_EQ(status.code(), RM_ERR_EPOCH_MOVED) << status.message();
    const int calls = world.job.begun();
    const Status later = mpi.Barrier();
    EXPECT_EQ(later.code(), RM_ERR_INTERNAL);
    EXPECT_THAT(later.message(), HasSubstr("MPI can't be used any more"));
    EXPECT_LE(world.job.begun(), calls);
    begun.arrive_and_wait();  // the view lives until both have seen the death by themselves
  });
}

TEST(MpiCommunicatorTest, AnAbortFromAnotherThreadEndsTheWait) {
  MpiTestWorld world(2);
  world.Run([&](int rank, Communicator& host, MpiCommunicator& mpi) {
    if (rank == 1) return;
    auto waits = std::async(std::launch::async, [&] { return mpi.Barrier(); });
    world.job.AwaitBegun(2 + 1);
    host.Abort("the test wants it");
    const Status status = waits.get();
    EXPECT_EQ(status.code(), RM_ERR_EPOCH_MOVED);
    EXPECT_THAT(status.message(), HasSubstr("the test wants it"));
  });
}

TEST(MpiCommunicatorTest, APeerThatLivesAndNeverComesEndsTheWaitAtTheLimit) {
  MpiTestWorld world(2, {.collective = milliseconds(50)});
  world.Run([&](int rank, Communicator&, MpiCommunicator& mpi) {
    if (rank == 1) return;
    const Status status = mpi.Barrier();
    EXPECT_EQ(status.code(), RM_ERR_INTERNAL);
    EXPECT_THAT(status.message(), HasSubstr("MPI_Ibarrier was not done after"));
  });
}

TEST(MpiCommunicatorTest, AnErrorOfMpiIsToldUnlessADeadPeerIsTheReason) {
  MpiTestWorld world(2, {.explain = milliseconds(20)});
  world.job.FailAt(0, 15);
  world.Run([&](int rank, Communicator&, MpiCommunicator& mpi) {
    if (rank == 1) return;
    const Status status = mpi.Barrier();
    EXPECT_EQ(status.code(), RM_ERR_INTERNAL);
    EXPECT_EQ(status.message(), "MPI_Ibarrier: the test's MPI says error 15");
  });
  MpiTestWorld other(2);
  other.job.FailAt(0, 15);
  other.Run([&](int rank, Communicator&, MpiCommunicator& mpi) {
    if (rank == 1) return other.hosts.Close(1);
    EXPECT_EQ(mpi.Barrier().code(), RM_ERR_EPOCH_MOVED);
  });
}

TEST(MpiCommunicatorTest, ADeadPeerEndsTheMakingOfACommunicatorOfSomeRanks) {
  MpiTestWorld world(3);
  world.job.Hold();
  world.Run([&](int rank, Communicator&, MpiCommunicator& mpi) {
    if (rank == 2) {
      world.job.AwaitBegun(3 + 2);
      world.hosts.Close(2);
      return;
    }
    std::unique_ptr<Communicator> some;
    EXPECT_EQ(mpi.Subset(std::vector<int>{0, 1}, 0, &some).code(), RM_ERR_EPOCH_MOVED);
    EXPECT_THAT(mpi.Barrier().message(), HasSubstr("MPI can't be used any more"));
  });
}

TEST(MpiCommunicatorTest, AfterTheScriptHasFinalisedMpiACallSaysSo) {
  MpiTestWorld world(2);
  for (int rank : {0, 1}) world.job.SetFinished(rank);
  world.Run([&](int, Communicator&, MpiCommunicator& mpi) {
    const Status status = mpi.Barrier();
    EXPECT_EQ(status.code(), RM_ERR_INTERNAL);
    EXPECT_THAT(status.message(), HasSubstr("the script has finalised MPI"));
  });
}

}  // namespace
}  // namespace ringmaster::mpi
