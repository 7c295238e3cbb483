// Kills at every call of the communicator x victim x who has completed it, and compares what the
// survivors have.
#include <gmock/gmock.h>

#include <algorithm>

#include "collectives/engine/test_requests.h"
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
  std::vector<double> in_place;  // reduced where they lie, in two segments each
  std::vector<double> apart;
  std::vector<float> first_of_group;
  std::vector<int32_t> second_of_group;  // the same participants, whatever happened
  std::vector<int32_t> gathered;
  std::vector<size_t> shares;                     // of a reducescatter: rows by rank
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

constexpr int kSteps = 3;

// What worker `id` would send as the root: nobody else has it.
int32_t BroadcastOf(int id, int step) { return 100 * (id + 1) + step; }

constexpr size_t kDirect = 500;  // elements: more than a segment of the test's engine
constexpr size_t kRows = 7;      // of the reducescatter, two elements each

std::shared_ptr<Operation> AskReducescatter(TestWorker& w, const std::vector<float>& in) {
  Request request{"scatter", Kind::kReducescatter, RM_FLOAT32, RM_SUM, "", in.size(), 1, 1};
  request.shape = {kRows, 2};
  return w.Ask(std::move(request), in.data(), nullptr);
}

// To each worker as many rows as its id says, and one: of what was sent and to whom.
std::shared_ptr<Operation> AskAlltoall(TestWorker& w, std::vector<int32_t>* in) {
  Operation::Splits splits;
  splits.workers = w.engine->info().workers();
  for (const std::string& name : splits.workers) {
    const int to = name.back() - '0';
    splits.rows.push_back(static_cast<uint64_t>(to) + 1);
    in->insert(in->end(), static_cast<size_t>(to) + 1, 10 * w.id + to);
  }
  const auto operation = std::make_shared<Operation>(
      Request{"exchange", Kind::kAlltoall, RM_INT32, RM_SUM, "", 1, 1, 1}, in->data(), nullptr,
      in->size(), std::move(splits));
  if (Status s = w.engine->Submit(operation); !s.ok()) operation->Complete(s);
  return operation;
}

void ReadOwn(const Operation& scatter, const Operation& exchange, StepOutcome* outcome,
             OwnOutcome* own) {
  const auto* sums = reinterpret_cast<const float*>(scatter.gathered->data());
  own->scattered.assign(sums, sums + 2 * scatter.gathered_rows);
  outcome->shares = scatter.rows_by_rank;
  const auto* rows = reinterpret_cast<const int32_t*>(exchange.gathered->data());
  own->exchanged.assign(rows, rows + exchange.gathered_rows);
  own->received = exchange.rows_by_rank;
}

Status RunStep(TestWorker& w, int step, StepOutcome* outcome, OwnOutcome* own) {
  // A bit for each worker: the sum tells whose part is in.
  const auto bit = static_cast<float>(1 << w.id);
  outcome->sum.assign(100, bit + 1024.0f * step);
  outcome->other.assign(33, bit);
  outcome->product.assign(20, w.id + 2);
  outcome->average.assign(5, bit);
  std::vector<int32_t> row(3, w.id);
  std::vector<std::shared_ptr<Operation>> asked;
  const auto reduce = [&](const char* name, auto* data, rm_dtype dtype, rm_op op) {
    asked.push_back(w.Ask({name, Kind::kAllreduce, dtype, op, "", data->size(), 1, 1}, data->data(),
                          data->data()));
  };
  reduce("sum", &outcome->sum, RM_FLOAT32, RM_SUM);
  reduce("other", &outcome->other, RM_FLOAT32, RM_SUM);
  reduce("product", &outcome->product, RM_INT64, RM_PRODUCT);
  reduce("average", &outcome->average, RM_FLOAT32, RM_AVERAGE);
  outcome->in_place.assign(kDirect, bit);
  reduce("in place", &outcome->in_place, RM_FLOAT64, RM_SUM);
  const std::vector<double> input(kDirect, bit);
  outcome->apart.assign(kDirect, -1);
  asked.push_back(w.Ask({"apart", Kind::kAllreduce, RM_FLOAT64, RM_MAX, "", kDirect, 0.5, 4},
                        input.data(), outcome->apart.data()));
  outcome->first_of_group.assign(3, bit);
  outcome->second_of_group.assign(7, 1 << w.id);
  Request first{"first", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1, 1};
  Request second{"second", Kind::kAllreduce, RM_INT32, RM_SUM, "", 7, 1, 1};
  first.group = second.group = GroupOf({"first", "second"});
  const std::shared_ptr<Operation> group[] = {
      std::make_shared<Operation>(first, outcome->first_of_group.data(),
                                  outcome->first_of_group.data()),
      std::make_shared<Operation>(second, outcome->second_of_group.data(),
                                  outcome->second_of_group.data())};
  if (Status s = w.engine->Submit(std::span(group)); !s.ok()) return s;
  asked.insert(asked.end(), std::begin(group), std::end(group));
  asked.push_back(
      w.Ask({"row", Kind::kAllgather, RM_INT32, RM_SUM, "", 3, 1, 1}, row.data(), nullptr, 1));
  const auto gather = asked.back();
  const std::vector<float> to_scatter(2 * kRows, bit);
  std::vector<int32_t> to_exchange;
  const auto scatter = AskReducescatter(w, to_scatter);
  const auto exchange = AskAlltoall(w, &to_exchange);
  asked.push_back(scatter);
  asked.push_back(exchange);
  std::map<int, std::shared_ptr<Operation>> broadcasts;
  for (int root : {0, 2}) {
    auto& data = outcome->broadcast[root];
    data.assign(4, BroadcastOf(w.id, step));
    broadcasts[root] = w.Ask({"broadcast " + std::to_string(root), Kind::kBroadcast, RM_INT32,
                              RM_SUM, TestWorld::NameOf(root), 4, 1, 1},
                             data.data(), data.data());
    asked.push_back(broadcasts[root]);
  }
  for (auto& operation : asked) {
    if (!operation->WaitUntil(Engine::Clock::now() + kLong)) {
      return {RM_ERR_TIMEOUT, "'" + operation->request.name + "' hangs"};
    }
    const Status s = operation->status();
    if (!s.ok() && s.code() != RM_ERR_ROOT_LOST) return s;
  }
  for (const auto& [root, operation] : broadcasts) {
    if (operation->status().ok()) continue;
    outcome->broadcast.erase(root);
    outcome->lost[root] = operation->status().message();
  }
  ReadOwn(*scatter, *exchange, outcome, own);
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
  EXPECT_THAT(o.in_place,
              testing::AnyOf(testing::Each(SumOfBits(all)), testing::Each(SumOfBits(left))));
  EXPECT_THAT(o.apart, testing::AnyOf(testing::Each(2.0 * (1 << all.back())),
                                      testing::Each(2.0 * (1 << left.back()))));
  EXPECT_THAT(o.first_of_group,
              testing::AnyOf(testing::Each(SumOfBits(all)), testing::Each(SumOfBits(left))));
  EXPECT_THAT(o.second_of_group, testing::Each(o.first_of_group[0])) << "of one group";
  // The root's own value or an error that names it, never what another worker would have sent.
  for (const auto& [root, data] : o.broadcast) {
    EXPECT_THAT(data, testing::Each(BroadcastOf(root, step))) << "from " << root;
  }
  for (const auto& [root, why] : o.lost) {
    EXPECT_THAT(left, testing::Not(testing::Contains(root))) << why;
    EXPECT_THAT(why, testing::HasSubstr(TestWorld::NameOf(root)));
  }
}

// Each survivor has its rows of a world of all or of those left, and all of them of the same.
void CheckOwn(const OwnOutcome& own, const StepOutcome& outcome, int id,
              const std::vector<int>& all, const std::vector<int>& left) {
  const std::vector<int>& scattered_over = outcome.shares.size() == all.size() ? all : left;
  ASSERT_EQ(outcome.shares.size(), scattered_over.size());
  const size_t rank = static_cast<size_t>(
      std::find(scattered_over.begin(), scattered_over.end(), id) - scattered_over.begin());
  const size_t n = scattered_over.size();
  for (size_t r = 0; r < n; ++r) EXPECT_EQ(outcome.shares[r], kRows / n + (r < kRows % n));
  EXPECT_EQ(own.scattered, std::vector<float>(2 * outcome.shares[rank], SumOfBits(scattered_over)));

  const std::vector<int>& exchanged_by = own.received.size() == all.size() ? all : left;
  std::vector<int32_t> expected;
  for (int from : exchanged_by) {
    expected.insert(expected.end(), static_cast<size_t>(id) + 1, 10 * from + id);
  }
  EXPECT_EQ(own.exchanged, expected) << "worker " << id;
}

class Drill {
 public:
  Drill(int workers, bool shm)
      : world(workers, shm), outcomes(workers), owns(workers), done(workers, 0) {
    for (int id = 0; id < workers; ++id) all.push_back(id);
  }

  void Start() {
    for (int id : all) {
      threads.emplace_back([this, id] {
        (void)world.workers[id]->engine->AwaitEntered(Engine::Clock::now() + kLong);
        for (int step = 0; step < kSteps; ++step) {
          StepOutcome outcome;
          OwnOutcome own;
          const Status status = RunStep(*world.workers[id], step, &outcome, &own);
          std::lock_guard lock(world.mu);
          if (!status.ok()) errors[id] = status.message();
          if (!status.ok()) break;
          outcomes[id].push_back(std::move(outcome));
          owns[id].push_back(std::move(own));
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
        CheckOwn(owns[id][step], outcomes[id][step], id, all, left);
        EXPECT_EQ(owns[id][step].received.size(), owns[left[0]][step].received.size())
            << "an alltoall counts for all of a view, or for none";
      }
    }
  }

  TestWorld world;
  std::vector<int> all;
  std::vector<std::vector<StepOutcome>> outcomes;
  std::vector<std::vector<OwnOutcome>> owns;
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

// Worker k has k + 1 batches, then joins: who has none left when a death comes has nothing pending
// but its join.
TEST_P(KillAtEveryCall, AJoinAmongSurvivorsEndsAndSumsAreTheSame) {
  int points = 0;
  for (int victim = 0; victim < 3; ++victim) {
    bool reached = true;
    for (int call = kInstallCalls; reached; ++call) {
      const auto left = Without({0, 1, 2}, victim);
      for (const auto& completes : Subsets(left)) {
        SCOPED_TRACE("victim " + std::to_string(victim) + " at call " + std::to_string(call) +
                     ", completed by " + testing::PrintToString(completes));
        TestWorld world(3, GetParam());
        const uint64_t epoch = world.next_epoch;
        world.faults[epoch] = {call, completes};
        world.Install({0, 1, 2});
        std::vector<std::vector<float>> sums(3);
        std::vector<int> last(3, -1), done(3, 0);
        std::vector<std::thread> threads;
        for (int id : {0, 1, 2}) {
          threads.emplace_back([&, id] {
            TestWorker& w = *world.workers[id];
            (void)w.engine->AwaitEntered(Engine::Clock::now() + kLong);
            Status status;
            for (int batch = 0; batch <= id && status.ok(); ++batch) {
              std::vector<float> data(3, static_cast<float>(1 << id));
              status = w.Allreduce("x", &data);
              if (status.ok()) sums[id].push_back(data[0]);
            }
            const auto join = w.Ask({kJoinName, Kind::kJoin}, nullptr, nullptr);
            if (join->WaitUntil(Engine::Clock::now() + kLong)) last[id] = join->last_joined;
            std::lock_guard lock(world.mu);
            done[id] = 1;
            world.changed.notify_all();
          });
        }
        world.Await([&] {
          reached = world.past_fault[epoch].size() == 3;
          return reached || done == std::vector<int>(3, 1);
        });
        if (reached) {
          ++points;
          world.workers[victim]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
          world.Stop(left);
          world.Install(left, "WorkerLost");
        }
        for (auto& thread : threads) thread.join();
        if (!reached) break;
        EXPECT_GE(last[left[0]], 0) << "a join hangs";
        EXPECT_EQ(last[left[0]], last[left[1]]);
        ASSERT_EQ(sums[left[0]].size(), static_cast<size_t>(left[0] + 1));
        ASSERT_EQ(sums[left[1]].size(), static_cast<size_t>(left[1] + 1));
        for (int batch = 0; batch <= left[0]; ++batch) {
          EXPECT_EQ(sums[left[0]][batch], sums[left[1]][batch]) << "batch " << batch;
        }
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(points, 3 * 4 * 5) << "too few calls were reached for the test to mean something";
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

}  // namespace
}  // namespace ringmaster::engine
