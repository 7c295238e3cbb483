// Operations of some of the ranks only.
#include <gmock/gmock.h>

#include "collectives/engine/engine.h"
#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"

namespace ringmaster::engine {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(ProcessSetTest, SetsWithoutACommonRankUseOneNameAndTheWorldGoesOnBeside) {
  TestWorld world(4);
  world.Install({0, 1, 2, 3});
  world.Enter({0, 1, 2, 3});
  OnEach(&world, {0, 1, 2, 3}, [](TestWorker& w) {
    const int even = AddSet(w, {0, 2}), odd = AddSet(w, {1, 3}), alone = AddSet(w, {3});
    EXPECT_EQ((std::vector<int>{even, odd, alone}), (std::vector<int>{1, 2, 3}));
    std::vector<int> ranks;
    EXPECT_TRUE(w.engine->info().MembersOf(odd, nullptr, &ranks));
    EXPECT_EQ(ranks, (std::vector<int>{1, 3}));
    for (int pass = 0; pass < 3; ++pass) {
      std::vector<float> mine(10, static_cast<float>(1 << w.id)), all(7, 1.0f), own(3, 5.0f);
      const auto set = AskIn(w, w.id % 2 == 0 ? even : odd, "loss", &mine);
      const auto everyone = AskIn(w, 0, "all", &all);
      if (w.id == 3) {
        EXPECT_TRUE(Await(AskIn(w, alone, "own", &own)).ok());
      }
      EXPECT_TRUE(Await(set).ok()) << set->status().message();
      EXPECT_TRUE(Await(everyone).ok());
      EXPECT_THAT(mine, Each(w.id % 2 == 0 ? 5.0f : 10.0f));
      EXPECT_THAT(all, Each(4.0f));
      EXPECT_THAT(own, Each(5.0f));
    }
    // A collective with a result of each rank's own, and a broadcast whose root is a rank of the
    // world.
    const int set = w.id % 2 == 0 ? even : odd;
    std::vector<int32_t> in(6, w.id);
    Request scatter{"scatter", Kind::kReducescatter, RM_INT32, RM_SUM, "", 6, 1, 1};
    scatter.shape = {3, 2};
    scatter.process_set = set;
    const auto scattered = w.Ask(scatter, in.data(), nullptr);
    Request broadcast{
        "b", Kind::kBroadcast, RM_INT32, RM_SUM, w.engine->info().WorkerAt(w.id % 2 + 2), 6};
    broadcast.process_set = set;
    ASSERT_TRUE(Await(scattered).ok()) << scattered->status().message();
    EXPECT_EQ(scattered->rows_by_rank, (std::vector<size_t>{2, 1}));
    EXPECT_EQ(Gathered(*scattered)[0], w.id % 2 == 0 ? 2 : 4);
    EXPECT_TRUE(Await(w.Ask(broadcast, in.data(), in.data())).ok());
    EXPECT_THAT(in, Each(w.id % 2 + 2));
  });
}

TEST(ProcessSetTest, WhoIsInNoSetOrInARemovedOneHearsItAndTheJobGoesOn) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    const int set = AddSet(w, {0, 1});
    std::vector<float> data(2, 1.0f);
    if (w.id == 2) {
      const Status status = Await(AskIn(w, set, "x", &data));
      EXPECT_EQ(status.code(), RM_ERR_INVALID);
      EXPECT_THAT(status.message(), HasSubstr("worker 2, is not in process set 1"));
    }
    EXPECT_THAT(Await(AskIn(w, 7, "x", &data)).message(), HasSubstr("process set 7 is unknown"));
    EXPECT_EQ(RemoveSet(w, 9).code(), RM_ERR_INVALID);
    const int other = AddSet(w, {1, 2});
    EXPECT_EQ(RemoveSet(w, w.id == 0 ? set : other).code(), RM_ERR_MISMATCH);
    // The set is removed while one of its ranks still waits for the other.
    const auto waits = w.id == 0 ? AskIn(w, set, "late", &data) : nullptr;
    EXPECT_TRUE(RemoveSet(w, set).ok());
    if (w.id == 0) {
      EXPECT_THAT(Await(waits).message(), HasSubstr("has been removed"));
    }
    EXPECT_THAT(Await(AskIn(w, set, "x", &data)).message(), HasSubstr("unknown"));
    EXPECT_EQ(AddSet(w, {0, 1}), 3) << "numbers are not used again";
    data.assign(2, 1.0f);
    EXPECT_TRUE(w.Allreduce("late", &data).ok());
    EXPECT_THAT(data, Each(3.0f));
  });
}

TEST(ProcessSetTest, RanksThatDisagreeOnTheSetAllHearItAlsoFromTheCache) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  std::mutex mu;
  std::set<std::string> messages;
  OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
    const int set = AddSet(w, {0, 1});
    for (int pass = 0; pass < 4; ++pass) {
      std::vector<float> data(2, 1.0f);
      if (w.id != 2) {
        EXPECT_TRUE(Await(AskIn(w, set, "x", &data)).ok());
      }
      EXPECT_TRUE(w.Allreduce("x", &data).ok());
      if (pass % 2 == 0) continue;
      const Status status = Await(AskIn(w, w.id == 0 ? set : 0, "x", &data));
      EXPECT_EQ(status.code(), RM_ERR_MISMATCH);
      std::lock_guard lock(mu);
      messages.insert(status.message());
    }
  });
  EXPECT_EQ(messages.size(), 1u);
  EXPECT_THAT(*messages.begin(), HasSubstr("process set is 1 on rank 0 and 0 on rank 1"));
}

TEST(ProcessSetTest, WhatDiffersInASetIsToldWithTheRanksOfTheView) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    const int set = AddSet(w, {1, 2});
    std::vector<float> data(static_cast<size_t>(w.id) + 1, 1.0f);
    if (w.id == 0) return;
    EXPECT_THAT(Await(AskIn(w, set, "x", &data)).message(),
                HasSubstr("element count is 2 on rank 1 and 3 on rank 2"));
  });
}

TEST(ProcessSetTest, ASetDoesNotWaitForARankThatAsksForNothing) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) { EXPECT_EQ(AddSet(w, {0, 1}), 1); });
  OnEach(&world, {0, 1}, [](TestWorker& w) {
    for (int pass = 0; pass < 5; ++pass) {
      std::vector<float> data(3, 1.0f);
      EXPECT_TRUE(Await(AskIn(w, 1, "x", &data)).ok());
      EXPECT_THAT(data, Each(2.0f));
    }
  });
}

TEST(ProcessSetTest, GroupsOfOneNameInTwoSetsAreTwoGroups) {
  TestWorld world(4);
  world.Install({0, 1, 2, 3});
  world.Enter({0, 1, 2, 3});
  OnEach(&world, {0, 1, 2, 3}, [](TestWorker& w) {
    const int even = AddSet(w, {0, 2}), odd = AddSet(w, {1, 3});
    const int set = w.id % 2 == 0 ? even : odd;
    for (int pass = 0; pass < 4; ++pass) {
      std::vector<std::vector<float>> data(2, std::vector<float>(3, static_cast<float>(w.id)));
      for (const auto& operation : AskGroup(w, {"g.0", "g.1"}, &data, set)) {
        EXPECT_TRUE(Await(operation).ok()) << operation->status().message();
      }
      for (const auto& result : data) EXPECT_THAT(result, Each(w.id % 2 == 0 ? 2.0f : 4.0f));
    }
  });
}

TEST(ProcessSetTest, WhatWasAskedForBeforeTheSetIsRemovedIsDone) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) { EXPECT_EQ(AddSet(w, {0, 1}), 1); });
  std::vector<std::vector<float>> data(2, std::vector<float>(4, 1.0f));
  std::vector<std::shared_ptr<Operation>> asked;
  const auto remove = [&](int id) {
    Request request{kRemoveSetName, Kind::kRemoveSet};
    request.removed_set = 1;
    asked.push_back(world.workers[id]->Ask(std::move(request), nullptr, nullptr));
  };
  remove(2);
  for (int id : {0, 1}) {
    asked.push_back(AskIn(*world.workers[id], 1, "x", &data[id]));
    remove(id);
  }
  for (const auto& operation : asked) {
    EXPECT_TRUE(Await(operation).ok()) << operation->status().message();
  }
  for (const auto& result : data) EXPECT_THAT(result, Each(2.0f));
}

TEST(ProcessSetTest, RanksThatAddDifferentSetsAllHearIt) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  OnEach(&world, {0, 1}, [&](TestWorker& w) {
    Request request{kAddSetName, Kind::kAddSet};
    request.members = {w.engine->info().WorkerAt(w.id)};
    const Status status = Await(w.Ask(std::move(request), nullptr, nullptr));
    EXPECT_EQ(status.code(), RM_ERR_MISMATCH);
    EXPECT_THAT(status.message(), HasSubstr("[worker 0] on rank 0 and [worker 1] on rank 1"));
    EXPECT_EQ(AddSet(w, {0, 1}), 1);
  });
}

TEST(ProcessSetTest, WhoHasJoinedTakesPartInItsSetsToo) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
    const int set = AddSet(w, {0, 1});
    for (int pass = 0; pass < 2; ++pass) {
      for (int batch = 0; w.id != 2 && batch <= 2 * w.id; ++batch) {
        std::vector<float> data(3, 1.0f);
        EXPECT_TRUE(Await(AskIn(w, set, "x", &data)).ok());
        EXPECT_THAT(data, Each(batch == 0 ? 2.0f : 1.0f));
      }
      std::vector<float> data(3, 1.0f);
      if (w.id == 2) {
        EXPECT_TRUE(w.Allreduce("only 2", &data).ok());
      }
      EXPECT_GE(Join(w), 0);
    }
  });
}

}  // namespace
}  // namespace ringmaster::engine
