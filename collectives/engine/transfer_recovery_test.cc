// Sends and receives when a rank dies.
#include <gmock/gmock.h>

#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"
#include "tests/support/rounds.h"

namespace ringmaster::engine {
namespace {

constexpr int kWorkers = 4, kSteps = 2;

// How the transfers ended in which a worker took part, by name, and whether its data is right.
struct Outcome {
  std::map<std::string, Status> by_name;
  bool right = true;
  std::string error;  // of the worker's other operations
};

// In each step every worker sends to the next one, and all reduce. One worker dies at the n-th
// fault point that its engine reaches.
class TransferDrill {
 public:
  TransferDrill(bool shm, int victim, int at)
      : world(kWorkers, shm), outcomes(kWorkers), done(kWorkers, 0) {
    PrepareDeath(world.workers[victim].get(), at);
    world.Install({0, 1, 2, 3});
    for (int id = 0; id < kWorkers; ++id) {
      threads_.emplace_back([this, id] {
        TestWorker& w = *world.workers[id];
        (void)w.engine->AwaitEntered(Engine::Clock::now() + kLong);
        Work(w, &outcomes[id]);
        std::lock_guard lock(world.mu);
        done[id] = 1;
        world.changed.notify_all();
      });
    }
  }
  // False: the victim never came to that point.
  bool Run(const std::vector<int>& left) {
    bool died = false;
    world.Await([&] {
      died = dead;
      return dead || done == std::vector<int>(kWorkers, 1);
    });
    if (died) {
      world.Stop(left);
      world.Install(left, "WorkerLost");
    }
    for (auto& thread : threads_) thread.join();
    return died;
  }

  TestWorld world;
  std::vector<Outcome> outcomes;
  std::vector<int> done;
  bool dead = false;  // guarded by world.mu

 private:
  void PrepareDeath(TestWorker* w, int at) {
    w->engine->Close();
    w->engine = std::make_unique<Engine>(Engine::Options{
        w, w, &w->state, true, size_t{1} << 20, [this, w, at](FaultPoint, uint64_t) {
          std::lock_guard lock(world.mu);
          if (points_++ != at) return;
          dead = true;
          world.changed.notify_all();
          w->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
        }});
  }
  static void Work(TestWorker& w, Outcome* outcome) {
    for (int step = 0; step < kSteps; ++step) {
      const int before = (w.id + kWorkers - 1) % kWorkers, next = (w.id + 1) % kWorkers;
      const std::string at = std::to_string(step) + ": ";
      std::vector<float> sent(9, static_cast<float>(w.id + step)), received(9, -1), all(3, 1);
      const auto send = AskTransfer(w, w.id, next, at + std::to_string(w.id), &sent);
      const auto receive = AskTransfer(w, before, w.id, at + std::to_string(before), &received);
      const Status reduced = w.Allreduce("all", &all);
      for (const auto& operation : {send, receive})
        outcome->by_name[operation->request.name] = Await(operation);
      if (receive->status().ok())
        outcome->right &= received == std::vector<float>(9, static_cast<float>(before + step));
      StepResult result;
      const Status ended = reduced.ok() ? w.engine->StepEnd(&result) : reduced;
      if (!ended.ok()) {
        outcome->error = ended.message();
        return;
      }
    }
  }

  int points_ = 0;
  std::vector<std::thread> threads_;
};

// A transfer between survivors succeeds, wherever another rank dies; a transfer with the victim
// succeeds or fails with RM_ERR_ROOT_LOST.
void Check(const TransferDrill& drill, int victim, const std::vector<int>& left) {
  for (int id : left) {
    const Outcome& outcome = drill.outcomes[id];
    EXPECT_EQ(outcome.error, "") << "worker " << id;
    EXPECT_TRUE(outcome.right) << "worker " << id;
    EXPECT_EQ(outcome.by_name.size(), 2u * kSteps) << "worker " << id;
    for (const auto& [name, status] : outcome.by_name) {
      const int from = name.back() - '0', to = (from + 1) % kWorkers;
      if (from != victim && to != victim) {
        EXPECT_TRUE(status.ok()) << name << " of " << id << ": " << status.message();
      } else if (!status.ok()) {
        EXPECT_EQ(status.code(), RM_ERR_ROOT_LOST) << status.message();
        EXPECT_THAT(status.message(),
                    testing::HasSubstr(TestWorld::NameOf(victim) + " has died or left"));
      }
    }
  }
}

TEST(RecoveryTest, TransfersGoOnBetweenSurvivorsWhereverAnotherRankDies) {
  for (bool shm : {true, false}) {
    int deaths = 0;
    for (int victim : {0, 2}) {
      const std::vector<int> left = Without({0, 1, 2, 3}, victim);
      for (int at = 0;; at += support::Rounds(1, 2)) {
        SCOPED_TRACE("victim " + std::to_string(victim) + " at point " + std::to_string(at));
        TransferDrill drill(shm, victim, at);
        if (!drill.Run(left)) break;
        ++deaths;
        Check(drill, victim, left);
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(deaths, 20);
  }
}

// The view ends at each call of its communicator, for several subsets of the ranks that have
// completed that call, and all ranks live. Nothing may be lost, and each transfer is done once.
TEST(RecoveryTest, TransfersSurviveAViewThatEndsAtAnyCall) {
  for (bool shm : {true, false}) {
    int calls = 1 << 10;
    for (int call = 0; call < calls; call += support::Rounds(1, 3)) {
      for (const std::set<int>& completes : {std::set<int>{}, {0}, {1}, {2}, {0, 1}, {1, 2}}) {
        SCOPED_TRACE("call " + std::to_string(call) + " completed by " +
                     testing::PrintToString(completes));
        TestWorld world(3, shm);
        const uint64_t epoch = world.next_epoch;
        world.faults[epoch] = {call, completes};
        world.Install({0, 1, 2});
        std::atomic<int> finished{0};
        std::thread members([&] {
          OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
            (void)w.engine->AwaitEntered(Engine::Clock::now() + kLong);
            for (int pass = 0; pass < 2; ++pass) {
              std::vector<float> there(4, static_cast<float>(w.id + pass)), back = there;
              if (w.id < 2) {
                const auto first = AskTransfer(w, 0, 1, "there", &there);
                const auto second = AskTransfer(w, 1, 0, "back", &back);
                EXPECT_TRUE(Await(first).ok()) << first->status().message();
                EXPECT_TRUE(Await(second).ok()) << second->status().message();
                EXPECT_THAT(there, testing::Each(static_cast<float>(pass)));
                EXPECT_THAT(back, testing::Each(static_cast<float>(pass + 1)));
              }
              std::vector<float> all(3, 1.0f);
              EXPECT_TRUE(w.Allreduce("all", &all).ok());
              EXPECT_THAT(all, testing::Each(3.0f));
            }
            std::lock_guard lock(world.mu);
            ++finished;
            world.changed.notify_all();
          });
        });
        bool cut = false;
        world.Await([&] {
          cut = world.past_fault[epoch].size() == 3;
          return cut || finished == 3;
        });
        if (cut) {
          world.Stop({0, 1, 2});
          world.Install({0, 1, 2}, "LinkBroken");
        }
        members.join();
        if (!cut) calls = call;
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(calls, 8);
  }
}

}  // namespace
}  // namespace ringmaster::engine
