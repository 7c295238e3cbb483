// Ranks that have no more data: they take part, with nothing of their own, until all ranks have
// none.
#include <gmock/gmock.h>

#include "collectives/engine/engine.h"
#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"

namespace ringmaster::engine {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Worker k has k + 1 batches. It goes through them twice, the second time from the cache.
TEST(EngineTest, WhoHasJoinedTakesPartWithNothingUntilAllHave) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    for (int pass = 0; pass < 2; ++pass) {
      for (int batch = 0; batch <= w.id; ++batch) {
        const float ranks = static_cast<float>(3 - batch);
        std::vector<float> sum(100, 1.0f), average(5, 3.0f), most(5, -1.0f), product(5, 2.0f);
        EXPECT_TRUE(w.Allreduce("sum", &sum).ok());
        EXPECT_TRUE(w.Allreduce("average", &average, RM_AVERAGE).ok());
        EXPECT_TRUE(w.Allreduce("most", &most, RM_MAX).ok());
        EXPECT_TRUE(w.Allreduce("product", &product, RM_PRODUCT).ok());
        EXPECT_THAT(sum, Each(ranks));
        EXPECT_THAT(average, Each(ranks));
        EXPECT_THAT(most, Each(-1.0f));
        EXPECT_THAT(product, Each(static_cast<float>(1 << (3 - batch))));
        const int32_t row[2] = {w.id, w.id};
        const auto gather =
            w.Ask({"rows", Kind::kAllgather, RM_INT32, RM_SUM, "", 2, 1, 1}, row, nullptr, 1);
        ASSERT_TRUE(Await(gather).ok());
        EXPECT_EQ(gather->gathered_rows, static_cast<size_t>(3 - batch));
        const std::vector<int32_t> in(6, 1);
        Request request{"scatter", Kind::kReducescatter, RM_INT32, RM_SUM, "", 6, 1, 1};
        request.shape = {3, 2};
        const auto scatter = w.Ask(std::move(request), in.data(), nullptr);
        ASSERT_TRUE(Await(scatter).ok());
        EXPECT_EQ(Gathered(*scatter), std::vector<int32_t>(2, 3 - batch));
        StepResult step;
        EXPECT_TRUE(w.engine->StepEnd(&step).ok());
        EXPECT_EQ(step.step, static_cast<uint64_t>(3 * pass + batch + 1));
      }
      EXPECT_EQ(Join(w), 2) << "the last to join";
      EXPECT_EQ(w.engine->info().step, static_cast<uint64_t>(3 * pass + 3));
    }
    std::vector<float> sum(4, 1.0f);
    EXPECT_TRUE(w.Allreduce("sum", &sum).ok());
    EXPECT_THAT(sum, Each(3.0f));
  });
}

TEST(EngineTest, ABroadcastFromARankThatHasJoinedFailsOnAllAlsoFromTheCache) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    std::vector<int32_t> data(4, w.id);
    const auto broadcast = [&] {
      return Await(
          w.Ask({"b", Kind::kBroadcast, RM_INT32, RM_SUM, w.engine->info().WorkerAt(0), 4, 1, 1},
                data.data(), data.data()));
    };
    EXPECT_TRUE(broadcast().ok());
    for (int pass = 0; w.id != 0 && pass < 2; ++pass) {
      const Status status = broadcast();
      EXPECT_EQ(status.code(), RM_ERR_INVALID);
      EXPECT_THAT(status.message(), HasSubstr("has joined"));
    }
    EXPECT_GE(Join(w), 1);
    EXPECT_TRUE(broadcast().ok());
  });
}

TEST(EngineTest, AJoinGoesOnAfterADeathAndKnowsWhoWasLast) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  const auto join = [&](int id) {
    return world.workers[id]->Ask({kJoinName, Kind::kJoin}, nullptr, nullptr);
  };
  const auto early = join(1);
  std::vector<float> sum(3, 1.0f), peer(3, 1.0f);
  OnEach(&world, {0, 2}, [&](TestWorker& w) {
    std::vector<float>& data = w.id == 0 ? sum : peer;
    EXPECT_TRUE(w.Allreduce("x", &data).ok());
  });
  EXPECT_THAT(sum, Each(2.0f));
  world.workers[2]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
  world.Stop({0, 1});
  world.Install({0, 1}, "WorkerLost");
  sum.assign(3, 1.0f);
  EXPECT_TRUE(world.workers[0]->Allreduce("x", &sum).ok());
  EXPECT_THAT(sum, Each(1.0f));
  const auto late = join(0);
  EXPECT_TRUE(Await(early).ok());
  EXPECT_TRUE(Await(late).ok());
  EXPECT_EQ(early->last_joined, 0) << "also in the order of ranks that the new view begins with";
  EXPECT_EQ(late->last_joined, 0);
}

// A rank that has joined ends steps with the others, without a call of its user. So what the next
// step's ranks mean changes for it as well.
TEST(EngineTest, RanksMeanTheSameToOneThatHasJoinedAndToThoseThatEndTheStep) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  const auto join = world.workers[2]->Ask({kJoinName, Kind::kJoin}, nullptr, nullptr);
  world.workers[1]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
  world.Stop({0, 2});
  const uint64_t epoch = world.Install({0, 2}, "WorkerLost");
  StepResult result;
  ASSERT_TRUE(world.workers[0]->engine->StepEnd(&result).ok());
  EXPECT_EQ(result.epoch, epoch);
  EXPECT_GE(Join(*world.workers[0]), 0);
  ASSERT_TRUE(Await(join).ok());
  for (int id : {0, 2}) {
    const StepRanks ranks = world.workers[id]->engine->info().step_ranks();
    EXPECT_EQ(ranks.epoch, epoch) << "worker " << id;
    EXPECT_EQ(ranks.workers, (std::vector{TestWorld::NameOf(0), TestWorld::NameOf(2)}))
        << "worker " << id;
  }
}

TEST(EngineTest, WhatIsInFlightWhenTheLastRankJoinsIsDoneBeforeTheJoin) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  for (int pass = 0; pass < 3; ++pass) {
    const auto ask_join = [&](int id) {
      return world.workers[id]->Ask({kJoinName, Kind::kJoin}, nullptr, nullptr);
    };
    const auto early = ask_join(0);
    std::vector<float> data(4, 3.0f);
    const auto last =
        world.workers[1]->Ask({"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", data.size(), 1, 1},
                              data.data(), data.data());
    const auto late = ask_join(1);
    EXPECT_TRUE(Await(last).ok()) << last->status().message();
    EXPECT_THAT(data, Each(3.0f));
    EXPECT_TRUE(Await(early).ok());
    EXPECT_TRUE(Await(late).ok());
  }
}

// The others don't wait for what a rank that has joined had asked for, so they don't compare with
// it.
TEST(EngineTest, WhatAskedForSomethingElseBeforeItJoinedIsToldSoAndItsBufferIsLeftAlone) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  const auto ask = [&](int id, std::vector<float>* data, Kind kind, size_t count) {
    const std::string root = kind == Kind::kBroadcast ? TestWorld::NameOf(0) : "";
    return std::make_shared<Operation>(Request{"x", kind, RM_FLOAT32, RM_SUM, root, count, 1, 1},
                                       data->data(), data->data());
  };
  for (const Kind kind : {Kind::kAllreduce, Kind::kBroadcast}) {
    std::vector<float> small(1000, 1.0f), large(1000, 1.0f);
    OnEach(&world, {0, 1}, [&](TestWorker& w) {  // from now on it is in the cache
      std::vector<float> data(10, 1.0f);
      EXPECT_TRUE(w.Allreduce("x", &data).ok());
    });
    const auto differs = ask(1, &small, Kind::kAllreduce, 10);
    const auto join =
        std::make_shared<Operation>(Request{kJoinName, Kind::kJoin}, nullptr, nullptr);
    const Submitted both = {differs, join};
    ASSERT_TRUE(world.workers[1]->engine->Submit(both).ok());
    const auto other = ask(0, &large, kind, 1000);
    ASSERT_TRUE(world.workers[0]->engine->Submit(other).ok());
    EXPECT_EQ(Await(differs).code(), RM_ERR_MISMATCH);
    EXPECT_THAT(differs->status().message(), HasSubstr("asked for allreduce of [10] float32"));
    EXPECT_TRUE(Await(other).ok()) << other->status().message();
    EXPECT_GE(Join(*world.workers[0]), 0);
    EXPECT_TRUE(Await(join).ok());
    EXPECT_THAT(small, Each(1.0f));
    EXPECT_THAT(large, Each(1.0f)) << "alone";
  }
}

}  // namespace
}  // namespace ringmaster::engine
