// Kills at every call of the communicator x victim x who has completed it, and compares what the
// survivors have.
#include <gmock/gmock.h>

#include "collectives/engine/test_world.h"
#include "tests/support/rounds.h"

namespace ringmaster::engine {
namespace {

// What a worker has seen of one step: equal on all survivors, whatever happened.
struct StepOutcome {
  std::vector<float> sum;  // fused with the next one
  std::vector<float> other;
  std::vector<int64_t> product;  // another type: not fused
  std::vector<float> average;
  std::vector<int32_t> gathered;
  std::vector<int32_t> broadcast;
  bool operator==(const StepOutcome&) const = default;
};

constexpr int kSteps = 3;
const auto kLong = std::chrono::seconds(30);

Status RunStep(TestWorker& w, int step, StepOutcome* outcome) {
  // A bit for each worker: the sum tells whose part is in.
  const auto bit = static_cast<float>(1 << w.id);
  outcome->sum.assign(100, bit + 1024.0f * step);
  outcome->other.assign(33, bit);
  outcome->product.assign(20, w.id + 2);
  outcome->average.assign(5, bit);
  std::vector<int32_t> row(3, w.id);
  outcome->broadcast.assign(4, 7 * (step + 1));
  std::vector<std::shared_ptr<Operation>> asked;
  const auto reduce = [&](const char* name, auto* data, rm_dtype dtype, rm_op op) {
    asked.push_back(w.Ask({name, Kind::kAllreduce, dtype, op, 0, data->size(), 1, 1}, data->data(),
                          data->data()));
  };
  reduce("sum", &outcome->sum, RM_FLOAT32, RM_SUM);
  reduce("other", &outcome->other, RM_FLOAT32, RM_SUM);
  reduce("product", &outcome->product, RM_INT64, RM_PRODUCT);
  reduce("average", &outcome->average, RM_FLOAT32, RM_AVERAGE);
  asked.push_back(
      w.Ask({"row", Kind::kAllgather, RM_INT32, RM_SUM, 0, 3, 1, 1}, row.data(), nullptr, 1));
  const auto gather = asked.back();
  asked.push_back(w.Ask({"broadcast", Kind::kBroadcast, RM_INT32, RM_SUM, 0, 4, 1, 1},
                        outcome->broadcast.data(), outcome->broadcast.data()));
  for (auto& operation : asked) {
    if (!operation->WaitUntil(Engine::Clock::now() + kLong)) {
      return {RM_ERR_TIMEOUT, "'" + operation->request.name + "' hangs"};
    }
    if (Status s = operation->status(); !s.ok()) return s;
  }
  const auto* rows = reinterpret_cast<const int32_t*>(gather->gathered->data());
  outcome->gathered.assign(rows, rows + 3 * gather->rows_by_rank.size());
  StepResult result;
  if (Status s = w.engine->StepEnd(&result); !s.ok()) return s;
  return result.step == static_cast<uint64_t>(step + 1)
             ? Status()
             : Status(RM_ERR_INTERNAL, "step number is off");
}

float SumOfBits(const std::vector<int>& ids) {
  float bits = 0;
  for (int id : ids) bits += static_cast<float>(1 << id);
  return bits;
}

void CheckOutcome(const StepOutcome& o, int step, const std::vector<int>& all,
                  const std::vector<int>& left) {
  // One of the two: everybody's part, or the survivors'. `other` may differ from `sum` in this only
  // if not fused.
  for (const auto* values : {&o.sum, &o.other}) {
    const bool first = values == &o.sum;
    const auto expected = [&](const std::vector<int>& ids) {
      return SumOfBits(ids) + (first ? 1024.0f * step * ids.size() : 0.0f);
    };
    EXPECT_THAT(*values,
                testing::AnyOf(testing::Each(expected(all)), testing::Each(expected(left))));
  }
  EXPECT_THAT(o.average, testing::AnyOf(testing::Each(SumOfBits(all) / all.size()),
                                        testing::Each(SumOfBits(left) / left.size())));
  EXPECT_THAT(o.broadcast, testing::Each(7 * (step + 1)));
}

class Drill {
 public:
  Drill(int workers, bool shm) : world(workers, shm), outcomes(workers), done(workers, 0) {
    for (int id = 0; id < workers; ++id) all.push_back(id);
  }

  void Start() {
    for (int id : all) {
      threads.emplace_back([this, id] {
        (void)world.workers[id]->engine->AwaitEntered(Engine::Clock::now() + kLong);
        for (int step = 0; step < kSteps; ++step) {
          StepOutcome outcome;
          const Status status = RunStep(*world.workers[id], step, &outcome);
          std::lock_guard lock(world.mu);
          if (!status.ok()) errors[id] = status.message();
          if (!status.ok()) break;
          outcomes[id].push_back(std::move(outcome));
        }
        std::lock_guard lock(world.mu);
        done[id] = 1;
        world.changed.notify_all();
      });
    }
  }
  // The fault of `epoch` has happened to everybody, or everybody has finished before it. False: the
  // latter.
  bool AwaitFault(uint64_t epoch, const std::vector<int>& members) {
    bool hit = false;
    world.Await([&] {
      hit = world.past_fault[epoch].size() == members.size();
      bool finished = true;
      for (int id : members) finished = finished && done[id];
      return hit || finished;
    });
    return hit;
  }
  void Kill(int id) { world.workers[id]->engine->PostEnd({RM_ERR_INTERNAL, "killed"}); }
  void Join() {
    for (auto& thread : threads) thread.join();
    threads.clear();
  }
  void Check(const std::vector<int>& left) {
    for (int id : left) {
      EXPECT_EQ(errors[id], "") << "worker " << id;
      ASSERT_EQ(outcomes[id].size(), static_cast<size_t>(kSteps));
      for (int step = 0; step < kSteps; ++step) {
        EXPECT_EQ(outcomes[id][step], outcomes[left[0]][step])
            << "worker " << id << ", step " << step;
        CheckOutcome(outcomes[id][step], step, all, left);
      }
    }
  }

  TestWorld world;
  std::vector<int> all;
  std::vector<std::vector<StepOutcome>> outcomes;
  std::vector<char> done;             // guarded by world.mu
  std::map<int, std::string> errors;  // guarded by world.mu
  std::vector<std::thread> threads;
};

// Which of the survivors have completed the call at which the victim dies.
std::vector<std::set<int>> Subsets(const std::vector<int>& ids) {
  std::vector<std::set<int>> subsets;
  for (int mask = 0; mask < 1 << ids.size(); ++mask) {
    std::set<int> subset;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (mask >> i & 1) subset.insert(ids[i]);
    }
    subsets.push_back(subset);
  }
  return subsets;
}

std::vector<int> Without(std::vector<int> ids, int victim) {
  std::erase(ids, victim);
  return ids;
}

constexpr int kInstallCalls =
    2;  // the exchange of a view's beginning; faults there have a test of their own

class KillAtEveryCall : public testing::TestWithParam<bool> {};

TEST_P(KillAtEveryCall, SurvivorsHaveTheSameBytesAndNoStepIsLost) {
  int points = 0;
  const int stride = support::Rounds(1, 3);
  for (int victim = 0; victim < 3; ++victim) {
    bool reached = true;
    for (int call = kInstallCalls + victim % stride; reached; call += stride) {
      for (const auto& completes : Subsets(Without({0, 1, 2}, victim))) {
        SCOPED_TRACE("victim " + std::to_string(victim) + " at call " + std::to_string(call) +
                     ", completed by " + testing::PrintToString(completes));
        Drill run(3, GetParam());
        const uint64_t epoch = run.world.next_epoch;
        run.world.faults[epoch] = {call, completes};
        run.world.Install(run.all);
        run.Start();
        reached = run.AwaitFault(epoch, run.all);
        if (!reached) {
          run.Join();
          break;
        }
        ++points;
        run.Kill(victim);
        const auto left = Without(run.all, victim);
        run.world.Stop(left);
        run.world.Install(left, "WorkerLost");
        run.Join();
        run.Check(left);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(points, 3 * 4 * 15 / stride)
      << "too few calls were reached for the test to mean something";
}

INSTANTIATE_TEST_SUITE_P(Transport, KillAtEveryCall, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "SharedMemory" : "Tcp"; });

TEST(RecoveryTest, ASecondDeathDuringTheRecoveryChangesNothingForTheOthers) {
  // Four workers; the first death where a half has completed, the second at each call of the
  // recovery's view.
  for (int first_call : support::Rounds<std::vector<int>>({4, 6, 7, 9, 11}, {4, 9})) {
    for (int second_call = 0; second_call < 8; ++second_call) {
      for (const auto& completes : Subsets({1, 2})) {
        SCOPED_TRACE("calls " + std::to_string(first_call) + " and " + std::to_string(second_call) +
                     ", the second completed by " + testing::PrintToString(completes));
        Drill run(4, true);
        const uint64_t epoch = run.world.next_epoch;
        run.world.faults[epoch] = {first_call, {0, 2}};
        run.world.faults[epoch + 1] = {second_call, completes};
        run.world.Install(run.all);
        run.Start();
        ASSERT_TRUE(run.AwaitFault(epoch, run.all));
        run.Kill(3);
        run.world.Stop({0, 1, 2});
        run.world.Install({0, 1, 2}, "WorkerLost");
        ASSERT_TRUE(run.AwaitFault(epoch + 1, {0, 1, 2}));
        run.Kill(0);
        run.world.Stop({1, 2});
        run.world.Install({1, 2}, "WorkerLost");
        run.Join();
        EXPECT_EQ(run.outcomes[1].size(), static_cast<size_t>(kSteps)) << run.errors[1];
        EXPECT_EQ(run.outcomes[1], run.outcomes[2]);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(RecoveryTest, AWorkerThatSleepsInUserCodeStillStopsAndInstalls) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  world.Stop({0, 1});
  world.Install({0, 1}, "PodLost");  // nobody has asked for anything
  OnEach(&world, {0, 1}, [](TestWorker& w) {
    std::vector<float> data(3, 1.0f);
    EXPECT_TRUE(w.Allreduce("x", &data).ok());
    EXPECT_THAT(data, testing::Each(2.0f));
  });
}

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
      // The arming reaches the ranks at any time: the first step whose vote has it on all is the
      // boundary.
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
  EXPECT_EQ(joiner.engine->step(), world.workers[0]->engine->step());
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
  // The others are left with a dead view, as after any death, and go on.
  world.Stop({0});
  world.Install({0}, "WorkerLost");
  member.join();
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

TEST(BoundaryTest, AWorkerDroppedByMistakeFinishesItsStepAloneAndComesBackWithFreshState) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  std::vector<std::vector<float>> weights(3, std::vector<float>(10, 1.0f));
  for (int id = 0; id < 3; ++id)
    ASSERT_TRUE(world.workers[id]->state.Register("w", weights[id].data(), 40).ok());
  world.Stop({0, 1, 2});
  View dropped;
  dropped.epoch = world.next_epoch;
  dropped.self = -1;
  world.workers[2]->engine->PostView(dropped);
  const uint64_t epoch = world.Install({0, 1}, "PodLost");
  world.Enter({0, 1});
  for (int id : {0, 1}) {
    weights[id].assign(10, 9.0f);
    world.workers[id]->engine->PostArmed(epoch, true);
  }
  std::thread members([&] {
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      StepResult result;
      do {
        ASSERT_TRUE(w.engine->StepEnd(&result).ok());
      } while (result.epoch == epoch);
    });
  });
  std::thread returns([&] {
    std::vector<float> data(3, 1.0f);
    EXPECT_TRUE(world.workers[2]->Allreduce("mid-step", &data).ok());
    StepResult result;
    EXPECT_TRUE(world.workers[2]->engine->StepEnd(&result).ok());
    EXPECT_TRUE(result.state_synced);
    EXPECT_GT(result.epoch, epoch);
  });
  world.Await([&] {
    return world.workers[2]->ready_to_enter && world.workers[0]->boundary == epoch &&
           world.workers[1]->boundary == epoch;
  });
  world.Stop({0, 1});
  world.Install({0, 1, 2}, "Rejoin");
  members.join();
  returns.join();
  EXPECT_THAT(weights[2], testing::Each(9.0f));
}

}  // namespace
}  // namespace ringmaster::engine
