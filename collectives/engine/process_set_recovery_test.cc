// Process sets when members die, leave and join.
#include <gmock/gmock.h>

#include <algorithm>

#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"
#include "tests/support/rounds.h"

namespace ringmaster::engine {
namespace {

// The results of one step, in which each of four workers works in one of two sets and in the world.
// The sums tell who took part.
struct SetStep {
  float in_set = 0, scattered = 0, in_world = 0;
  size_t set_size = 0;
  bool operator==(const SetStep&) const = default;
};

Status RunSetStep(TestWorker& w, int set, SetStep* outcome) {
  const std::vector<float> scatter_in(8, static_cast<float>(1 << w.id));
  std::vector<float> mine(3, static_cast<float>(1 << w.id)), all = mine;
  Request reduce{"mine", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1, 1};
  Request scatter{"scatter", Kind::kReducescatter, RM_FLOAT32, RM_SUM, "", 8, 1, 1};
  scatter.shape = {4, 2};
  Request whole{"all", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1, 1};
  reduce.process_set = scatter.process_set = set;
  const auto scattered = w.Ask(scatter, scatter_in.data(), nullptr);
  for (const auto& operation :
       {w.Ask(reduce, mine.data(), mine.data()), scattered, w.Ask(whole, all.data(), all.data())}) {
    if (!operation->WaitUntil(Engine::Clock::now() + kLong)) {
      return {RM_ERR_TIMEOUT, "'" + operation->request.name + "' hangs"};
    }
    if (Status s = operation->status(); !s.ok()) return s;
  }
  const auto* sums = reinterpret_cast<const float*>(scattered->gathered->data());
  *outcome = {mine[0], scattered->gathered_rows > 0 ? sums[0] : 0, all[0],
              scattered->rows_by_rank.size()};
  StepResult step;
  return w.engine->StepEnd(&step);
}

// One worker dies at the n-th fault point that its engine reaches.
class SetDrill {
 public:
  SetDrill(int victim, int at) : world(0), steps(4), error(4), done(4, 0) {
    for (int id = 0; id < 4; ++id) {
      TestWorker& w = world.AddWorker(true);
      if (id == victim) PrepareDeath(&w, at);
    }
  }
  ~SetDrill() {
    for (auto& thread : threads) thread.join();
  }
  void Start() {
    world.Install({0, 1, 2, 3});
    for (int id = 0; id < 4; ++id) {
      threads.emplace_back([this, id] {
        TestWorker& w = *world.workers[id];
        (void)w.engine->AwaitEntered(Engine::Clock::now() + kLong);
        const Status status = Work(w);
        std::lock_guard lock(world.mu);
        if (!status.ok()) error[id] = status.message();
        done[id] = 1;
        world.changed.notify_all();
      });
    }
  }
  void Join() {
    for (auto& thread : threads) thread.join();
    threads.clear();
  }

  TestWorld world;
  std::vector<std::vector<SetStep>> steps;
  std::vector<std::string> error;
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
  Status Work(TestWorker& w) {
    int own = 0;
    for (int first : {0, 1}) {  // {0, 2} and {1, 3}
      Request add{kAddSetName, Kind::kAddSet};
      add.members = {TestWorld::NameOf(first), TestWorld::NameOf(first + 2)};
      const auto added = w.Ask(std::move(add), nullptr, nullptr);
      if (!added->WaitUntil(Engine::Clock::now() + kLong)) return {RM_ERR_TIMEOUT, "add hangs"};
      if (Status s = added->status(); !s.ok()) return s;
      if (w.id % 2 == first) own = added->process_set;
    }
    for (int step = 0; step < 2; ++step) {
      SetStep outcome;
      if (Status s = RunSetStep(w, own, &outcome); !s.ok()) return s;
      steps[w.id].push_back(outcome);
    }
    return {};
  }

  int points_ = 0;
  std::vector<std::thread> threads;
};

TEST(RecoveryTest, SetsGoOnAmongTheirSurvivorsWhereverAMemberDies) {
  int deaths = 0;
  for (int victim : {0, 3}) {
    for (int at = 0;; at += support::Rounds(1, 2)) {
      SCOPED_TRACE("victim " + std::to_string(victim) + " at point " + std::to_string(at));
      SetDrill run(victim, at);
      run.Start();
      bool dead = false;
      run.world.Await([&] {
        dead = run.dead;
        return dead || run.done == std::vector<int>(4, 1);
      });
      const std::vector<int> left = Without({0, 1, 2, 3}, victim);
      if (dead) {
        run.world.Stop(left);
        run.world.Install(left, "WorkerLost");
      }
      run.Join();
      if (!dead) break;
      ++deaths;
      const int partner = (victim + 2) % 4, other = 1 - victim % 2;
      for (int id : left) {
        EXPECT_EQ(run.error[id], "") << "worker " << id;
        ASSERT_EQ(run.steps[id].size(), 2u) << "worker " << id;
      }
      for (int step = 0; step < 2; ++step) {
        EXPECT_EQ(run.steps[other][step], run.steps[other + 2][step]) << "the set without a death";
        EXPECT_EQ(run.steps[other][step].in_set, static_cast<float>(5 << other));
        const SetStep& lone = run.steps[partner][step];
        const auto bit = static_cast<float>(1 << partner),
                   both = static_cast<float>(5 << victim % 2);
        EXPECT_THAT(lone.in_set, testing::AnyOf(bit, both));
        EXPECT_EQ(lone.scattered, lone.set_size == 1 ? bit : both);
        EXPECT_EQ(lone.in_world, run.steps[other][step].in_world);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(deaths, 20);
}

TEST(BoundaryTest, AJoinerKnowsTheSetsAndIsInNone) {
  TestWorld world(2);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  TestWorker& joiner = world.AddWorker(false);
  float weight[3] = {5, 5, 0};
  for (int id = 0; id < 3; ++id) {
    ASSERT_TRUE(world.workers[id]->state.Register("w", &weight[id], sizeof(float)).ok());
  }
  const auto reduce = [](TestWorker& w, int set) {
    std::vector<float> data(2, 1.0f);
    Request request{"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 2, 1, 1};
    request.process_set = set;
    const auto operation = w.Ask(std::move(request), data.data(), data.data());
    if (!operation->WaitUntil(Engine::Clock::now() + kLong)) return std::string("hangs");
    return operation->status().ok() ? std::to_string(static_cast<int>(data[0]))
                                    : operation->status().message();
  };
  std::thread members([&] {
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      Request add{kAddSetName, Kind::kAddSet};
      add.members = {TestWorld::NameOf(0), TestWorld::NameOf(1)};
      ASSERT_TRUE(w.Ask(std::move(add), nullptr, nullptr)->WaitUntil(Engine::Clock::now() + kLong));
      w.engine->PostArmed(epoch, true);
      StepResult result;
      do {
        ASSERT_TRUE(w.engine->StepEnd(&result).ok());
      } while (result.epoch == epoch);
      EXPECT_EQ(reduce(w, 1), "2");
    });
  });
  world.Await(
      [&] { return world.workers[0]->boundary == epoch && world.workers[1]->boundary == epoch; });
  world.Stop({0, 1});
  world.Install({0, 1, 2}, "PodJoined");
  EXPECT_TRUE(joiner.engine->AwaitEntered(Engine::Clock::now() + kLong).ok());
  std::vector<int> ranks;
  EXPECT_TRUE(joiner.engine->info().MembersOf(1, nullptr, &ranks));
  EXPECT_EQ(ranks, (std::vector<int>{0, 1}));
  EXPECT_THAT(reduce(joiner, 1), testing::HasSubstr("not in process set 1"));
  members.join();
}

}  // namespace
}  // namespace ringmaster::engine
