#include "collectives/engine/adasum.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"

namespace ringmaster::engine {
namespace {

using ::testing::HasSubstr;

using Vector = std::vector<double>;

double Product(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Adasum of two whole vectors, written as in the formula.
Vector Pair(const Vector& a, const Vector& b) {
  const double common = Product(a, b), aa = Product(a, a), bb = Product(b, b);
  Vector sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    sum[i] =
        (aa == 0 ? 1 : 1 - common / (2 * aa)) * a[i] + (bb == 0 ? 1 : 1 - common / (2 * bb)) * b[i];
  }
  return sum;
}

Vector Adasum(std::vector<Vector> level) {
  while (level.size() > 1) {
    std::vector<Vector> above;
    for (size_t i = 0; i < level.size(); i += 2) {
      above.push_back(i + 1 < level.size() ? Pair(level[i], level[i + 1]) : level[i]);
    }
    level = above;
  }
  return level.front();
}

std::vector<float> VectorOf(int id, size_t count) {
  std::mt19937 random(static_cast<unsigned>(id) + 1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random) + 1;
  return values;
}

Vector ExpectedOf(const std::vector<int>& ids, size_t count) {
  std::vector<Vector> vectors;
  for (int id : ids) {
    const auto floats = VectorOf(id, count);
    vectors.emplace_back(floats.begin(), floats.end());
  }
  return Adasum(vectors);
}

Request AdasumOf(size_t count) {
  return {"x", Kind::kAllreduce, RM_FLOAT32, RM_ADASUM, "", count, 1, 1};
}

void ExpectNear(const std::vector<float>& values, const Vector& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], 1e-4 * (1 + std::fabs(expected[i]))) << "element " << i;
  }
}

// The sizes are: more elements than a block has, fewer elements than ranks, and none.
TEST(AdasumTest, AnyNumberOfRanksGetsWhatTheFormulaSays) {
  for (int ranks : {1, 2, 3, 4, 5}) {
    TestWorld world(ranks);
    std::vector<int> all;
    for (int id = 0; id < ranks; ++id) all.push_back(id);
    world.Install(all);
    world.Enter(all);
    for (size_t count : {size_t{7001}, size_t{3}, size_t{0}}) {
      std::vector<std::vector<float>> results(ranks);
      OnEach(&world, all, [&](TestWorker& w) {
        auto& data = results[w.id] = VectorOf(w.id, count);
        const Status status = Await(w.Ask(AdasumOf(count), data.data(), data.data()));
        EXPECT_TRUE(status.ok()) << status.message();
      });
      ExpectNear(results[0], ExpectedOf(all, count));
      for (const auto& result : results) EXPECT_EQ(result, results[0]) << "the same bits";
    }
  }
}

TEST(AdasumTest, EqualVectorsAreAveragedAndOnesAtRightAnglesAreAdded) {
  const float a[] = {3, 0}, b[] = {0, 4}, nothing[] = {0, 0};
  const auto combined = [](const float* one, const float* other) {
    const void* const slices[] = {one, other};
    const auto weights = AdasumWeights(AdasumProducts(slices, 2, RM_FLOAT32), 2);
    std::vector<float> out(2);
    AddWeighted(slices, weights, 2, RM_FLOAT32, out.data());
    return out;
  };
  EXPECT_EQ(combined(a, a), (std::vector<float>{3, 0}));
  EXPECT_EQ(combined(a, b), (std::vector<float>{3, 4}));
  EXPECT_EQ(combined(a, nothing), (std::vector<float>{3, 0}));
}

TEST(AdasumTest, HalvesAreCombinedInDoublePrecision) {
  const std::vector<float> ones(2000, 1.5f);
  for (rm_dtype dtype : {RM_FLOAT16, RM_BFLOAT16}) {
    std::vector<uint16_t> halves(ones.size()), out(ones.size());
    element::Narrow(ones.data(), halves.data(), ones.size(), dtype);
    const void* const slices[] = {halves.data(), halves.data(), halves.data()};
    const auto products = AdasumProducts(slices, halves.size(), dtype);
    EXPECT_DOUBLE_EQ(products[1], 2000 * 1.5 * 1.5);
    AddWeighted(slices, AdasumWeights(products, 3), halves.size(), dtype, out.data());
    EXPECT_EQ(out, halves) << "of equal vectors it is their average, whatever their number";
  }
}

TEST(AdasumTest, ScalesApplyBeforeAndAfter) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  OnEach(&world, {0, 1}, [&](TestWorker& w) {
    std::vector<float> data = {w.id == 0 ? 1.0f : 0.0f, w.id == 1 ? 1.0f : 0.0f};
    Request request = AdasumOf(2);
    request.prescale = 3;
    request.postscale = 2;
    EXPECT_TRUE(Await(w.Ask(request, data.data(), data.data())).ok());
    EXPECT_EQ(data, (std::vector<float>{6, 6}));
  });
}

TEST(AdasumTest, ARankThatHasJoinedAddsNothing) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
    if (w.id < 2) {
      auto data = VectorOf(w.id, 10);
      EXPECT_TRUE(Await(w.Ask(AdasumOf(10), data.data(), data.data())).ok());
      ExpectNear(data, ExpectedOf({0, 1}, 10));
    }
    EXPECT_GE(Join(w), 0);
  });
}

// Many groups follow each other without a pause: the next group of a fast rank must not overwrite
// what a slower rank still reads.
TEST(AdasumTest, GroupsInARowKeepTheirData) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  OnEach(&world, {0, 1}, [&](TestWorker& w) {
    for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
      std::vector<float> own(2, 0.0f), own_sum(2), same(3, 1.0f), same_sum(3);
      own[static_cast<size_t>(w.id)] = 2;
      Request first = AdasumOf(2), second = AdasumOf(3);
      first.name = "a";
      second.name = "b";
      first.group = second.group = GroupOf({"a", "b"});
      const std::shared_ptr<Operation> group[] = {
          std::make_shared<Operation>(first, own.data(), own_sum.data()),
          std::make_shared<Operation>(second, same.data(), same_sum.data())};
      ASSERT_TRUE(w.engine->Submit(std::span(group)).ok());
      for (const auto& one : group) ASSERT_TRUE(Await(one).ok()) << one->status().message();
      EXPECT_EQ(own_sum, (std::vector<float>{2, 2})) << "turn " << i << ", worker " << w.id;
      EXPECT_EQ(same_sum, (std::vector<float>{1, 1, 1})) << "turn " << i << ", worker " << w.id;
    }
  });
}

// At whichever call a worker dies, all survivors have the same result: that of all workers or that
// of the survivors.
TEST(AdasumTest, SurvivorsOfADeathHaveTheSameBits) {
  const std::vector<int> all = {0, 1, 2}, left = {0, 2};
  for (int call = 2; call < 8; ++call) {
    TestWorld world(3);
    const uint64_t epoch = world.next_epoch;
    world.faults[epoch] = {call, {2}};
    world.Install(all);
    std::vector<std::vector<float>> results(3);
    std::vector<std::thread> threads;
    for (int id : all) {
      threads.emplace_back([&, id] {
        TestWorker& w = *world.workers[id];
        (void)w.engine->AwaitEntered(Engine::Clock::now() + kLong);
        auto& data = results[id] = VectorOf(id, 3000);
        const Status status = Await(w.Ask(AdasumOf(3000), data.data(), data.data()));
        EXPECT_TRUE(status.ok() || id == 1) << status.message();
      });
    }
    bool hit = false;
    world.Await([&] {
      hit = world.past_fault[epoch].size() == 3;
      return hit;
    });
    world.workers[1]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
    world.Stop(left);
    world.Install(left, "PodLost");
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(results[0], results[2]) << "killed at call " << call;
    const bool whole = std::fabs(results[0][0] - ExpectedOf(all, 3000)[0]) < 1e-4;
    ExpectNear(results[0], ExpectedOf(whole ? all : left, 3000));
  }
}

}  // namespace
}  // namespace ringmaster::engine
