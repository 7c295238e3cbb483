// Kills each victim at each call of the communicator, for each subset of the survivors that have
// completed that call, and compares the survivors' results.
#include <gmock/gmock.h>

#include <algorithm>

#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"
#include "tests/support/rounds.h"

namespace ringmaster::engine {
namespace {

// The results of one step that must be equal on all survivors, wherever the victim died.
struct StepOutcome {
  std::vector<float> sum;  // fused with `other`
  std::vector<float> other;
  std::vector<int64_t> product;  // of another type, so not fused
  std::vector<float> average;
  // Two direct allreduces, in two segments each.
  std::vector<double> in_place;
  std::vector<double> apart;
  std::vector<std::vector<double>> prepared;        // in place
  std::vector<std::vector<double>> prepared_apart;  // in a buffer with `prepared`
  std::vector<float> first_of_group;
  std::vector<int32_t> second_of_group;  // must have the same participants as first_of_group
  std::vector<int32_t> gathered;
  std::vector<size_t> shares;                     // of a reducescatter: rows by rank
  std::map<int, std::vector<int32_t>> broadcast;  // by root
  std::map<int, std::string> lost;                // broadcasts that failed, by root
  uint64_t next_epoch = 0;                        // of the view in which the next step begins
  std::vector<std::string> next_ranks;            // whom the next step's ranks mean
  bool operator==(const StepOutcome&) const = default;
};

// The results that each worker has alone.
struct OwnOutcome {
  std::vector<float> scattered;
  std::vector<size_t> received;  // rows by rank
  std::vector<int32_t> exchanged;
};

constexpr int kSteps = 3;

// What worker `id` sends as the root; no other worker has this value.
int32_t BroadcastOf(int id, int step) { return 100 * (id + 1) + step; }

constexpr size_t kDirect = 500;  // elements: more than a segment of the test's engine
constexpr size_t kRows = 7;      // rows of the reducescatter, of two elements each

std::shared_ptr<Operation> AskReducescatter(TestWorker& w, const std::vector<float>& in) {
  Request request{"scatter", Kind::kReducescatter, RM_FLOAT32, RM_SUM, "", in.size(), 1, 1};
  request.shape = {kRows, 2};
  return w.Ask(std::move(request), in.data(), nullptr);
}

// Sends id + 1 rows to each worker; each row says who has sent it, and to whom.
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
  // Each worker gives a bit of its own, so the sum tells whose part is in it.
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
  outcome->prepared = {std::vector<double>(kDirect, bit), {bit}, {}, {bit, bit}};
  asked.push_back(AskPrepared(w, "prepared", &outcome->prepared));
  std::vector<std::vector<double>> pieces = {{bit}, {bit, bit, bit}};
  outcome->prepared_apart = {{-1}, {-1, -1, -1}};
  asked.push_back(AskPrepared(w, "prepared apart", &pieces, &outcome->prepared_apart));
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
  outcome->next_epoch = result.epoch;
  outcome->next_ranks = w.engine->info().step_ranks().workers;
  EXPECT_EQ(result.epoch, w.engine->info().step_ranks().epoch);
  return result.step == static_cast<uint64_t>(step + 1)
             ? Status()
             : Status(RM_ERR_INTERNAL, "step number is off");
}

float SumOfBits(const std::vector<int>& ids) {
  float bits = 0;
  for (int id : ids) bits += static_cast<float>(1 << id);
  return bits;
}

// Worlds over which an operation may have run, one after the other: that of the beginning, and
// those that were left. Each has fewer workers than the one before.
using Worlds = std::vector<std::vector<int>>;

// The values have the parts of the workers of one of these worlds. `of`: the value of a world.
template <typename T, typename Of>
void CheckOneOf(const std::vector<T>& values, const Worlds& worlds, const std::string& what,
                Of of) {
  std::vector<testing::Matcher<const std::vector<T>&>> possible;
  for (const auto& ids : worlds) possible.push_back(testing::Each(static_cast<T>(of(ids))));
  EXPECT_THAT(values, testing::AnyOfArray(possible)) << what;
}

// The operations need not be fused, so each may have run over another one of the worlds.
void CheckOutcome(const StepOutcome& o, int step, const Worlds& worlds) {
  const auto average = [](const auto& ids) { return SumOfBits(ids) / ids.size(); };
  CheckOneOf(o.sum, worlds, "sum",
             [&](const auto& ids) { return SumOfBits(ids) + 1024.0f * step * ids.size(); });
  CheckOneOf(o.other, worlds, "other", SumOfBits);
  CheckOneOf(o.product, worlds, "product", [](const auto& ids) {
    int64_t product = 1;
    for (int id : ids) product *= id + 2;
    return product;
  });
  CheckOneOf(o.average, worlds, "average", average);
  CheckOneOf(o.in_place, worlds, "in place", SumOfBits);
  CheckOneOf(o.apart, worlds, "apart", [](const auto& ids) { return 2.0 * (1 << ids.back()); });
  for (const auto* prepared : {&o.prepared, &o.prepared_apart}) {
    CheckOneOf(prepared->front(), worlds, "first tensor of a prepared group", SumOfBits);
    for (const auto& piece : *prepared) {
      EXPECT_THAT(piece, testing::Each(prepared->front()[0])) << "of one prepared group";
    }
  }
  CheckOneOf(o.first_of_group, worlds, "first of group", SumOfBits);
  EXPECT_THAT(o.second_of_group, testing::Each(o.first_of_group[0])) << "of one group";
  std::vector<testing::Matcher<const std::vector<int32_t>&>> gathered;
  for (const auto& ids : worlds) {
    std::vector<int32_t> rows;
    for (int id : ids) rows.insert(rows.end(), 3, id);
    gathered.push_back(testing::Eq(rows));
  }
  EXPECT_THAT(o.gathered, testing::AnyOfArray(gathered));
  // A broadcast has the root's own value, or an error that names the root; never what another
  // worker would have sent.
  for (const auto& [root, data] : o.broadcast) {
    EXPECT_THAT(data, testing::Each(BroadcastOf(root, step))) << "from " << root;
  }
  for (const auto& [root, why] : o.lost) {
    EXPECT_THAT(worlds.back(), testing::Not(testing::Contains(root))) << why;
    EXPECT_THAT(why, testing::HasSubstr(TestWorld::NameOf(root)));
  }
}

const std::vector<int>& OfSize(const Worlds& worlds, size_t size) {
  for (const auto& ids : worlds) {
    if (ids.size() == size) return ids;
  }
  ADD_FAILURE() << "no world had " << size << " workers";
  return worlds.front();
}

// Each survivor has its rows of the result of one of the worlds; `outcome` says of which.
void CheckOwn(const OwnOutcome& own, const StepOutcome& outcome, int id, const Worlds& worlds) {
  const std::vector<int>& scattered_over = OfSize(worlds, outcome.shares.size());
  const size_t n = outcome.shares.size();
  ASSERT_EQ(n, scattered_over.size());
  const size_t rank = static_cast<size_t>(
      std::find(scattered_over.begin(), scattered_over.end(), id) - scattered_over.begin());
  for (size_t r = 0; r < n; ++r) EXPECT_EQ(outcome.shares[r], kRows / n + (r < kRows % n));
  EXPECT_EQ(own.scattered, std::vector<float>(2 * outcome.shares[rank], SumOfBits(scattered_over)));

  std::vector<int32_t> expected;
  for (int from : OfSize(worlds, own.received.size())) {
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
  // Waits until the fault of `epoch` has happened to all members, or all have finished before it.
  // False: they have finished.
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
  // `worlds`: over which operations may have run after that of the beginning; the last one is left.
  void Check(Worlds worlds) {
    worlds.insert(worlds.begin(), all);
    const std::vector<int> left = worlds.back();
    for (int id : left) {
      EXPECT_EQ(errors[id], "") << "worker " << id;
      ASSERT_EQ(outcomes[id].size(), static_cast<size_t>(kSteps));
      for (int step = 0; step < kSteps; ++step) {
        EXPECT_EQ(outcomes[id][step], outcomes[left[0]][step])
            << "worker " << id << ", step " << step;
        CheckOutcome(outcomes[id][step], step, worlds);
        CheckOwn(owns[id][step], outcomes[id][step], id, worlds);
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

// All subsets of the survivors: those that may have completed the call at which the victim dies.
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

// The calls of the exchange with which a view begins; faults there have a test of their own.
constexpr int kInstallCalls = 2;

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
        run.Check({left});
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
  // Of four workers one dies at a call that half of them have completed, and a second one at each
  // call of the next view's recovery.
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
        run.Check({{0, 1, 2}, {1, 2}});
        if (HasFailure()) return;
      }
    }
  }
}

// What an operation of one batch gave.
struct Batch {
  float sum = 0;
  double direct = 0;  // of a tensor that is reduced where it lies
  float least = 0;
  bool operator==(const Batch&) const = default;
};

// All of these at once; a rank that has joined gives to each what changes nothing.
Status RunBatch(TestWorker& w, Batch* batch) {
  std::vector<float> sum(3, static_cast<float>(1 << w.id)), least = sum;
  std::vector<double> direct(kDirect, 1 << w.id);
  const auto reduce = [&](const char* name, auto* data, rm_dtype dtype, rm_op op) {
    return w.Ask({name, Kind::kAllreduce, dtype, op, "", data->size(), 1, 1}, data->data(),
                 data->data());
  };
  for (const auto& operation :
       {reduce("sum", &sum, RM_FLOAT32, RM_SUM), reduce("direct", &direct, RM_FLOAT64, RM_SUM),
        reduce("least", &least, RM_FLOAT32, RM_MIN)}) {
    if (!operation->WaitUntil(Engine::Clock::now() + kLong))
      return {RM_ERR_TIMEOUT, "'" + operation->request.name + "' hangs"};
    if (!operation->status().ok()) return operation->status();
  }
  EXPECT_THAT(sum, testing::Each(sum[0]));
  EXPECT_THAT(direct, testing::Each(direct[0]));
  EXPECT_THAT(least, testing::Each(least[0]));
  *batch = {sum[0], direct[0], least[0]};
  return {};
}

// Batch `index` is that of the workers that have so many, of one of these worlds.
void CheckBatch(const Batch& batch, int index, Worlds worlds) {
  for (auto& ids : worlds) std::erase_if(ids, [&](int id) { return id < index; });
  const auto least = [](const auto& ids) { return 1 << ids.front(); };
  CheckOneOf(std::vector{batch.sum}, worlds, "sum", SumOfBits);
  CheckOneOf(std::vector{batch.direct}, worlds, "direct", SumOfBits);
  CheckOneOf(std::vector{batch.least}, worlds, "least", least);
}

// Worker k has k + 1 batches and then joins. So a worker that has none left when another one dies
// has nothing pending but its join.
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
        std::vector<std::vector<Batch>> batches(3);
        std::vector<int> last(3, -1), done(3, 0);
        std::vector<std::thread> threads;
        for (int id : {0, 1, 2}) {
          threads.emplace_back([&, id] {
            TestWorker& w = *world.workers[id];
            (void)w.engine->AwaitEntered(Engine::Clock::now() + kLong);
            Status status;
            for (int batch = 0; batch <= id && status.ok(); ++batch) {
              Batch got;
              status = RunBatch(w, &got);
              if (status.ok()) batches[id].push_back(got);
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
        for (int id : left) {
          ASSERT_EQ(batches[id].size(), static_cast<size_t>(id + 1));
          for (int index = 0; index <= id; ++index) {
            SCOPED_TRACE("worker " + std::to_string(id) + ", batch " + std::to_string(index));
            if (index <= left[0]) {
              EXPECT_EQ(batches[id][index], batches[left[0]][index]);
            }
            CheckBatch(batches[id][index], index, {{0, 1, 2}, left});
          }
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
  world.Install({0, 1}, "PodLost");  // no operation has been asked for
  OnEach(&world, {0, 1}, [](TestWorker& w) {
    std::vector<float> data(3, 1.0f);
    EXPECT_TRUE(w.Allreduce("x", &data).ok());
    EXPECT_THAT(data, testing::Each(2.0f));
  });
}

}  // namespace
}  // namespace ringmaster::engine
