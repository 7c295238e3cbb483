#include "ringmaster/communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "collectives/communicator/test_values.h"
#include "collectives/communicator/test_world.h"
#include "tests/support/rounds.h"

namespace ringmaster {
namespace {

using testing::Paths;
using testing::World;

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

TEST_P(EveryWorld, AveragesDoNotOverflowOnTheWay) {
  world_.Run([&](int, Communicator& communicator) {
    std::vector<uint8_t> bytes(3000, 200);
    std::vector<int16_t> shorts(3000, -30000);
    std::vector<uint32_t> words(3000, 4000000001u);
    std::vector<uint16_t> halves(3000, 0x78e2);       // 40000
    std::vector<uint16_t> wide_halves(3000, 0x7f00);  // of bf16, near the greatest float
    const auto average = [&](void* data, rm_dtype dtype) {
      const Status status = communicator.Allreduce(data, data, 3000, dtype, RM_AVERAGE);
      EXPECT_TRUE(status.ok()) << status.message();
    };
    average(bytes.data(), RM_UINT8);
    average(shorts.data(), RM_INT16);
    average(words.data(), RM_UINT32);
    average(halves.data(), RM_FLOAT16);
    average(wide_halves.data(), RM_BFLOAT16);
    EXPECT_EQ(bytes, std::vector<uint8_t>(3000, 200));
    EXPECT_EQ(shorts, std::vector<int16_t>(3000, -30000));
    EXPECT_EQ(words, std::vector<uint32_t>(3000, 4000000001u));
    EXPECT_EQ(halves, std::vector<uint16_t>(3000, 0x78e2));
    EXPECT_EQ(wide_halves, std::vector<uint16_t>(3000, 0x7f00));
  });
}

TEST_P(EveryWorld, BoolsAreAnyAndAllAndHaveNoAverage) {
  world_.Run([&](int rank, Communicator& communicator) {
    for (size_t count : {3, 100000}) {
      std::vector<uint8_t> any(count, rank == 0), all(count, rank != 0);
      EXPECT_TRUE(communicator.Allreduce(any.data(), any.data(), count, RM_BOOL, RM_SUM).ok());
      EXPECT_TRUE(communicator.Allreduce(all.data(), all.data(), count, RM_BOOL, RM_PRODUCT).ok());
      EXPECT_EQ(any, std::vector<uint8_t>(count, 1));
      EXPECT_EQ(all, std::vector<uint8_t>(count, 0));
      EXPECT_EQ(communicator.Allreduce(any.data(), any.data(), count, RM_BOOL, RM_AVERAGE).code(),
                RM_ERR_INVALID);
    }
  });
}

TEST_P(EveryWorld, AllreduceIsRightAtEveryBorderOfSizes) {
  world_.Run([&](int rank, Communicator& communicator) {
    // Sizes in bytes around the limits of one shot, recursive doubling, chunks and slots, and some
    // of several chunks and an odd rest.
    const std::vector<size_t> borders = support::Rounds<std::vector<size_t>>(
        {2048, 4096, 8192, 16384, 32768, 262144, 524288, 786432, 1572864, 3000000},
        {2048, 16384, 262144, 786432});
    for (size_t bytes : borders) {
      for (size_t count : {bytes / 4 - 1, bytes / 4, bytes / 4 + 1}) {
        ExpectAllreduce(communicator, rank, RM_SUM, RM_FLOAT32, count, count % 2 == 1);
      }
    }
    if (support::SmallRounds()) return;
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

TEST_P(EveryWorld, ReduceScatterGivesEachRankItsBlockOfTheAllreduce) {
  world_.Run([&](int rank, Communicator& communicator) {
    const size_t self = static_cast<size_t>(rank);
    for (rm_dtype dtype : {RM_FLOAT32, RM_FLOAT16, RM_UINT8, RM_INT64}) {
      for (rm_op op : {RM_SUM, RM_AVERAGE, RM_MAX}) {
        for (size_t unit : {0, 1, 1001, 90001}) {
          std::vector<size_t> counts;  // uneven, and nothing for rank 1
          size_t begin = 0, total = 0;
          for (size_t r = 0; r < static_cast<size_t>(ranks()); ++r) {
            counts.push_back(r == 1 ? 0 : unit * (r % 3 + 1));
            if (r < self) begin += counts.back();
            total += counts.back();
          }
          std::vector<std::byte> in = InputOf(op, dtype, rank, total), before = in;
          std::vector<std::byte> out((counts[self] + 1) * Bytes(dtype), std::byte{0xee});
          Status status = communicator.ReduceScatter(in.data(), out.data(), counts, dtype, op);
          ASSERT_TRUE(status.ok()) << status.message();
          EXPECT_EQ(in, before) << "the input was changed";
          EXPECT_EQ(out.back(), std::byte{0xee}) << "written beyond the end";
          std::vector<std::byte> all = in;
          status = communicator.Allreduce(in.data(), all.data(), total, dtype, op);
          ASSERT_TRUE(status.ok()) << status.message();
          const double tolerance = dtype == RM_FLOAT32 || dtype == RM_FLOAT16 ? 1e-3 : 0;
          size_t wrong = 0;
          const auto is_right = [&](size_t i) {
            const double expected = Get(all.data(), dtype, begin + i);
            return std::fabs(Get(out.data(), dtype, i) - expected) <=
                   tolerance * std::fabs(expected);
          };
          while (wrong < counts[self] && is_right(wrong)) ++wrong;
          ASSERT_EQ(wrong, counts[self])
              << "rank " << rank << ", the element of this index is "
              << Get(out.data(), dtype, wrong) << ", dtype " << dtype << ", op " << op;
          const size_t at = begin * Bytes(dtype);
          status = communicator.ReduceScatter(in.data(), in.data() + at, counts, dtype, op);
          ASSERT_TRUE(status.ok()) << status.message();
          EXPECT_EQ(std::memcmp(in.data() + at, out.data(), counts[self] * Bytes(dtype)), 0)
              << "in place";
        }
      }
    }
  });
}

TEST_P(EveryWorld, AlltoallvBringsEveryBlockWhereItBelongs) {
  const size_t n = static_cast<size_t>(ranks());
  world_.Run([&](int rank, Communicator& communicator) {
    const size_t self = static_cast<size_t>(rank);
    for (size_t unit : {0, 1, 777, 300001}) {
      std::vector<size_t> bytes(n * n);
      for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k < n; ++k) bytes[i * n + k] = (i + 2 * k) % 3 * unit;
      }
      const auto mark = [](size_t from, size_t to) { return static_cast<uint8_t>(16 * from + to); };
      std::vector<uint8_t> send, expected;
      for (size_t k = 0; k < n; ++k) {
        send.insert(send.end(), bytes[self * n + k], mark(self, k));
        expected.insert(expected.end(), bytes[k * n + self], mark(k, self));
      }
      expected.push_back(0xee);
      std::vector<uint8_t> recv(expected.size(), 0xee);
      send.push_back(0);
      const Status status = communicator.Alltoallv(send.data(), recv.data(), bytes);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_TRUE(recv == expected) << "rank " << rank << ", unit " << unit;
    }
  });
}

// Every operation once, of sizes for each way of it.
void ExpectAllOperations(Communicator& some, int mark, bool in_place) {
  const size_t size = static_cast<size_t>(some.size());
  for (size_t count : {5, 60000}) {
    ExpectAllreduce(some, some.rank(), RM_SUM, RM_FLOAT32, count, in_place);
    ExpectAllreduce(some, some.rank(), RM_AVERAGE, RM_INT32, count, !in_place);
  }
  std::vector<int> all(size, -1);
  const std::vector<size_t> four(size, sizeof(int));
  ASSERT_TRUE(some.Allgatherv(&mark, all.data(), four).ok());
  EXPECT_EQ(all[static_cast<size_t>(some.rank())], mark);
  int root = mark;
  ASSERT_TRUE(some.Broadcast(&root, sizeof(root), some.size() - 1).ok());
  EXPECT_EQ(root, all.back());
  std::vector<int> blocks(size * 50000, mark), own(50000);
  ASSERT_TRUE(some.ReduceScatter(blocks.data(), own.data(), std::vector<size_t>(size, 50000),
                                 RM_INT32, RM_SUM)
                  .ok());
  EXPECT_EQ(own.back(), std::accumulate(all.begin(), all.end(), 0));
  std::vector<int> from(size);
  ASSERT_TRUE(some.Alltoallv(std::vector<int>(size, mark).data(), from.data(),
                             std::vector<size_t>(size * size, sizeof(int)))
                  .ok());
  EXPECT_EQ(from, all);
  ASSERT_TRUE(some.Barrier().ok());
}

TEST_P(EveryWorld, SubsetsRunWhileTheOthersDoSomethingElse) {
  const auto subset_of = [&](int rank, int step) {  // every step-th rank, beginning with this one's
    std::vector<int> ranks_in;
    for (int r = rank % step; r < ranks(); r += step) ranks_in.push_back(r);
    return ranks_in;
  };
  world_.Run([&](int rank, Communicator& communicator) {
    for (const bool has_channels : {false, true}) {
      std::unique_ptr<Communicator> second, third;
      ASSERT_TRUE(communicator.Subset(subset_of(rank, 2), has_channels ? 1 : 0, &second).ok());
      ASSERT_TRUE(communicator.Subset(subset_of(rank, 3), has_channels ? 2 : 0, &third).ok());
      EXPECT_EQ(second->rank(), rank / 2);
      for (int round = 0; round < 4; ++round) {
        for (Communicator* some : {second.get(), &communicator, third.get()}) {
          ASSERT_NO_FATAL_FAILURE(ExpectAllOperations(*some, rank, round % 2 == 0));
        }
      }
    }
    std::unique_ptr<Communicator> none;
    EXPECT_EQ(communicator.Subset(std::vector<int>{rank, rank}, 0, &none).code(), RM_ERR_INVALID);
    EXPECT_EQ(communicator.Subset(std::vector<int>{ranks()}, 0, &none).code(), RM_ERR_INVALID);
    EXPECT_EQ(communicator.Subset({}, 0, &none).code(), RM_ERR_INVALID);
  });
}

TEST(SubsetTest, OverAChannelItSharesMemoryIfAllItsRanksDo) {
  World world(4, Paths::kPairs);
  world.Build(1);
  world.Run([&](int rank, Communicator& communicator) {
    std::unique_ptr<Communicator> pod, all, streams;
    const std::vector<int> pair = {rank / 2 * 2, rank / 2 * 2 + 1};
    ASSERT_TRUE(communicator.Subset(pair, 1, &pod).ok());
    ASSERT_TRUE(communicator.Subset(std::vector<int>{0, 1, 2, 3}, 2, &all).ok());
    ASSERT_TRUE(communicator.Subset(pair, 0, &streams).ok());
    EXPECT_STREQ(pod->PathTo(1 - pod->rank()), "shm");
    EXPECT_STREQ(all->PathTo(rank ^ 1), "tcp") << "some of its ranks share no memory";
    EXPECT_STREQ(streams->PathTo(1 - pod->rank()), "tcp");
    for (Communicator* some : {pod.get(), all.get(), streams.get()})
      ASSERT_NO_FATAL_FAILURE(ExpectAllOperations(*some, rank, true));
  });
}

TEST_P(EveryWorld, BlocksOfWrongNumberAreRefusedAndTheViewLives) {
  world_.Run([&](int, Communicator& communicator) {
    float value = 1;
    const std::vector<size_t> wrong(static_cast<size_t>(ranks()) + 1, 0);
    EXPECT_EQ(communicator.ReduceScatter(&value, &value, wrong, RM_FLOAT32, RM_SUM).code(),
              RM_ERR_INVALID);
    const std::vector<size_t> also_wrong(wrong.size() * wrong.size(), 0);
    EXPECT_EQ(communicator.Alltoallv(&value, &value, also_wrong).code(), RM_ERR_INVALID);
    EXPECT_TRUE(communicator.Barrier().ok());
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
      if (random() % 5 == 0) {
        const std::vector<size_t> counts(static_cast<size_t>(ranks()), count % 9000 + 1);
        std::vector<float> data(counts[0] * counts.size(), 1.0f);
        ASSERT_TRUE(communicator
                        .ReduceScatter(data.data(), data.data() + counts[0] * rank, counts,
                                       RM_FLOAT32, RM_SUM)
                        .ok());
        ASSERT_EQ(data[counts[0] * rank], ranks());
        ASSERT_EQ(data[counts[0] * (rank + 1) - 1], ranks());
      } else if (random() % 4 == 0) {
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
                                                              Paths::kMixed, Paths::kPairs,
                                                              Paths::kEncrypted)),
                         [](const auto& info) {
                           return testing::PathsName(std::get<1>(info.param)) +
                                  std::to_string(std::get<0>(info.param));
                         });

}  // namespace
}  // namespace ringmaster
