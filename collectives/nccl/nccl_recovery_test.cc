// Kills each victim at every call of a view, NCCL's launches and connects among them, with each
// subset of the survivors that has completed that call, with tensors on fake GPUs; and compares
// what the survivors have.
#include <gmock/gmock.h>

#include <algorithm>

#include "collectives/engine/test_requests.h"
#include "collectives/nccl/gpu_test_world.h"
#include "tests/support/rounds.h"

namespace ringmaster::nccl {
namespace {

using engine::Kind;
using engine::kLong;
using engine::Operation;
using engine::Request;
using engine::StepResult;
using engine::TestWorker;
using engine::TestWorld;
using engine::Without;

constexpr int kSteps = 2;
constexpr size_t kRows = 7;  // of the reducescatter, two elements each

// What a worker has seen of one step: equal on all survivors, whatever happened.
struct StepOutcome {
  std::vector<float> sum;  // fused with the next one
  std::vector<float> scaled;
  std::vector<int64_t> product;
  std::vector<int16_t> on_host;  // NCCL has no such type
  std::vector<float> prepared;   // its two tensors, one after the other
  std::vector<float> first_of_group;
  std::vector<int32_t> second_of_group;
  std::vector<int32_t> gathered;
  std::vector<size_t> shares;                     // of the reducescatter: rows by rank
  std::map<int, std::vector<int32_t>> broadcast;  // by root
  std::map<int, std::string> lost;                // broadcasts that failed, by root
  bool operator==(const StepOutcome&) const = default;
};

// What each worker alone has.
struct OwnOutcome {
  std::vector<float> scattered;
  std::vector<size_t> received;  // rows by rank
  std::vector<int32_t> exchanged;
};

int32_t BroadcastOf(int id, int step) { return 100 * (id + 1) + step; }

// Asks for a step's collectives of one worker and reads their results.
class Step {
 public:
  Step(GpuTestWorld* gpus, TestWorker& w, int step) : gpus_(gpus), w_(w), step_(step) {}

  Status Run(StepOutcome* outcome, OwnOutcome* own) {
    const auto bit = static_cast<float>(1 << w_.id);
    const auto sum = Reduce("sum", RM_FLOAT32, std::vector<float>(100, bit + 1024.0f * step_));
    const auto scaled = Reduce("scaled", RM_FLOAT32, std::vector<float>(33, bit), RM_SUM, 0.5, 4);
    const auto product =
        Reduce("product", RM_INT64, std::vector<int64_t>(20, w_.id + 2), RM_PRODUCT);
    const auto on_host = Reduce("on host", RM_INT16, std::vector<int16_t>(5, 1 << w_.id));
    float* const pieces[] = {gpus_->OnDevice(w_.id, std::vector<float>(3, bit)),
                             gpus_->OnDevice(w_.id, std::vector<float>(4, bit))};
    Prepared(pieces);
    const auto group = Group();
    if (group.empty()) return {RM_ERR_INTERNAL, "the group was refused"};
    const auto gather = Ask({"row", Kind::kAllgather, RM_INT32, RM_SUM, "", 3, 1, 1},
                            gpus_->OnDevice(w_.id, std::vector<int32_t>(3, w_.id)), nullptr, 1);
    Request request{"scatter", Kind::kReducescatter, RM_FLOAT32, RM_SUM, "", 2 * kRows, 1, 1};
    request.shape = {kRows, 2};
    const auto scatter =
        Ask(request, gpus_->OnDevice(w_.id, std::vector<float>(2 * kRows, bit)), nullptr);
    const auto exchange = Alltoall();
    std::map<int, std::shared_ptr<Operation>> broadcasts;
    for (int root : {0, 2}) {
      auto* data = gpus_->OnDevice(w_.id, std::vector<int32_t>(4, BroadcastOf(w_.id, step_)));
      broadcasts[root] = Ask({"broadcast " + std::to_string(root), Kind::kBroadcast, RM_INT32,
                              RM_SUM, TestWorld::NameOf(root), 4, 1, 1},
                             data, data);
    }
    if (Status s = AwaitAll(); !s.ok()) return s;
    outcome->sum = Read<float>(*sum);
    outcome->scaled = Read<float>(*scaled);
    outcome->product = Read<int64_t>(*product);
    outcome->on_host = Read<int16_t>(*on_host);
    outcome->prepared.assign(pieces[0], pieces[0] + 3);
    outcome->prepared.insert(outcome->prepared.end(), pieces[1], pieces[1] + 4);
    outcome->first_of_group = Read<float>(*group[0]);
    outcome->second_of_group = Read<int32_t>(*group[1]);
    outcome->gathered = Gathered<int32_t>(*gather, 3);
    outcome->shares = scatter->rows_by_rank;
    own->scattered = Gathered<float>(*scatter, 2);
    own->exchanged = Gathered<int32_t>(*exchange, 1);
    own->received = exchange->rows_by_rank;
    for (const auto& [root, operation] : broadcasts) {
      if (operation->status().ok()) {
        outcome->broadcast[root] = Read<int32_t>(*operation);
      } else {
        outcome->lost[root] = operation->status().message();
      }
    }
    StepResult result;
    if (Status s = w_.engine->StepEnd(&result); !s.ok()) return s;
    if (result.step == static_cast<uint64_t>(step_ + 1)) return {};
    return {RM_ERR_INTERNAL, "step number is off"};
  }

 private:
  std::shared_ptr<Operation> Make(Request request, const void* in, void* out, size_t rows = 0,
                                  Operation::Splits splits = {}) {
    request.on_gpu = true;
    return std::make_shared<Operation>(std::move(request), in, out, rows, std::move(splits),
                                       Operation::OnDevice{});
  }
  std::shared_ptr<Operation> Submit(std::shared_ptr<Operation> operation) {
    if (Status s = w_.engine->Submit(operation); !s.ok()) operation->Complete(s);
    asked_.push_back(operation);
    return operation;
  }
  std::shared_ptr<Operation> Ask(Request request, const void* in, void* out, size_t rows = 0) {
    return Submit(Make(std::move(request), in, out, rows));
  }
  template <typename T>
  std::shared_ptr<Operation> Reduce(const char* name, rm_dtype dtype, const std::vector<T>& values,
                                    rm_op op = RM_SUM, double prescale = 1, double postscale = 1) {
    T* data = gpus_->OnDevice(w_.id, values);
    return Ask({name, Kind::kAllreduce, dtype, op, "", values.size(), prescale, postscale}, data,
               data);
  }
  void Prepared(float* const* pieces) {
    Request request{"prepared", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 7, 1, 1};
    request.on_gpu = true;
    request.pieces = "[3][4]";
    const auto listed = std::make_shared<engine::Pieces>(
        engine::Pieces{{pieces[0], pieces[0], 3}, {pieces[1], pieces[1], 4}});
    Submit(std::make_shared<Operation>(std::move(request), listed, Operation::OnDevice{}));
  }
  std::vector<std::shared_ptr<Operation>> Group() {
    Request first{"first", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1, 1};
    Request second{"second", Kind::kAllreduce, RM_INT32, RM_SUM, "", 7, 1, 1};
    first.group = second.group = engine::GroupOf({"first", "second"});
    auto* floats = gpus_->OnDevice(w_.id, std::vector<float>(3, static_cast<float>(1 << w_.id)));
    auto* ints = gpus_->OnDevice(w_.id, std::vector<int32_t>(7, 1 << w_.id));
    std::vector<std::shared_ptr<Operation>> group = {Make(first, floats, floats),
                                                     Make(second, ints, ints)};
    if (!w_.engine->Submit(std::span<const std::shared_ptr<Operation>>(group)).ok()) return {};
    asked_.insert(asked_.end(), group.begin(), group.end());
    return group;
  }
  // Sends to each worker one row more than its id says; the values tell from whom and to whom.
  std::shared_ptr<Operation> Alltoall() {
    Operation::Splits splits;
    splits.workers = w_.engine->info().workers();
    std::vector<int32_t> in;
    for (const std::string& name : splits.workers) {
      const int to = name.back() - '0';
      splits.rows.push_back(static_cast<uint64_t>(to) + 1);
      in.insert(in.end(), static_cast<size_t>(to) + 1, 10 * w_.id + to);
    }
    const size_t rows = in.size();
    return Submit(Make({"exchange", Kind::kAlltoall, RM_INT32, RM_SUM, "", 1, 1, 1},
                       gpus_->OnDevice(w_.id, in), nullptr, rows, std::move(splits)));
  }
  Status AwaitAll() {
    for (auto& operation : asked_) {
      if (!operation->WaitUntil(engine::Engine::Clock::now() + kLong)) {
        return {RM_ERR_TIMEOUT, "'" + operation->request.name + "' hangs"};
      }
      const Status s = operation->status();
      if (!s.ok() && s.code() != RM_ERR_ROOT_LOST) {
        return {s.code(), "'" + operation->request.name + "': " + s.message()};
      }
    }
    return {};
  }
  template <typename T>
  static std::vector<T> Read(const Operation& operation) {
    const T* data = static_cast<const T*>(operation.out);
    return {data, data + operation.request.count};
  }
  template <typename T>
  static std::vector<T> Gathered(const Operation& operation, size_t of_row) {
    const T* data = reinterpret_cast<const T*>(operation.gathered->data());
    return {data, data + operation.gathered_rows * of_row};
  }

  GpuTestWorld* const gpus_;
  TestWorker& w_;
  const int step_;
  std::vector<std::shared_ptr<Operation>> asked_;
};

float SumOfBits(const std::vector<int>& ids) {
  float bits = 0;
  for (int id : ids) bits += static_cast<float>(1 << id);
  return bits;
}

// Each result has the parts of all workers, or of those left: that of the one view or of the other.
void CheckOutcome(const StepOutcome& o, int step, const std::vector<int>& all,
                  const std::vector<int>& left) {
  const auto bits = [&](float factor, float more) {
    const auto of = [&](const std::vector<int>& ids) {
      return SumOfBits(ids) * factor + more * static_cast<float>(ids.size());
    };
    return testing::AnyOf(testing::Each(of(all)), testing::Each(of(left)));
  };
  EXPECT_THAT(o.sum, bits(1, 1024.0f * static_cast<float>(step)));
  EXPECT_THAT(o.scaled, bits(2, 0));
  EXPECT_THAT(o.on_host, bits(1, 0));
  EXPECT_THAT(o.prepared, bits(1, 0));
  EXPECT_THAT(o.first_of_group, bits(1, 0));
  EXPECT_THAT(o.second_of_group, testing::Each(o.first_of_group[0])) << "of one group";
  const auto product = [](const std::vector<int>& ids) {
    int64_t all_of_them = 1;
    for (int id : ids) all_of_them *= id + 2;
    return testing::Each(all_of_them);
  };
  EXPECT_THAT(o.product, testing::AnyOf(product(all), product(left)));
  const auto rows = [](const std::vector<int>& ids) {
    std::vector<int32_t> expected;
    for (int id : ids) expected.insert(expected.end(), 3, id);
    return expected;
  };
  EXPECT_THAT(o.gathered, testing::AnyOf(rows(all), rows(left)));
  for (const auto& [root, data] : o.broadcast) {
    EXPECT_THAT(data, testing::Each(BroadcastOf(root, step))) << "from " << root;
  }
  for (const auto& [root, why] : o.lost) {
    EXPECT_THAT(left, testing::Not(testing::Contains(root))) << why;
  }
}

void CheckOwn(const OwnOutcome& own, const StepOutcome& outcome, int id,
              const std::vector<int>& all, const std::vector<int>& left) {
  const std::vector<int>& over = outcome.shares.size() == all.size() ? all : left;
  ASSERT_EQ(outcome.shares.size(), over.size());
  const size_t rank = static_cast<size_t>(std::find(over.begin(), over.end(), id) - over.begin());
  EXPECT_EQ(own.scattered, std::vector<float>(2 * outcome.shares[rank], SumOfBits(over)));
  const std::vector<int>& by = own.received.size() == all.size() ? all : left;
  std::vector<int32_t> expected;
  for (int from : by) expected.insert(expected.end(), static_cast<size_t>(id) + 1, 10 * from + id);
  EXPECT_EQ(own.exchanged, expected) << "worker " << id;
}

class Drill {
 public:
  Drill(int workers, int version)
      : gpus(workers, {.version = version}), outcomes(workers), owns(workers), done(workers, 0) {
    for (int id = 0; id < workers; ++id) all.push_back(id);
  }
  TestWorld& world() { return gpus.world; }

  void Start() {
    for (int id : all) threads.emplace_back([this, id] { Train(id); });
  }
  void Train(int id) {
    (void)world().workers[id]->engine->AwaitEntered(engine::Engine::Clock::now() + kLong);
    for (int step = 0; step < kSteps; ++step) {
      StepOutcome outcome;
      OwnOutcome own;
      const Status status = Step(&gpus, *world().workers[id], step).Run(&outcome, &own);
      std::lock_guard lock(world().mu);
      if (!status.ok()) errors[id] = status.message();
      if (!status.ok()) break;
      outcomes[id].push_back(std::move(outcome));
      owns[id].push_back(std::move(own));
    }
    std::lock_guard lock(world().mu);
    done[id] = 1;
    world().changed.notify_all();
  }
  // Waits for the fault of `epoch`. False: everybody has finished before it.
  bool AwaitFault(uint64_t epoch, const std::vector<int>& members) {
    bool hit = false;
    world().Await([&] {
      hit = world().past_fault[epoch].size() == members.size();
      return hit ||
             std::all_of(members.begin(), members.end(), [&](int id) { return done[id] != 0; });
    });
    return hit;
  }
  void Kill(int id) { world().workers[id]->engine->PostEnd({RM_ERR_INTERNAL, "killed"}); }
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
        CheckOwn(owns[id][step], outcomes[id][step], id, all, left);
      }
    }
  }

  GpuTestWorld gpus;
  std::vector<int> all;
  std::vector<std::vector<StepOutcome>> outcomes;
  std::vector<std::vector<OwnOutcome>> owns;
  std::vector<char> done;             // guarded by world().mu
  std::map<int, std::string> errors;  // guarded by world().mu
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

constexpr int kInstallCalls = 2;  // of the exchange at the beginning of a view

class KillAtEveryCallOf : public testing::TestWithParam<int> {};

void KillEveryWorkerAtEveryCall(int workers, int version, int stride, int* points) {
  for (int victim = 0; victim < workers; ++victim) {
    bool reached = true;
    for (int call = kInstallCalls + victim % stride; reached; call += stride) {
      Drill probe(workers, version);
      const auto left = Without(probe.all, victim);
      for (const auto& completes : Subsets(left)) {
        SCOPED_TRACE("victim " + std::to_string(victim) + " at call " + std::to_string(call) +
                     ", completed by " + testing::PrintToString(completes));
        Drill run(workers, version);
        const uint64_t epoch = run.world().next_epoch;
        run.world().faults[epoch] = {call, completes};
        run.world().Install(run.all);
        run.Start();
        reached = run.AwaitFault(epoch, run.all);
        if (!reached) {
          run.Join();
          break;
        }
        ++*points;
        run.Kill(victim);
        run.world().Stop(left);
        run.world().Install(left, "WorkerLost");
        run.Join();
        run.Check(left);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST_P(KillAtEveryCallOf, ThreeSurvivorsHaveTheSameBytesAndNoStepIsLost) {
  const int stride = support::Rounds(2, 7);
  int points = 0;
  KillEveryWorkerAtEveryCall(3, GetParam(), stride, &points);
  EXPECT_GT(points, 3 * 4 * 15 / stride) << "too few calls were reached";
}

TEST_P(KillAtEveryCallOf, TwoAndFourWorkersAsWell) {
  int points = 0;
  KillEveryWorkerAtEveryCall(2, GetParam(), support::Rounds(2, 5), &points);
  KillEveryWorkerAtEveryCall(4, GetParam(), support::Rounds(11, 23), &points);
  EXPECT_GT(points, 20) << "too few calls were reached";
}

TEST_P(KillAtEveryCallOf, ASecondDeathDuringTheRecoveryChangesNothingForTheOthers) {
  for (int first_call : support::Rounds<std::vector<int>>({6, 9, 14}, {9})) {
    bool reached = true;
    for (int second_call = 0; second_call < 16 && reached; second_call += support::Rounds(1, 3)) {
      for (const auto& completes : Subsets({1, 2})) {
        SCOPED_TRACE("calls " + std::to_string(first_call) + " and " + std::to_string(second_call) +
                     ", the second completed by " + testing::PrintToString(completes));
        Drill run(4, GetParam());
        const uint64_t epoch = run.world().next_epoch;
        run.world().faults[epoch] = {first_call, {0, 2}};
        run.world().faults[epoch + 1] = {second_call, completes};
        run.world().Install(run.all);
        run.Start();
        ASSERT_TRUE(run.AwaitFault(epoch, run.all));
        run.Kill(3);
        run.world().Stop({0, 1, 2});
        run.world().Install({0, 1, 2}, "WorkerLost");
        reached = run.AwaitFault(epoch + 1, {0, 1, 2});
        run.Kill(0);
        run.world().Stop({1, 2});
        run.world().Install({1, 2}, "WorkerLost");
        run.Join();
        EXPECT_EQ(run.outcomes[1].size(), static_cast<size_t>(kSteps)) << run.errors[1];
        EXPECT_EQ(run.outcomes[1], run.outcomes[2]);
        if (HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nccl, KillAtEveryCallOf,
                         testing::Values(kNoShrink, kShrinkOnly, kAllThereIs),
                         [](const auto& info) {
                           return info.param == kNoShrink     ? "WithoutShrink"
                                  : info.param == kShrinkOnly ? "WithShrink"
                                                              : "WithRevoke";
                         });

}  // namespace
}  // namespace ringmaster::nccl
