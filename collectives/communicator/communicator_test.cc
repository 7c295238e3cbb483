#include "ringmaster/communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <latch>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "collectives/communicator/test_world.h"
#include "tests/support/rounds.h"

namespace ringmaster {
namespace {

using testing::Paths;
using testing::World;

// ---- elements of any type, as doubles ----

size_t Bytes(rm_dtype dtype) {
  static constexpr size_t kBytes[] = {1, 1, 4, 8, 2, 2, 4, 8};
  return kBytes[dtype];
}

uint16_t ToHalf(double value) {  // exact for the small integers used here
  if (value == 0) return 0;
  int exponent;
  double fraction = std::frexp(std::fabs(value), &exponent);
  int mantissa = static_cast<int>(fraction * 2048) - 1024;
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | mantissa);
}

double FromHalf(uint16_t half) {
  int exponent = half >> 10 & 31;
  double mantissa = half & 1023;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  return half & 0x8000 ? -value : value;
}

void Put(std::byte* at, rm_dtype dtype, size_t i, double value) {
  auto store = [&](auto typed) { std::memcpy(at + i * sizeof(typed), &typed, sizeof(typed)); };
  switch (dtype) {
    case RM_DTYPE_ANY_INT_:
      break;
    case RM_UINT8:
      return store(static_cast<uint8_t>(static_cast<int64_t>(value)));
    case RM_INT8:
      return store(static_cast<int8_t>(static_cast<int64_t>(value)));
    case RM_INT32:
      return store(static_cast<int32_t>(value));
    case RM_INT64:
      return store(static_cast<int64_t>(value));
    case RM_FLOAT16:
      return store(ToHalf(value));
    case RM_BFLOAT16: {
      float as_float = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &as_float, 4);
      return store(static_cast<uint16_t>(bits >> 16));
    }
    case RM_FLOAT32:
      return store(static_cast<float>(value));
    case RM_FLOAT64:
      return store(value);
  }
}

double Get(const std::byte* at, rm_dtype dtype, size_t i) {
  auto load = [&](auto typed) {
    std::memcpy(&typed, at + i * sizeof(typed), sizeof(typed));
    return typed;
  };
  switch (dtype) {
    case RM_DTYPE_ANY_INT_:
      break;
    case RM_UINT8:
      return load(uint8_t{});
    case RM_INT8:
      return load(int8_t{});
    case RM_INT32:
      return load(int32_t{});
    case RM_INT64:
      return static_cast<double>(load(int64_t{}));
    case RM_FLOAT16:
      return FromHalf(load(uint16_t{}));
    case RM_BFLOAT16: {
      uint32_t bits = static_cast<uint32_t>(load(uint16_t{})) << 16;
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    case RM_FLOAT32:
      return load(float{});
    case RM_FLOAT64:
      return load(double{});
  }
  return 0;
}

double ValueOf(rm_op op, int rank, size_t i) {
  if (op == RM_PRODUCT) return (static_cast<size_t>(rank) + i) % 3 == 0 ? 2 : 1;
  return static_cast<double>((static_cast<size_t>(rank) * 7 + i * 3) % 11) + 1;
}

double Expected(rm_op op, rm_dtype dtype, int ranks, size_t i) {
  double result = ValueOf(op, 0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    double value = ValueOf(op, rank, i);
    if (op == RM_SUM || op == RM_AVERAGE) result += value;
    if (op == RM_MIN) result = std::min(result, value);
    if (op == RM_MAX) result = std::max(result, value);
    if (op == RM_PRODUCT) result *= value;
  }
  if (op != RM_AVERAGE) return result;
  bool integer = dtype <= RM_INT64;
  return integer ? std::floor(result / ranks) : result / ranks;
}

std::vector<std::byte> InputOf(rm_op op, rm_dtype dtype, int rank, size_t count) {
  std::vector<std::byte> data(count * Bytes(dtype) + 1);  // never empty: data() is not null
  for (size_t i = 0; i < count; ++i) Put(data.data(), dtype, i, ValueOf(op, rank, i));
  return data;
}

// The first wrong element as a sentence, empty if there is none.
std::string Differs(const std::byte* data, rm_op op, rm_dtype dtype, int ranks, size_t count) {
  double tolerance = op != RM_AVERAGE || dtype <= RM_INT64 ? 0 : dtype == RM_BFLOAT16 ? 1e-2 : 1e-3;
  for (size_t i = 0; i < count; ++i) {
    double expected = Expected(op, dtype, ranks, i);
    double actual = Get(data, dtype, i);
    if (std::fabs(actual - expected) > tolerance * std::fabs(expected)) {
      return "element " + std::to_string(i) + " of " + std::to_string(count) + " is " +
             std::to_string(actual) + ", expected " + std::to_string(expected) + " (dtype " +
             std::to_string(dtype) + ", op " + std::to_string(op) + ")";
    }
  }
  return "";
}

void ExpectAllreduce(Communicator& communicator, int rank, rm_op op, rm_dtype dtype, size_t count,
                     bool in_place) {
  std::vector<std::byte> in = InputOf(op, dtype, rank, count);
  std::vector<std::byte> out = in_place ? in : std::vector<std::byte>(in.size());
  std::vector<std::byte> before = in;
  const void* source = in_place ? out.data() : in.data();
  Status status = communicator.Allreduce(source, out.data(), count, dtype, op);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(Differs(out.data(), op, dtype, communicator.size(), count), "") << "rank " << rank;
  EXPECT_EQ(in, before) << "the input was changed";
}

constexpr rm_dtype kTypes[] = {RM_UINT8,   RM_INT8,     RM_INT32,   RM_INT64,
                               RM_FLOAT16, RM_BFLOAT16, RM_FLOAT32, RM_FLOAT64};
constexpr rm_op kOps[] = {RM_SUM, RM_AVERAGE, RM_MIN, RM_MAX, RM_PRODUCT};

// ---- every world ----

class EveryWorld : public ::testing::TestWithParam<std::tuple<int, Paths>> {
 protected:
  EveryWorld() : world_(ranks(), std::get<1>(GetParam())) { world_.Build(1); }
  int ranks() const { return std::get<0>(GetParam()); }
  World world_;
};

TEST_P(EveryWorld, AllreduceIsRightForEveryTypeAndOperation) {
  world_.Run([&](int rank, Communicator& communicator) {
    for (rm_dtype dtype : kTypes) {
      for (rm_op op : kOps) {
        for (size_t count : {0, 1, 7, 1000}) {
          ExpectAllreduce(communicator, rank, op, dtype, count, count % 2 == 1);
        }
        ExpectAllreduce(communicator, rank, op, dtype, 20001, op % 2 == 0);
      }
    }
  });
}

TEST_P(EveryWorld, AllreduceIsRightAtEveryBorderOfSizes) {
  world_.Run([&](int rank, Communicator& communicator) {
    // Bytes around the limits: one shot, recursive doubling, chunks, slots; several chunks and an
    // odd rest.
    for (size_t bytes :
         {2048, 4096, 8192, 16384, 32768, 262144, 524288, 786432, 1572864, 3000000}) {
      for (size_t count : {bytes / 4 - 1, bytes / 4, bytes / 4 + 1}) {
        ExpectAllreduce(communicator, rank, RM_SUM, RM_FLOAT32, count, count % 2 == 1);
      }
    }
    ExpectAllreduce(communicator, rank, RM_MAX, RM_UINT8, 1000003, true);
    ExpectAllreduce(communicator, rank, RM_AVERAGE, RM_FLOAT16, 700001, false);
  });
}

TEST_P(EveryWorld, AllRanksGetTheSameBits) {
  constexpr size_t kCount = 100003;
  std::vector<std::vector<float>> results(static_cast<size_t>(ranks()));
  for (size_t count : {size_t{100}, kCount}) {
    world_.Run([&](int rank, Communicator& communicator) {
      std::mt19937 random(static_cast<unsigned>(rank));
      std::uniform_real_distribution<float> values(-1, 1);
      std::vector<float> data(count);
      for (float& value : data) value = values(random);
      ASSERT_TRUE(communicator.Allreduce(data.data(), data.data(), count, RM_FLOAT32, RM_SUM).ok());
      results[static_cast<size_t>(rank)] = data;
    });
    for (const auto& result : results) {
      EXPECT_EQ(std::memcmp(result.data(), results[0].data(), count * sizeof(float)), 0);
    }
  }
}

TEST_P(EveryWorld, AllgathervGivesEveryRankEveryBlock) {
  world_.Run([&](int rank, Communicator& communicator) {
    for (size_t unit : {1, 1000, 300000}) {
      std::vector<size_t> bytes;
      for (int r = 0; r < ranks(); ++r)
        bytes.push_back(r == 1 ? 0 : unit * static_cast<size_t>(r + 1) % 700000);
      size_t total = std::accumulate(bytes.begin(), bytes.end(), size_t{0});
      std::vector<uint8_t> mine(bytes[static_cast<size_t>(rank)] + 1,
                                static_cast<uint8_t>(rank + 1));
      std::vector<uint8_t> all(total + 1, 0xee);
      Status status = communicator.Allgatherv(mine.data(), all.data(), bytes);
      ASSERT_TRUE(status.ok()) << status.message();
      size_t at = 0;
      for (int r = 0; r < ranks(); ++r) {
        for (size_t i = 0; i < bytes[static_cast<size_t>(r)]; ++i, ++at) {
          ASSERT_EQ(all[at], r + 1) << "rank " << rank << ", byte " << i << " of block " << r;
        }
      }
      EXPECT_EQ(all[total], 0xee) << "written beyond the end";
    }
  });
}

TEST_P(EveryWorld, BroadcastReachesEveryRankFromEveryRoot) {
  world_.Run([&](int rank, Communicator& communicator) {
    for (int root = 0; root < ranks(); ++root) {
      for (size_t bytes : {0, 1, 16384, 16385, 1000001}) {
        std::vector<uint8_t> data(bytes + 1, static_cast<uint8_t>(rank));
        for (size_t i = 0; rank == root && i < bytes; ++i)
          data[i] = static_cast<uint8_t>(i * 13 + 5);
        ASSERT_TRUE(communicator.Broadcast(data.data(), bytes, root).ok());
        for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(data[i], static_cast<uint8_t>(i * 13 + 5));
        EXPECT_EQ(data[bytes], static_cast<uint8_t>(rank));
      }
    }
  });
}

TEST_P(EveryWorld, NobodyLeavesABarrierBeforeAllHaveCome) {
  std::atomic<int> came{0};
  world_.Run([&](int, Communicator& communicator) {
    for (int round = 1; round <= 50; ++round) {
      ++came;
      ASSERT_TRUE(communicator.Barrier().ok());
      ASSERT_GE(came.load(), round * ranks());
    }
  });
}

TEST_P(EveryWorld, MixedCallsInARowKeepTheirData) {
  world_.Run([&](int rank, Communicator& communicator) {
    std::mt19937 random(99);  // the same on all ranks
    const int calls = support::Rounds(150, 30);
    for (int i = 0; i < calls; ++i) {
      size_t count = random() % 3 == 0 ? random() % 400000 : random() % 3000;
      if (random() % 4 == 0) {
        std::vector<float> data(count + 1, rank == i % ranks() ? static_cast<float>(i) : -1);
        ASSERT_TRUE(communicator.Broadcast(data.data(), data.size() * 4, i % ranks()).ok());
        ASSERT_EQ(data.front(), i);
        ASSERT_EQ(data.back(), i);
      } else {
        ExpectAllreduce(communicator, rank, RM_SUM, RM_FLOAT32, count, i % 2 == 0);
      }
    }
  });
}

std::vector<int> WorldSizes() {
  return support::Rounds<std::vector<int>>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 5});
}

INSTANTIATE_TEST_SUITE_P(Worlds, EveryWorld,
                         ::testing::Combine(::testing::ValuesIn(WorldSizes()),
                                            ::testing::Values(Paths::kShm, Paths::kTcp,
                                                              Paths::kMixed, Paths::kPairs)),
                         [](const auto& info) {
                           return testing::PathsName(std::get<1>(info.param)) +
                                  std::to_string(std::get<0>(info.param));
                         });

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
                         ::testing::Values(Paths::kShm, Paths::kTcp, Paths::kMixed, Paths::kPairs),
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
  // The older view can't come up any more: its other member is in the newer one.
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

TEST(Create, TimeoutNamesWhoHasNotCome) {
  World world(3, Paths::kShm);
  std::unique_ptr<Communicator> communicator;
  Status status = CreateAs(world, 0, 1, std::chrono::milliseconds(50), &communicator);
  EXPECT_EQ(status.code(), RM_ERR_TIMEOUT);
  EXPECT_NE(status.message().find("rank 1, 2"), std::string::npos) << status.message();
}

TEST(Create, EndpointsOfAnotherJobAreRefused) {
  std::unique_ptr<Endpoint> ours, theirs;
  ASSERT_TRUE(Endpoint::Create({.job = "ours"}, &ours).ok());
  ASSERT_TRUE(Endpoint::Create({.job = "theirs"}, &theirs).ok());
  CommunicatorOptions options;
  options.epoch = 1;
  options.rank = 1;
  options.peers = {theirs->Address(), ours->Address()};
  std::unique_ptr<Communicator> communicator;
  Status status = Communicator::Create(ours.get(), options, &communicator);
  EXPECT_EQ(status.code(), RM_ERR_INVALID);
  EXPECT_NE(status.message().find("another job"), std::string::npos) << status.message();
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
