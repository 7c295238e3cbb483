// The ends of steps: how joiners get the state there, how a view below the minimum waits there, and
// what a worker that was dropped is told.
#include <gmock/gmock.h>

#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"

namespace ringmaster::engine {
namespace {

TEST(BoundaryTest, AJoinerGetsTheStateAtThePlannedBoundary) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  TestWorker& joiner = world.AddWorker(false);
  std::vector<std::vector<float>> weights(3, std::vector<float>(1000, 0.0f));
  for (int id = 0; id < 3; ++id) {
    if (id < 2) weights[id].assign(1000, 5.0f);
    ASSERT_TRUE(world.workers[id]->state.Register("w", weights[id].data(), 4000).ok());
  }
  const uint64_t epoch = world.next_epoch - 1;
  for (int id : {0, 1}) world.workers[id]->engine->PostArmed(epoch, true);
  std::vector<StepResult> results(3);
  std::thread members([&] {
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      // The ranks are armed at different moments. The boundary is the first step at whose end all
      // ranks vote "armed".
      do {
        ASSERT_TRUE(w.engine->StepEnd(&results[w.id]).ok());
      } while (results[w.id].epoch == epoch);
    });
  });
  world.Await(
      [&] { return world.workers[0]->boundary == epoch && world.workers[1]->boundary == epoch; });
  world.Stop({0, 1});
  world.Install({0, 1, 2}, "PodJoined");
  EXPECT_TRUE(joiner.engine->AwaitEntered(Engine::Clock::now() + kLong).ok());
  members.join();
  EXPECT_THAT(weights[2], testing::Each(5.0f));
  EXPECT_EQ(joiner.engine->info().step, world.workers[0]->engine->info().step);
  for (int id : {0, 1}) {
    EXPECT_TRUE(results[id].state_synced);
    EXPECT_EQ(results[id].size, 3);
  }
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    std::vector<float> data(3, 1.0f);
    EXPECT_TRUE(w.Allreduce("x", &data).ok());
    EXPECT_THAT(data, testing::Each(3.0f));
  });
}

TEST(BoundaryTest, AJoinerWithoutRegisteredStateIsToldHow) {
  TestWorld world(1);
  world.Install({0});
  world.Enter({0});
  TestWorker& joiner = world.AddWorker(false);
  const uint64_t epoch = world.next_epoch - 1;
  world.workers[0]->engine->PostArmed(epoch, true);
  std::thread member([&] {
    StepResult result;
    do {
      if (!world.workers[0]->engine->StepEnd(&result).ok()) return;
    } while (result.epoch == epoch);
  });
  world.Await([&] { return world.workers[0]->boundary == epoch; });
  world.Stop({0});
  world.Install({0, 1}, "PodJoined");
  const Status status = joiner.engine->AwaitEntered(Engine::Clock::now() + kLong);
  EXPECT_EQ(status.code(), RM_ERR_NO_STATE);
  EXPECT_THAT(status.message(), testing::HasSubstr("rm_state_register"));
  // The view of the others is dead, as after a death, and they go on in the next one.
  world.Stop({0});
  world.Install({0}, "WorkerLost");
  member.join();
}

// Its rm_enter has timed out, and nobody has told the others in time.
TEST(BoundaryTest, AJoinerWhoseUserHasGivenUpHoldsNobodyAtTheBoundary) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  world.user_patience = std::chrono::milliseconds(50);
  TestWorker& joiner = world.AddWorker(false);
  std::vector<double> weights(1, 1.0);
  for (auto& worker : world.workers)
    ASSERT_TRUE(worker->state.Register("w", weights.data(), sizeof(double)).ok());
  EXPECT_EQ(joiner.engine->AwaitEntered(Engine::Clock::now()).code(), RM_ERR_TIMEOUT);
  const uint64_t epoch = world.next_epoch - 1;
  for (int id : {0, 1}) world.workers[id]->engine->PostArmed(epoch, true);
  std::thread members([&] {
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      StepResult result;
      do {
        ASSERT_TRUE(w.engine->StepEnd(&result).ok());
      } while (result.epoch == epoch);
    });
  });
  world.Await(
      [&] { return world.workers[0]->boundary == epoch && world.workers[1]->boundary == epoch; });
  world.Stop({0, 1});
  const uint64_t joined = world.Install({0, 1, 2}, "PodJoined");
  world.Await([&] { return joiner.abandoned == joined; });
  EXPECT_EQ(joiner.engine->AwaitEntered(Engine::Clock::now() + kLong).code(), RM_ERR_DROPPED);
  // The view of the others is dead, as after a death, and they go on in the next one.
  world.Await([&] { return world.workers[0]->broken.contains(joined); });
  world.Stop({0, 1});
  world.Install({0, 1}, "WorkerLost");
  members.join();
}

TEST(BoundaryTest, AViewBelowTheMinimumHoldsAllAtTheBoundary) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  world.Stop({0, 1});
  const uint64_t held = world.Install({0, 1}, "PodLost", /*train=*/false);
  std::thread members([&] {
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      StepResult result;
      EXPECT_TRUE(w.engine->StepEnd(&result).ok());
      EXPECT_GT(result.epoch, held);
    });
  });
  world.Await(
      [&] { return world.workers[0]->boundary == held && world.workers[1]->boundary == held; });
  world.Stop({0, 1});
  world.Install({0, 1}, "PodJoined");
  members.join();
}

TEST(BoundaryTest, ADisarmedBoundaryLetsAllGoOn) {
  TestWorld world(2);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  for (int id : {0, 1}) world.workers[id]->engine->PostArmed(epoch, true);
  std::atomic<bool> released = false;
  std::thread members([&] {
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      for (int step = 0; step < 5; ++step) {
        StepResult result;
        EXPECT_TRUE(w.engine->StepEnd(&result).ok());
        EXPECT_EQ(result.epoch, epoch);
      }
    });
    released = true;
  });
  world.Await(
      [&] { return world.workers[0]->boundary == epoch && world.workers[1]->boundary == epoch; });
  EXPECT_FALSE(released);
  for (int id : {0, 1}) world.workers[id]->engine->PostArmed(epoch, false);
  members.join();
}

TEST(BoundaryTest, NothingOfADroppedWorkerCompletesUntilItIsLetInAgainWithTheOthersState) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  std::vector<std::vector<float>> weights(3, std::vector<float>(10, 1.0f));
  for (int id = 0; id < 3; ++id)
    ASSERT_TRUE(world.workers[id]->state.Register("w", weights[id].data(), 40).ok());
  TestWorker& dropped = *world.workers[2];
  std::vector<float> pending(3, 1.0f), later(3, 1.0f);
  const auto asked_before =
      dropped.Ask({"before", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1, 1}, pending.data(),
                  pending.data());
  world.Stop({0, 1, 2});
  WorkerView without;
  without.epoch = world.next_epoch;
  without.self = -1;
  dropped.engine->PostView(without);
  ASSERT_TRUE(asked_before->WaitUntil(Engine::Clock::now() + kLong));
  EXPECT_EQ(asked_before->status().code(), RM_ERR_DROPPED);
  EXPECT_EQ(dropped.Allreduce("later", &later).code(), RM_ERR_DROPPED);
  StepResult result;
  EXPECT_EQ(dropped.engine->StepEnd(&result).code(), RM_ERR_DROPPED);
  EXPECT_TRUE(dropped.engine->info().dropped);
  EXPECT_THAT(pending, testing::Each(1.0f));

  const uint64_t epoch = world.Install({0, 1}, "PodLost");
  world.Enter({0, 1});
  for (int id : {0, 1}) {
    weights[id].assign(10, 9.0f);
    world.workers[id]->engine->PostArmed(epoch, true);
  }
  std::thread members([&] {
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      StepResult at_end;
      do {
        ASSERT_TRUE(w.engine->StepEnd(&at_end).ok());
      } while (at_end.epoch == epoch);
    });
  });
  world.Await(
      [&] { return world.workers[0]->boundary == epoch && world.workers[1]->boundary == epoch; });
  EXPECT_EQ(dropped.Allreduce("still", &later).code(), RM_ERR_DROPPED);
  world.Stop({0, 1});
  world.Install({0, 1, 2}, "Rejoin");
  EXPECT_TRUE(dropped.engine->AwaitEntered(Engine::Clock::now() + kLong).ok());
  members.join();
  EXPECT_THAT(weights[2], testing::Each(9.0f));
  EXPECT_FALSE(dropped.engine->info().dropped);
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    std::vector<float> data(3, 1.0f);
    EXPECT_TRUE(w.Allreduce("x", &data).ok());
    EXPECT_THAT(data, testing::Each(3.0f));
  });
}

// All pods leave, and one has gone before the others heard that the step had ended: they leave
// after the same step.
TEST(BoundaryTest, WhereAChangeIsPlannedInTheNewViewTheRanksStayAtTheirBoundary) {
  for (const bool all_armed : {true, false}) {
    TestWorld world(3);
    const uint64_t epoch = world.Install({0, 1, 2});
    world.Enter({0, 1, 2});
    for (int id : {0, 1, 2}) world.workers[id]->engine->PostArmed(epoch, true);
    std::atomic<int> let_go = 0;
    std::thread users([&] {
      OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
        StepResult result;
        Status ended;
        do {  // the ranks are armed at different moments
          ended = w.engine->StepEnd(&result);
        } while (ended.ok() && result.epoch == epoch);
        EXPECT_EQ(ended.ok(), w.id != 2);
        if (w.id != 2) ++let_go;
      });
    });
    world.Await([&] {
      return std::all_of(world.workers.begin(), world.workers.end(),
                         [&](const auto& worker) { return worker->boundary == epoch; });
    });
    const uint64_t step = world.workers[0]->engine->info().step;
    world.workers[2]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
    world.Stop({0, 1});
    const uint64_t next = world.next_epoch;
    world.workers[0]->engine->PostArmed(next, true);
    if (all_armed) world.workers[1]->engine->PostArmed(next, true);
    ASSERT_EQ(world.Install({0, 1}, "PodLost"), next);
    if (all_armed) {
      world.Await(
          [&] { return world.workers[0]->boundary == next && world.workers[1]->boundary == next; });
      EXPECT_EQ(let_go, 0);
      for (int id : {0, 1}) world.workers[id]->engine->PostArmed(next, false);
    }
    users.join();
    EXPECT_EQ(let_go, 2);
    for (int id : {0, 1}) EXPECT_EQ(world.workers[id]->engine->info().step, step);
  }
}

// The engine's thread has read that this worker was dropped, and the view in which it is let in
// again. The user's thread, which can't know that, asks for an operation before the engine's thread
// has acted on it.
TEST(BoundaryTest, WhatIsAskedForInTheMomentOfADropDoesNotReachTheNextView) {
  TestWorld world(2);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  std::vector<float> weights[] = {{1.0f}, {1.0f}};
  for (int id : {0, 1}) {
    ASSERT_TRUE(world.workers[id]->state.Register("w", weights[id].data(), 4).ok());
    world.workers[id]->engine->PostArmed(epoch, true);
  }
  TestWorker& dropped = *world.workers[0];
  TestWorker& other = *world.workers[1];
  const auto end_step = [](TestWorker* worker, rm_status expected) {
    StepResult result;
    EXPECT_EQ(worker->engine->StepEnd(&result).code(), expected);
  };
  std::thread dropped_user(end_step, &dropped, RM_ERR_DROPPED);
  std::thread other_user(end_step, &other, RM_OK);
  world.Await([&] { return dropped.boundary == epoch && other.boundary == epoch; });
  world.Stop({1});
  std::vector<float> stale(3, 100.0f);
  std::shared_ptr<Operation> asked;
  int stops = 0;
  const auto ask_between = [&] {
    if (++stops == 1) {  // the loop takes all three messages at once, and handles the stop first
      dropped.engine->PostStop(epoch);
      dropped.engine->PostDropped("the sidecar was silent");
      world.Install({0, 1}, "Rejoin");
    } else if (stops == 2) {
      asked = dropped.Ask({"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1, 1}, stale.data(),
                          stale.data());
    }
  };
  {
    std::lock_guard lock(world.mu);
    dropped.on_stopped = ask_between;
  }
  dropped.engine->PostStop(epoch);
  dropped_user.join();
  EXPECT_TRUE(dropped.engine->AwaitEntered(Engine::Clock::now() + kLong).ok());
  other_user.join();
  ASSERT_TRUE(asked->done()) << "it is of the view before";
  EXPECT_EQ(asked->status().code(), RM_ERR_DROPPED);
  EXPECT_THAT(stale, testing::Each(100.0f));
  std::vector<float> sum(3, 1.0f), expected(3, 2.0f);
  std::thread second([&] {
    std::vector<float> data(3, 1.0f);
    EXPECT_TRUE(other.Allreduce("x", &data).ok());
    EXPECT_EQ(data, expected);
  });
  EXPECT_TRUE(dropped.Allreduce("x", &sum).ok());
  second.join();
  EXPECT_EQ(sum, expected);
}

TEST(BoundaryTest, AWorkerThatIsDroppedInStepEndHearsIt) {
  TestWorld world(2);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  for (int id : {0, 1}) world.workers[id]->engine->PostArmed(epoch, true);
  std::vector<Status> ended(2);
  std::thread users([&] {
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      StepResult result;
      ended[w.id] = w.engine->StepEnd(&result);
    });
  });
  world.Await(
      [&] { return world.workers[0]->boundary == epoch && world.workers[1]->boundary == epoch; });
  world.workers[1]->engine->PostDropped("the sidecar was silent");
  world.Stop({0});
  world.Install({0}, "WorkerLost");
  users.join();
  EXPECT_TRUE(ended[0].ok()) << ended[0].message();
  EXPECT_EQ(ended[1].code(), RM_ERR_DROPPED);
  EXPECT_THAT(ended[1].message(), testing::HasSubstr("silent"));
}

}  // namespace
}  // namespace ringmaster::engine
