// Process sets with tensors on fake GPUs, when a member dies at every call of a view.
#include <gmock/gmock.h>

#include "collectives/engine/test_requests.h"
#include "collectives/nccl/gpu_test_world.h"
#include "tests/support/rounds.h"

namespace ringmaster::nccl {
namespace {

using engine::Await;
using engine::Kind;
using engine::kLong;
using engine::Operation;
using engine::Request;
using engine::TestWorker;
using engine::Without;

// Each of four workers takes part in one of two sets and in the world; the sums tell who took part.
struct Outcome {
  float in_set = 0, scattered = 0, in_world = 0;
  size_t set_size = 0;
  bool operator==(const Outcome&) const = default;
};

class Drill {
 public:
  explicit Drill(int version) : gpus(4, {.version = version}), outcomes(4), errors(4), done(4, 0) {}
  ~Drill() { Join(); }

  void Start() {
    for (int id : {0, 1, 2, 3}) {
      threads.emplace_back([this, id] {
        TestWorker& w = *gpus.world.workers[id];
        (void)w.engine->AwaitEntered(engine::Engine::Clock::now() + kLong);
        const Status status = Work(w);
        std::lock_guard lock(gpus.world.mu);
        if (!status.ok()) errors[id] = status.message();
        done[id] = 1;
        gpus.world.changed.notify_all();
      });
    }
  }
  void Join() {
    for (auto& thread : threads) thread.join();
    threads.clear();
  }
  // Waits until the first worker has come to the fault of `epoch`. Then nobody gets much further,
  // but in which call each of the others waits depends on its set. False: everybody has finished
  // before.
  bool AwaitFault(uint64_t epoch) {
    bool hit = false;
    gpus.world.Await([&] {
      hit = !gpus.world.past_fault[epoch].empty();
      return hit || done == std::vector<int>(4, 1);
    });
    return hit;
  }

  GpuTestWorld gpus;
  std::vector<std::vector<Outcome>> outcomes;
  std::vector<std::string> errors;  // guarded by the world's mu, as is `done`
  std::vector<int> done;

 private:
  Status Work(TestWorker& w) {
    int own = 0;
    std::vector<int> sets;
    for (int first : {0, 1}) {  // {0, 2} and {1, 3}
      Request add{engine::kAddSetName, Kind::kAddSet};
      add.members = {engine::TestWorld::NameOf(first), engine::TestWorld::NameOf(first + 2)};
      const auto added = w.Ask(std::move(add), nullptr, nullptr);
      if (Status s = Await(added); !s.ok()) return s;
      if (w.id % 2 == first) own = added->process_set;
      sets.push_back(added->process_set);
    }
    for (int step = 0; step < 2; ++step) {
      Outcome outcome;
      if (Status s = Step(w, own, &outcome); !s.ok()) return s;
      std::lock_guard lock(gpus.world.mu);
      outcomes[w.id].push_back(outcome);
    }
    for (int set : sets) {
      if (Status s = engine::RemoveSet(w, set); !s.ok()) return s;
    }
    return {};
  }

  Status Step(TestWorker& w, int set, Outcome* outcome) {
    const auto bit = static_cast<float>(1 << w.id);
    float* mine = gpus.OnDevice(w.id, std::vector<float>(3, bit));
    float* all = gpus.OnDevice(w.id, std::vector<float>(3, bit));
    Request scatter{"scatter", Kind::kReducescatter, RM_FLOAT32, RM_SUM, "", 8, 1, 1};
    scatter.shape = {4, 2};
    const auto scattered =
        Ask(w, scatter, set, gpus.OnDevice(w.id, std::vector<float>(8, bit)), nullptr);
    const Request reduce{"mine", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1, 1};
    const Request whole{"all", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1, 1};
    for (const auto& operation :
         {scattered, Ask(w, reduce, set, mine, mine), Ask(w, whole, 0, all, all)}) {
      if (Status s = Await(operation); !s.ok()) return s;
    }
    const auto* sums = reinterpret_cast<const float*>(scattered->gathered->data());
    *outcome = {mine[0], sums[0], all[0], scattered->rows_by_rank.size()};
    engine::StepResult step;
    return w.engine->StepEnd(&step);
  }

  std::shared_ptr<Operation> Ask(TestWorker& w, Request request, int set, const void* in,
                                 void* out) {
    request.process_set = set;
    request.on_gpu = true;
    auto operation = std::make_shared<Operation>(std::move(request), in, out, 0,
                                                 Operation::Splits(), Operation::OnDevice{});
    if (Status s = w.engine->Submit(operation); !s.ok()) operation->Complete(s);
    return operation;
  }

  std::vector<std::thread> threads;
};

void CheckSurvivors(Drill* run, int victim) {
  const int partner = (victim + 2) % 4, other = 1 - victim % 2;
  for (int id : Without({0, 1, 2, 3}, victim)) {
    EXPECT_EQ(run->errors[id], "") << "worker " << id;
    ASSERT_EQ(run->outcomes[id].size(), 2u) << "worker " << id;
  }
  const auto bit = static_cast<float>(1 << partner), both = static_cast<float>(5 << victim % 2);
  for (int step = 0; step < 2; ++step) {
    const Outcome &whole = run->outcomes[other][step], &lone = run->outcomes[partner][step];
    EXPECT_EQ(whole, run->outcomes[other + 2][step]) << "the set without a death";
    EXPECT_EQ(whole.in_set, static_cast<float>(5 << other));
    EXPECT_THAT(lone.in_set, testing::AnyOf(bit, both));
    EXPECT_EQ(lone.scattered, lone.set_size == 1 ? bit : both);
    EXPECT_EQ(lone.in_world, whole.in_world);
  }
}

class SetsOnGpus : public testing::TestWithParam<int> {};

TEST_P(SetsOnGpus, GoOnAmongTheirSurvivorsAtWhateverCallAMemberDies) {
  int deaths = 0;
  for (int victim : {0, 3}) {
    for (int call = 2 + victim;; call += support::Rounds(2, 7)) {
      SCOPED_TRACE("victim " + std::to_string(victim) + " at call " + std::to_string(call));
      Drill run(GetParam());
      const std::vector<int> left = Without({0, 1, 2, 3}, victim);
      const uint64_t epoch = run.gpus.world.next_epoch;
      run.gpus.world.faults[epoch] = {call, {}};
      run.gpus.world.Install({0, 1, 2, 3});
      run.Start();
      const bool dies = run.AwaitFault(epoch);
      if (dies) {
        run.gpus.world.workers[victim]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
        run.gpus.world.Stop(left);
        run.gpus.world.Install(left, "WorkerLost");
      }
      run.Join();
      if (!dies) break;
      ++deaths;
      CheckSurvivors(&run, victim);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(deaths, support::Rounds(12, 4)) << "too few calls were reached";
}

INSTANTIATE_TEST_SUITE_P(Nccl, SetsOnGpus, testing::Values(kNoShrink, kAllThereIs),
                         [](const auto& info) {
                           return info.param == kNoShrink ? "WithoutShrink" : "WithRevoke";
                         });

}  // namespace
}  // namespace ringmaster::nccl
