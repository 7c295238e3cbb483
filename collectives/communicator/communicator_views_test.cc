// How a view is built, left, aborted and followed by another one, and what wrong calls return.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "collectives/communicator/stranger.h"
#include "collectives/communicator/test_values.h"
#include "collectives/communicator/test_world.h"
#include "collectives/transport/socket.h"
#include "ringmaster/communicator.h"
#include "tests/support/reset_links.h"
#include "tests/support/rounds.h"

namespace ringmaster {
namespace {

using testing::kTestKey;
using testing::Paths;
using testing::World;

// ---- paths and arenas ----

TEST(Paths, MemoryIsSharedExactlyWhereBothWantAndCan) {
  World shm(3, Paths::kShm), tcp(3, Paths::kTcp), mixed(4, Paths::kMixed), pairs(4, Paths::kPairs);
  for (World* world : {&shm, &tcp, &mixed, &pairs}) world->Build(1);
  EXPECT_STREQ(shm.at(0).PathTo(2), "shm");
  EXPECT_STREQ(tcp.at(0).PathTo(2), "tcp");
  EXPECT_STREQ(mixed.at(0).PathTo(1), "tcp");
  EXPECT_STREQ(mixed.at(0).PathTo(2), "shm");
  EXPECT_STREQ(mixed.at(3).PathTo(2), "shm");
  EXPECT_STREQ(pairs.at(0).PathTo(1), "shm");
  EXPECT_STREQ(pairs.at(1).PathTo(2), "tcp");
  EXPECT_STREQ(pairs.at(3).PathTo(2), "shm");
}

TEST(Arena, BuffersInTheArenaAreReducedWhereTheyAre) {
  for (int ranks : {1, 2, 3, 4, 8}) {
    World world(ranks, Paths::kShm);
    world.Build(1);
    world.Run([&](int rank, Communicator& communicator) {
      constexpr size_t kCount = 500001;
      auto buffer = communicator.ArenaBuffer(2 * kCount * sizeof(float));
      ASSERT_EQ(buffer.size(), 2 * kCount * sizeof(float));
      std::byte* out = buffer.data() + kCount * sizeof(float);
      for (size_t count : {size_t{1}, size_t{5000}, kCount}) {
        for (rm_dtype dtype : {RM_FLOAT32, RM_BFLOAT16}) {
          std::vector<std::byte> in = InputOf(RM_SUM, dtype, rank, count);
          std::memcpy(buffer.data(), in.data(), count * Bytes(dtype));
          ASSERT_TRUE(communicator.Allreduce(buffer.data(), out, count, dtype, RM_SUM).ok());
          EXPECT_EQ(Differs(out, RM_SUM, dtype, ranks, count), "");
          EXPECT_EQ(std::memcmp(buffer.data(), in.data(), count * Bytes(dtype)), 0);
          ASSERT_TRUE(
              communicator.Allreduce(buffer.data(), buffer.data(), count, dtype, RM_SUM).ok());
          EXPECT_EQ(Differs(buffer.data(), RM_SUM, dtype, ranks, count), "");
        }
      }
    });
  }
}

TEST(Arena, SomeRanksMayBringOrdinaryBuffers) {
  World world(4, Paths::kShm);
  world.Build(1);
  world.Run([&](int rank, Communicator& communicator) {
    constexpr size_t kCount = 300000;
    for (int round = 0; round < 20; ++round) {
      std::vector<std::byte> in = InputOf(RM_SUM, RM_FLOAT32, rank, kCount);
      std::byte* data = in.data();
      if ((rank + round) % 3 != 0) {
        data = communicator.ArenaBuffer(kCount * sizeof(float)).data();
        std::memcpy(data, in.data(), kCount * sizeof(float));
      }
      ASSERT_TRUE(communicator.Allreduce(data, data, kCount, RM_FLOAT32, RM_SUM).ok());
      ASSERT_EQ(Differs(data, RM_SUM, RM_FLOAT32, 4, kCount), "");
    }
  });
}

TEST(Arena, BufferIsTheSameMemoryEachTimeAndEmptyWhereItCannotBe) {
  World world(2, Paths::kShm, 4 << 20);
  world.Build(1);
  auto first = world.at(0).ArenaBuffer(1000);
  auto second = world.at(0).ArenaBuffer(100000);
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(first.data(), second.data());
  EXPECT_TRUE(world.at(0).ArenaBuffer(64 << 20).empty()) << "more than the arena has";
  World mixed(3, Paths::kMixed);
  mixed.Build(1);
  EXPECT_TRUE(mixed.at(0).ArenaBuffer(1000).empty()) << "rank 1 can't map it";
}

// ---- views ----

class EveryPath : public ::testing::TestWithParam<Paths> {};
INSTANTIATE_TEST_SUITE_P(AllPaths, EveryPath,
                         ::testing::Values(Paths::kShm, Paths::kTcp, Paths::kMixed, Paths::kPairs,
                                           Paths::kEncrypted),
                         [](const auto& info) { return testing::PathsName(info.param); });

TEST_P(EveryPath, SurvivorsBuildTheNextViewAndGoOn) {
  World world(6, GetParam());
  uint64_t epoch = uint64_t{1} << 40 | 1;
  for (auto members : std::vector<std::vector<size_t>>{
           {}, {0, 1, 2, 4, 5}, {1, 2, 4}, {1, 2, 4, 0, 5}, {4, 2}, {2}}) {
    world.Build(epoch++, members);
    world.Run([&](int rank, Communicator& communicator) {
      ExpectAllreduce(communicator, rank, RM_SUM, RM_FLOAT32, 100, true);
      ExpectAllreduce(communicator, rank, RM_SUM, RM_FLOAT32, 200000, false);
    });
  }
}

TEST_P(EveryPath, AbortEndsEveryWaitOfEveryRankAtAnyMoment) {
  std::mt19937 random(7);
  const int rounds = support::Rounds(30, 10);
  for (int round = 0; round < rounds; ++round) {
    World world(4, GetParam());
    world.Build(1);
    std::latch one_is_through(1);
    std::atomic<int> done{0};
    size_t count = round % 2 == 0 ? 100 : 300000;
    unsigned wait_rounds = random() % 300;
    std::thread aborter([&] {
      one_is_through.wait();
      for (unsigned i = 0; i < wait_rounds; ++i) std::this_thread::yield();
      world.at(static_cast<size_t>(round) % 4).Abort("test");
    });
    world.Run([&](int rank, Communicator& communicator) {
      std::vector<float> data(count, 1);
      Status status;
      for (int i = 0; status.ok(); ++i) {
        status = communicator.Allreduce(data.data(), data.data(), count, RM_FLOAT32, RM_MAX);
        if (rank == 0 && i == 0) one_is_through.count_down();
      }
      EXPECT_EQ(status.code(), RM_ERR_EPOCH_MOVED) << status.message();
      EXPECT_EQ(communicator.Barrier().code(), RM_ERR_EPOCH_MOVED)
          << "a dead communicator stays dead";
      ++done;
    });
    aborter.join();
    EXPECT_EQ(done, 4);
    world.Build(2);
    world.Run([&](int rank, Communicator& communicator) {
      ExpectAllreduce(communicator, rank, RM_SUM, RM_INT32, count, true);
    });
  }
}

TEST_P(EveryPath, AbortWakesARankThatWaitsAlone) {
  World world(3, GetParam());
  world.Build(1);
  std::thread waiting([&] { EXPECT_EQ(world.at(0).Barrier().code(), RM_ERR_EPOCH_MOVED); });
  world.at(0).Abort("test");
  waiting.join();
}

TEST_P(EveryPath, LeavingInOrderAfterTheLastOperationDisturbsNobody) {
  for (uint64_t epoch = 1; epoch <= 30; ++epoch) {
    World world(4, GetParam());
    world.Build(epoch);
    size_t count = epoch % 2 == 0 ? 10 : 200000;
    world.Run([&](int rank, Communicator& communicator) {
      ExpectAllreduce(communicator, rank, RM_SUM, RM_FLOAT32, count, true);
      world.Close(static_cast<size_t>(rank));
    });
  }
}

TEST_P(EveryPath, AnOperationAfterAPeerHasLeftEnds) {
  World world(3, GetParam());
  world.Build(1);
  world.Close(1);
  world.Run([&](int, Communicator& communicator) {
    EXPECT_EQ(communicator.Barrier().code(), RM_ERR_EPOCH_MOVED);
  });
}

// For a rank that waits for its peers in another way, between two calls.
TEST_P(EveryPath, ARankThatLooksSeesThatAPeerHasLeftOrThatTheViewWasAborted) {
  World world(3, GetParam());
  world.Build(1);
  world.Run([&](int, Communicator& communicator) {
    EXPECT_TRUE(communicator.Barrier().ok());
    EXPECT_TRUE(communicator.CheckPeers().ok());
  });
  world.Close(1);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  Status status;
  while (status.ok() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    status = world.at(0).CheckPeers();
  }
  EXPECT_EQ(status.code(), RM_ERR_EPOCH_MOVED) << status.message();
  world.at(2).Abort("the test wants it");
  EXPECT_EQ(world.at(2).CheckPeers().code(), RM_ERR_EPOCH_MOVED);
}

TEST_P(EveryPath, LiveRanksThatGaveTheViewUpAreNotSuspected) {
  World world(3, GetParam());
  std::vector<std::unique_ptr<Communicator>> communicators(3);
  std::atomic<int> suspects{0};
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      CommunicatorOptions options = world.OptionsFor(rank, 1);
      options.on_suspect = [&](int, const std::string&) { ++suspects; };
      ASSERT_TRUE(Communicator::Create(world.endpoint(rank), options, &communicators[rank]).ok());
      if (rank == 2) communicators[rank]->Abort("test");
      EXPECT_EQ(communicators[rank]->Barrier().code(), RM_ERR_EPOCH_MOVED);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(suspects, 0);
}

class OverTcp : public ::testing::TestWithParam<Paths> {};

// Only the ranks at the ends of a link know that it broke; the others see a rank that has given up.
TEST_P(OverTcp, ALinkThatBreaksBetweenLiveRanksIsReportedAndNobodyIsSuspected) {
  World world(2, GetParam());
  std::vector<std::unique_ptr<Communicator>> communicators(2);
  std::atomic<int> suspects{0};
  std::atomic<int> links{0};
  std::barrier<> connected(3), broken(3);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      CommunicatorOptions options = world.OptionsFor(rank, 1);
      options.on_suspect = [&](int, const std::string&) { ++suspects; };
      options.on_broken_link = [&](int peer, const std::string&) {
        EXPECT_EQ(peer, 1 - static_cast<int>(rank));
        ++links;
      };
      EXPECT_TRUE(Communicator::Create(world.endpoint(rank), options, &communicators[rank]).ok());
      EXPECT_TRUE(communicators[rank]->Barrier().ok());
      connected.arrive_and_wait();
      broken.arrive_and_wait();
      EXPECT_EQ(communicators[rank]->Barrier().code(), RM_ERR_EPOCH_MOVED);
    });
  }
  connected.arrive_and_wait();
  EXPECT_GE(support::ResetTcpConnections(), 1);
  broken.arrive_and_wait();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(suspects, 0);
  EXPECT_GE(links, 1) << "who sees it second may find that the first has given up";
}

INSTANTIATE_TEST_SUITE_P(Tcp, OverTcp, ::testing::Values(Paths::kTcp, Paths::kEncrypted),
                         [](const auto& info) { return PathsName(info.param); });

// ---- epochs ----

Status CreateAs(World& world, size_t rank, uint64_t epoch, std::chrono::milliseconds timeout,
                std::unique_ptr<Communicator>* out, std::stop_token stop = {}) {
  CommunicatorOptions options = world.OptionsFor(rank, epoch);
  options.connect_timeout = timeout;
  options.stop = stop;
  return Communicator::Create(world.endpoint(rank), options, out);
}

TEST_P(EveryPath, StaleEpochIsRefusedWithTheNewerOne) {
  World world(2, GetParam());
  std::unique_ptr<Communicator> newer, stale;
  std::thread ahead([&] {
    EXPECT_EQ(CreateAs(world, 0, 9, std::chrono::milliseconds(500), &newer).code(), RM_ERR_TIMEOUT);
  });
  ahead.join();
  Status status = CreateAs(world, 1, 8, std::chrono::seconds(20), &stale);
  EXPECT_EQ(status.code(), RM_ERR_EPOCH_MOVED);
  EXPECT_NE(status.message().find("epoch 9"), std::string::npos) << status.message();
}

TEST_P(EveryPath, NewerEpochIsParkedUntilItsViewIsBuilt) {
  World world(2, GetParam());
  std::unique_ptr<Communicator> early, late;
  std::thread ahead(
      [&] { EXPECT_TRUE(CreateAs(world, 1, 9, std::chrono::seconds(20), &early).ok()); });
  // The older view can't be built any more: its other member is in the newer one.
  EXPECT_EQ(CreateAs(world, 0, 8, std::chrono::seconds(20), &late).code(), RM_ERR_EPOCH_MOVED);
  EXPECT_TRUE(CreateAs(world, 0, 9, std::chrono::seconds(20), &late).ok());
  ahead.join();
}

TEST(Create, StopEndsItWhileAMemberIsMissing) {
  World world(2, Paths::kShm);
  std::stop_source source;
  std::unique_ptr<Communicator> communicator;
  std::thread creating([&] {
    Status status =
        CreateAs(world, 0, 1, std::chrono::seconds(60), &communicator, source.get_token());
    EXPECT_EQ(status.code(), RM_ERR_EPOCH_MOVED) << status.message();
  });
  source.request_stop();
  creating.join();
}

// The stop comes at a little later a moment each time, so that it meets every part of Create, also
// the one in which the communicator is already the caller's.
TEST(Create, AStopThatComesAsItReturnsHarmsNobody) {
  std::atomic<uint64_t> begun = 0, stopped = 0;
  std::vector<std::stop_source> sources(support::Rounds(2'000, 500));
  std::thread stopping([&] {
    for (uint64_t round = 1; round <= sources.size(); ++round) {
      while (begun < round) std::this_thread::yield();
      for (volatile uint64_t wait = round % 4096; wait > 0;) wait = wait - 1;
      sources[round - 1].request_stop();
      stopped = round;
    }
  });
  for (uint64_t round = 1; round <= sources.size(); ++round) {
    CommunicatorOptions options;
    options.epoch = round;
    options.peers.resize(1);
    options.stop = sources[round - 1].get_token();
    std::unique_ptr<Communicator> communicator;
    begun = round;
    const Status status = Communicator::Create(nullptr, options, &communicator);
    EXPECT_EQ(status.ok(), communicator != nullptr);
    while (stopped < round) std::this_thread::yield();
  }
  stopping.join();
}

TEST(Create, TimeoutNamesWhoHasNotCome) {
  World world(3, Paths::kShm);
  std::unique_ptr<Communicator> communicator;
  Status status = CreateAs(world, 0, 1, std::chrono::milliseconds(50), &communicator);
  EXPECT_EQ(status.code(), RM_ERR_TIMEOUT);
  EXPECT_NE(status.message().find("rank 1, 2"), std::string::npos) << status.message();
}

// What rank 1 gets when the process at rank 0's address has the options `theirs`.
Status CreateBeside(const Endpoint::Options& ours, const Endpoint::Options& theirs) {
  std::unique_ptr<Endpoint> own, other;
  EXPECT_TRUE(Endpoint::Create(ours, &own).ok());
  EXPECT_TRUE(Endpoint::Create(theirs, &other).ok());
  CommunicatorOptions options;
  options.epoch = 1;
  options.rank = 1;
  options.peers = {other->Address(), own->Address()};
  options.connect_timeout = std::chrono::milliseconds(500);
  std::unique_ptr<Communicator> communicator;
  return Communicator::Create(own.get(), options, &communicator);
}

TEST(Create, EndpointsOfAnotherJobAreRefused) {
  for (const char* key : {"", kTestKey}) {
    Status status = CreateBeside({.job = "ours", .key = key}, {.job = "theirs", .key = key});
    EXPECT_EQ(status.code(), RM_ERR_INVALID);
    EXPECT_NE(status.message().find("another job"), std::string::npos) << status.message();
  }
}

TEST(Create, WhoDoesNotProveTheKeyIsNotBelieved) {
  const std::string other(32, 'x');
  for (const std::string& key : {std::string(), other}) {
    Status status = CreateBeside({.job = "job", .key = kTestKey}, {.job = "job", .key = key});
    EXPECT_EQ(status.code(), RM_ERR_TIMEOUT) << "it may still be that the member comes";
    EXPECT_NE(status.message().find("does not prove"), std::string::npos) << status.message();
  }
}

TEST(Create, AWorkerWithoutTheKeyHearsThatOthersHaveOne) {
  Status status = CreateBeside({.job = "job"}, {.job = "job", .key = kTestKey});
  EXPECT_EQ(status.code(), RM_ERR_INVALID);
  EXPECT_NE(status.message().find("ring's key"), std::string::npos) << status.message();
}

TEST(Create, WithoutAKeyAnywhereTheRingIsBuiltToo) {
  World world(3, Paths::kMixed, 0, "");
  world.Build(1);
  world.Run(
      [](int rank, Communicator& c) { ExpectAllreduce(c, rank, RM_SUM, RM_INT32, 10, true); });
}

TEST(Strangers, WhoKnowJobAndEpochChangeNothing) {
  for (Paths paths : {Paths::kShm, Paths::kTcp}) {
    World world(3, paths);
    for (uint64_t epoch = 1; epoch < 6; ++epoch) {
      communicator::Stranger stranger(world.OptionsFor(0, epoch).peers, "test-job", epoch);
      stranger.AwaitCalls(5);  // these Hellos come before the view is begun
      world.Build(epoch);
      world.Run([](int rank, Communicator& c) {
        for (int i = 0; i < 20; ++i) ExpectAllreduce(c, rank, RM_SUM, RM_INT32, 1000, true);
      });
    }
  }
}

TEST(Create, WithoutAKeyNothingIsSentUnencryptedInsteadOfEncrypted) {
  Endpoint::Options options;
  options.job = "job";
  options.encrypt = true;
  const Status status = CreateBeside(options, options);
  EXPECT_EQ(status.code(), RM_ERR_INVALID);
  EXPECT_NE(status.message().find("no ring key"), std::string::npos) << status.message();
}

TEST(Create, DeadMemberIsSuspectedAtOnce) {
  for (size_t victim : {size_t{0}, size_t{2}}) {
    World world(3, Paths::kShm);
    CommunicatorOptions options = world.OptionsFor(1, 1);
    int suspect = -1;
    options.on_suspect = [&](int rank, const std::string&) { suspect = rank; };
    options.peers[victim] = {"127.0.0.1:1", "rm-nobody", 0};
    std::unique_ptr<Communicator> communicator;
    EXPECT_EQ(Communicator::Create(world.endpoint(1), options, &communicator).code(),
              RM_ERR_EPOCH_MOVED);
    EXPECT_EQ(suspect, static_cast<int>(victim));
  }
}

// As a process does that gets no turn on its machine: the kernel takes the connection, and nobody
// answers.
class Silent {
 public:
  Silent() { EXPECT_TRUE(transport::ListenTcp("127.0.0.1:0", &fd_, &address_).ok()); }
  PeerEndpoint Address() const { return {address_, "", 0}; }

 private:
  transport::UniqueFd fd_;
  std::string address_;
};

TEST(Create, ASilentMemberIsSuspectedAfterAsLongAsItWasGivenToAnswer) {
  for (const bool patient : {false, true}) {
    World world(2, Paths::kTcp);
    const Silent silent;
    CommunicatorOptions options = world.OptionsFor(0, 1);
    int suspect = -1;
    options.on_suspect = [&](int rank, const std::string&) { suspect = rank; };
    options.peers[1] = silent.Address();
    options.probe_limit = patient ? std::chrono::seconds(60) : std::chrono::milliseconds(20);
    options.connect_timeout = patient ? std::chrono::milliseconds(300) : std::chrono::seconds(60);
    std::unique_ptr<Communicator> communicator;
    EXPECT_EQ(Communicator::Create(world.endpoint(0), options, &communicator).code(),
              patient ? RM_ERR_TIMEOUT : RM_ERR_EPOCH_MOVED);
    EXPECT_EQ(suspect, patient ? -1 : 1);
  }
}

// ---- wrong use ----

TEST(WrongUse, GivesOneClearErrorAndTheCommunicatorLives) {
  World world(2, Paths::kShm);
  world.Build(1);
  float data[4] = {};
  Communicator& communicator = world.at(0);
  EXPECT_EQ(communicator.Allreduce(data, data, 4, static_cast<rm_dtype>(99), RM_SUM).code(),
            RM_ERR_INVALID);
  EXPECT_EQ(communicator.Allreduce(data, data, 4, RM_FLOAT32, static_cast<rm_op>(99)).code(),
            RM_ERR_INVALID);
  EXPECT_EQ(communicator.Allreduce(nullptr, data, 4, RM_FLOAT32, RM_SUM).code(), RM_ERR_INVALID);
  EXPECT_EQ(communicator.Broadcast(data, 16, 2).code(), RM_ERR_INVALID);
  size_t one[] = {4};
  EXPECT_EQ(communicator.Allgatherv(data, data, one).code(), RM_ERR_INVALID);
  world.Run(
      [](int rank, Communicator& c) { ExpectAllreduce(c, rank, RM_SUM, RM_INT32, 10, true); });
}

TEST(WrongUse, DifferentSizesOverTcpEndInsteadOfHanging) {
  World world(2, Paths::kTcp);
  world.Build(1);
  world.Run([](int rank, Communicator& communicator) {
    std::vector<float> data(2000, 1);
    Status status = communicator.Allreduce(data.data(), data.data(), rank == 0 ? 1000 : 2000,
                                           RM_FLOAT32, RM_SUM);
    EXPECT_FALSE(status.ok());
  });
}

}  // namespace
}  // namespace ringmaster
