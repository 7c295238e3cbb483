// Whom a rank means: scripts that name workers by ranks, in worlds in which workers die at any
// call. All that are left must mean the same workers all the time, and be among them themselves.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"
#include "tests/support/rounds.h"

namespace ringmaster::engine {
namespace {

using ::testing::Contains;

Engine::Clock::time_point Soon() { return Engine::Clock::now() + kLong; }

// What a script has seen, by the number of steps that were complete: whom the ranks meant, and what
// came from them.
using Log = std::map<uint64_t, std::vector<std::string>>;
using Script = std::function<Status(TestWorker&, Log*)>;

// Each rank broadcasts, one after the other. If a rank is gone all begin again, with those that the
// ranks mean then.
Status BroadcastFromEachRank(TestWorker& w, Log* log) {
  std::vector<std::string>& lines = (*log)[w.engine->info().step];
  const auto ranks = [&] { return w.engine->info().step_ranks(); };
  const std::string view = ViewNumber(ranks().epoch);
  EXPECT_THAT(ranks().workers, Contains(TestWorld::NameOf(w.id))) << "its own name";
  for (size_t rank = 0; rank < ranks().workers.size(); ++rank) {
    const std::string root = ranks().workers[rank];
    int32_t data = w.id;
    const auto operation =
        w.Ask({"from " + std::to_string(rank), Kind::kBroadcast, RM_INT32, RM_SUM, root, 1, 1, 1},
              &data, &data);
    const Status status = Await(operation);
    lines.push_back("view " + view + ": from rank " + std::to_string(rank) + ", " + root + ", " +
                    (status.ok() ? std::to_string(data) : status.message()));
    if (status.code() == RM_ERR_ROOT_LOST) return BroadcastFromEachRank(w, log);
    if (!status.ok()) return status;
  }
  return {};
}

Status EndStep(TestWorker& w) {
  StepResult result;
  return w.engine->StepEnd(&result);
}

// Two steps. In the second one all shut down and begin again.
Status TwoSteps(TestWorker& w, Log* log) {
  if (Status s = w.engine->AwaitEntered(Soon()); !s.ok()) return s;
  if (Status s = BroadcastFromEachRank(w, log); !s.ok()) return s;
  if (Status s = EndStep(w); !s.ok()) return s;
  if (Status s = BroadcastFromEachRank(w, log); !s.ok()) return s;
  if (Status s = w.engine->Shutdown(Soon()); !s.ok()) return s;
  if (Status s = w.engine->Wake(Soon()); !s.ok()) return s;
  if (Status s = BroadcastFromEachRank(w, log); !s.ok()) return s;
  if (Status s = EndStep(w); !s.ok()) return s;
  return BroadcastFromEachRank(w, log);
}

// The same of a worker that may join at the end of a step.
Status StepAfterAJoin(TestWorker& w, Log* log) {
  if (Status s = w.engine->AwaitEntered(Soon()); !s.ok()) return s;
  if (Status s = BroadcastFromEachRank(w, log); !s.ok()) return s;
  if (Status s = EndStep(w); !s.ok()) return s;
  return BroadcastFromEachRank(w, log);
}

// Scripts that run in a world.
class Cast {
 public:
  explicit Cast(int workers) : world(workers) {}
  ~Cast() {
    for (auto& worker : world.workers) worker->engine->PostEnd({RM_ERR_SHUTDOWN, "the test ends"});
    Join();
  }

  // Runs `script` on a thread of its own.
  void Start(int id, const Script& script) {
    threads_.emplace_back([this, id, script] {
      Log log;
      const Status status = script(*world.workers[id], &log);
      std::lock_guard lock(world.mu);
      logs_[id] = std::move(log);
      ended_[id] = status;
      world.changed.notify_all();
    });
  }
  // Waits until the fault of `epoch` has come to all of `ids`. False: all have ended before it.
  bool AwaitFault(uint64_t epoch, const std::vector<int>& ids) {
    bool hit = false;
    world.Await([&] {
      hit = world.past_fault[epoch].size() == ids.size();
      return hit ||
             std::all_of(ids.begin(), ids.end(), [&](int id) { return ended_.contains(id); });
    });
    return hit;
  }
  // `victim` dies, and the others of `ids` get a view without it.
  std::vector<int> Lose(int victim, const std::vector<int>& ids) {
    world.workers[victim]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
    const std::vector<int> left = Without(ids, victim);
    world.Stop(left);
    world.Install(left, "WorkerLost");
    return left;
  }
  void Join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }
  // All of `ids` have come to the end and have seen the same in the steps that they have had.
  void Check(const std::vector<int>& ids) {
    Join();
    for (int id : ids) EXPECT_TRUE(ended_[id].ok()) << id << ": " << ended_[id].message();
    for (int id : ids) {
      for (const auto& [step, lines] : logs_[id]) {
        const Log& first = logs_[ids.front()];
        if (!first.contains(step)) continue;
        EXPECT_EQ(lines, first.at(step))
            << "worker " << id << " and " << ids.front() << ", step " << step;
      }
      EXPECT_EQ(logs_[id].rbegin()->first, logs_[ids.front()].rbegin()->first) << "worker " << id;
    }
  }

  TestWorld world;

 private:
  std::map<int, Log> logs_;      // guarded by world.mu
  std::map<int, Status> ended_;  // guarded by world.mu
  std::vector<std::thread> threads_;
};

// The calls of the exchange with which the first view begins.
constexpr int kInstallCalls = 2;
// More calls than a recovery makes.
constexpr int kRecoveryCalls = 9;

// Rank 1 dies at each call of the first view, and then rank 0 at each call of the next one's
// recovery.
TEST(StepRanksTest, AllMeanTheSameWhereverTwoDieOneAfterTheOther) {
  const int stride = support::Rounds(4, 13);
  int points = 0;
  bool reached = true;
  for (int first = kInstallCalls; reached; first += stride) {
    for (const auto& completes : {std::set<int>{}, {2}, {0, 3}}) {
      for (int second = first % 2; second < kRecoveryCalls; second += 2) {
        SCOPED_TRACE("calls " + std::to_string(first) + ", completed by " +
                     testing::PrintToString(completes) + ", and " + std::to_string(second));
        Cast cast(4);
        const uint64_t epoch = cast.world.next_epoch;
        cast.world.faults[epoch] = {first, completes};
        cast.world.faults[epoch + 1] = {second, {3}};
        std::vector<int> ids = {0, 1, 2, 3};
        cast.world.Install(ids);
        for (int id : ids) cast.Start(id, TwoSteps);
        reached = cast.AwaitFault(epoch, ids);
        if (!reached) break;
        ids = cast.Lose(1, ids);
        if (cast.AwaitFault(epoch + 1, ids)) {
          ++points;
          ids = cast.Lose(0, ids);
        }
        cast.Check(ids);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(points, 40 * 3 * 4 / stride / 2) << "too few calls were reached to mean something";
}

// A joiner enters at the end of a step. The view dies at each call, with each of its workers, and
// the next one at each call of its recovery.
TEST(StepRanksTest, AllMeanTheSameWhereverAViewWithAJoinerDies) {
  const int stride = support::Rounds(1, 3);
  constexpr int kJoiner = 3;
  int points = 0;
  for (int victim : {0, 1, kJoiner}) {
    bool reached = true;
    for (int first = victim % stride; reached; first += stride) {
      for (const auto& completes : {std::set<int>{}, {0, 2}, {2, kJoiner}}) {
        const int second = (first + points) % kRecoveryCalls;
        SCOPED_TRACE("victim " + std::to_string(victim) + ", calls " + std::to_string(first) +
                     ", completed by " + testing::PrintToString(completes) + ", and " +
                     std::to_string(second));
        std::vector<int> weights(4, 5);
        Cast cast(3);
        TestWorld& world = cast.world;
        const uint64_t epoch = world.Install({0, 1, 2});
        world.Enter({0, 1, 2});
        world.AddWorker(false);
        for (int id : {0, 1, 2, kJoiner})
          ASSERT_TRUE(world.workers[id]->state.Register("w", &weights[id], sizeof(int)).ok());
        world.faults[epoch + 1] = {first, completes};
        world.faults[epoch + 2] = {second, {2}};
        for (int id : {0, 1, 2}) {
          world.workers[id]->engine->PostArmed(epoch, true);
          cast.Start(id, [epoch](TestWorker& w, Log* log) {
            StepResult result;
            do {
              if (Status s = w.engine->StepEnd(&result); !s.ok()) return s;
            } while (result.epoch == epoch);
            return StepAfterAJoin(w, log);
          });
        }
        world.Await([&] {
          return world.workers[0]->boundary == epoch && world.workers[1]->boundary == epoch &&
                 world.workers[2]->boundary == epoch;
        });
        std::vector<int> ids = {0, 1, 2, kJoiner};
        world.Stop({0, 1, 2});
        world.Install(ids, "PodJoined");
        cast.Start(kJoiner, StepAfterAJoin);
        reached = cast.AwaitFault(epoch + 1, ids);
        if (reached) {
          ++points;
          ids = cast.Lose(victim, ids);
          if (cast.AwaitFault(epoch + 2, ids)) ids = cast.Lose(victim == 1 ? 0 : 1, ids);
        }
        cast.Check(ids);
        if (HasFailure()) return;
        if (!reached) break;
      }
    }
  }
  EXPECT_GT(points, 3 * 3 * 15 / stride) << "too few calls were reached to mean something";
}

// To worker 2, whose library is of an earlier version, a rank is whoever has it in the current
// view.
TEST(StepRanksTest, WhereALibraryKnowsNoneARankFollowsTheViewForAll) {
  TestWorld world(4);
  world.knows_no_step_ranks = {2};
  world.Install({0, 1, 2, 3});
  world.Enter({0, 1, 2, 3});
  world.workers[1]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
  world.Stop({0, 2, 3});
  const uint64_t epoch = world.Install({0, 2, 3}, "WorkerLost");
  world.Await([&] {
    return std::all_of(world.workers.begin(), world.workers.end(), [&](const auto& w) {
      return w->id == 1 || w->installed_views.back() == epoch;
    });
  });
  world.StopNothing({0, 2, 3});  // so the view has been entered
  for (int id : {0, 3}) {
    const StepRanks ranks = world.workers[id]->engine->info().step_ranks();
    EXPECT_EQ(ranks.epoch, epoch) << "worker " << id;
    EXPECT_EQ(ranks.workers, world.workers[id]->engine->info().workers()) << "worker " << id;
  }
}

}  // namespace
}  // namespace ringmaster::engine
