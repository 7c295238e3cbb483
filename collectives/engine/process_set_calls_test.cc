// Kills each victim at each call of a process set's communicator, and at each call of the world's
// while sets are added, used and removed, for each subset of the ranks that have completed the
// call.
#include <gmock/gmock.h>

#include <algorithm>

#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"
#include "tests/support/rounds.h"

namespace ringmaster::engine {
namespace {

using testing::AnyOf;
using testing::Each;

const std::vector<int> kAllOfSet = {0, 1, 2}, kAllOfWorld = {0, 1, 2, 3};
constexpr size_t kScattered = 7;  // rows

// The results of one step that must be equal on all members of the set.
struct OfSet {
  std::vector<float> sum, average, adasum;
  std::vector<double> direct;  // reduced where it lies, in three pieces
  std::vector<std::vector<float>> group;
  std::vector<int32_t> gathered;
  std::vector<size_t> shares;                     // of a reducescatter: rows by rank
  std::map<int, std::vector<int32_t>> broadcast;  // by root
  std::map<int, std::string> lost;                // broadcasts that failed, by root
  bool operator==(const OfSet&) const = default;
};
// The results that each member has alone.
struct OfMember {
  std::vector<float> scattered;
  std::vector<size_t> received;  // rows by rank
  std::vector<int32_t> exchanged;
};

float Bit(int id) { return static_cast<float>(1 << id); }
float Bits(const std::vector<int>& ids) {
  float bits = 0;
  for (int id : ids) bits += Bit(id);
  return bits;
}

// Runs one operation of each kind in the set, all of them in flight at once.
class SetStepOf {
 public:
  SetStepOf(TestWorker& w, int set) : w_(w), set_(set) {}

  Status Run(OfSet* all, OfMember* own) {
    AskReductions(all);
    AskGathers();
    AskOwn();
    for (int root : {0, 2}) {
      auto& data = all->broadcast[root];
      data.assign(4, 100 * (w_.id + 1));
      broadcasts_[root] = Ask({"from " + std::to_string(root), Kind::kBroadcast, RM_INT32, RM_SUM,
                               TestWorld::NameOf(root), 4, 1, 1},
                              data.data(), data.data());
    }
    Ask({"barrier", Kind::kBarrier}, nullptr, nullptr);
    for (const auto& operation : asked_) {
      const Status s = Await(operation);
      if (!s.ok() && s.code() != RM_ERR_ROOT_LOST) return s;
    }
    Read(all, own);
    return {};
  }

 private:
  std::shared_ptr<Operation> Ask(Request request, const void* in, void* out, size_t rows = 0) {
    request.process_set = set_;
    asked_.push_back(w_.Ask(std::move(request), in, out, rows));
    return asked_.back();
  }
  void AskReductions(OfSet* all) {
    all->sum.assign(100, Bit(w_.id));
    all->average.assign(5, Bit(w_.id));
    all->adasum.assign(4, 0.0f);
    all->adasum[static_cast<size_t>(w_.id)] = 1;  // at right angles to the others', so they add up
    const auto reduce = [&](const char* name, std::vector<float>* data, rm_op op) {
      Ask({name, Kind::kAllreduce, RM_FLOAT32, op, "", data->size(), 1, 1}, data->data(),
          data->data());
    };
    reduce("sum", &all->sum, RM_SUM);
    reduce("average", &all->average, RM_AVERAGE);
    reduce("adasum", &all->adasum, RM_ADASUM);
    all->direct.assign(600, Bit(w_.id));
    Ask({"direct", Kind::kAllreduce, RM_FLOAT64, RM_SUM, "", all->direct.size(), 1, 1},
        all->direct.data(), all->direct.data());
    all->group = {std::vector<float>(3, Bit(w_.id)), std::vector<float>(5, Bit(w_.id))};
    for (auto& operation : AskGroup(w_, {"first", "second"}, &all->group, set_))
      asked_.push_back(std::move(operation));
  }
  void AskGathers() {
    row_.assign(static_cast<size_t>(w_.id) + 1, w_.id);  // id + 1 rows
    gather_ = Ask({"gather", Kind::kAllgather, RM_INT32, RM_SUM, "", 1, 1, 1}, row_.data(), nullptr,
                  row_.size());
  }
  void AskOwn() {
    to_scatter_.assign(kScattered, Bit(w_.id));
    Request request{"scatter", Kind::kReducescatter, RM_FLOAT32, RM_SUM, "", kScattered, 1, 1};
    scatter_ = Ask(std::move(request), to_scatter_.data(), nullptr);
    Operation::Splits splits;
    for (int to : kAllOfSet) {
      splits.workers.push_back(TestWorld::NameOf(to));
      splits.rows.push_back(static_cast<uint64_t>(to) + 1);
      to_exchange_.insert(to_exchange_.end(), static_cast<size_t>(to) + 1, 10 * w_.id + to);
    }
    Request exchange{"exchange", Kind::kAlltoall, RM_INT32, RM_SUM, "", 1, 1, 1};
    exchange.process_set = set_;
    exchange_ = std::make_shared<Operation>(exchange, to_exchange_.data(), nullptr,
                                            to_exchange_.size(), std::move(splits));
    if (Status s = w_.engine->Submit(exchange_); !s.ok()) exchange_->Complete(s);
    asked_.push_back(exchange_);
  }
  void Read(OfSet* all, OfMember* own) {
    const auto* rows = reinterpret_cast<const int32_t*>(gather_->gathered->data());
    all->gathered.assign(rows, rows + gather_->gathered_rows);
    all->shares = scatter_->rows_by_rank;
    const auto* sums = reinterpret_cast<const float*>(scatter_->gathered->data());
    own->scattered.assign(sums, sums + scatter_->gathered_rows);
    const auto* got = reinterpret_cast<const int32_t*>(exchange_->gathered->data());
    own->exchanged.assign(got, got + exchange_->gathered_rows);
    own->received = exchange_->rows_by_rank;
    for (const auto& [root, operation] : broadcasts_) {
      if (operation->status().ok()) continue;
      all->broadcast.erase(root);
      all->lost[root] = operation->status().message();
    }
  }

  TestWorker& w_;
  const int set_;
  std::vector<std::shared_ptr<Operation>> asked_;
  std::shared_ptr<Operation> gather_, scatter_, exchange_;
  std::map<int, std::shared_ptr<Operation>> broadcasts_;
  std::vector<int32_t> row_, to_exchange_;
  std::vector<float> to_scatter_;
};

// Workers 0 to 2 are in a set and 3 is not. In each step the set is added, used and removed.
class SetCallDrill {
 public:
  static constexpr int kTimes = 2;
  struct Work {
    std::vector<OfSet> in_set;
    std::vector<OfMember> own;
    std::vector<float> in_world;
    std::string error;
  };

  void Start() {
    world.Install(kAllOfWorld);
    for (int id : kAllOfWorld) {
      threads_.emplace_back([this, id] {
        TestWorker& w = *world.workers[id];
        (void)w.engine->AwaitEntered(Engine::Clock::now() + kLong);
        for (int time = 0; time < kTimes && works[id].error.empty(); ++time) {
          const Status status = Step(w, &works[id]);
          if (!status.ok()) works[id].error = status.message();
        }
        std::lock_guard lock(world.mu);
        ++done_;
        world.changed.notify_all();
      });
    }
  }
  // Waits until the fault has happened to `ranks` ranks. False: all have finished before it.
  bool AwaitCut(const std::map<uint64_t, std::set<int>>& past, uint64_t epoch, size_t ranks) {
    bool cut = false;
    world.Await([&] {
      const auto found = past.find(epoch);
      cut = found != past.end() && found->second.size() == ranks;
      return cut || done_ == kAllOfWorld.size();
    });
    return cut;
  }
  void Die(int victim) {
    const std::vector<int> left = Without(kAllOfWorld, victim);
    world.workers[victim]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
    world.Stop(left);
    world.Install(left, "WorkerLost");
  }
  void Join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  TestWorld world{4};
  std::vector<Work> works{4};

 private:
  Status Step(TestWorker& w, Work* work) {
    Request add{kAddSetName, Kind::kAddSet};
    for (int id : kAllOfSet) add.members.push_back(TestWorld::NameOf(id));
    const auto added = w.Ask(std::move(add), nullptr, nullptr);
    if (Status s = Await(added); !s.ok()) return s;
    if (w.id < 3) {
      OfSet all;
      OfMember own;
      if (Status s = SetStepOf(w, added->process_set).Run(&all, &own); !s.ok()) return s;
      work->in_set.push_back(std::move(all));
      work->own.push_back(std::move(own));
    }
    std::vector<float> data(3, Bit(w.id));
    if (Status s = w.Allreduce("all", &data); !s.ok()) return s;
    work->in_world.push_back(data[0]);
    if (Status s = RemoveSet(w, added->process_set); !s.ok()) return s;
    std::vector<float> late(3, 1.0f);
    if (const auto operation = AskIn(w, added->process_set, "late", &late); Await(operation).ok())
      return {RM_ERR_INTERNAL, "an operation ran in a set that was removed"};
    StepResult step;
    return w.engine->StepEnd(&step);
  }

  std::vector<std::thread> threads_;
  size_t done_ = 0;  // guarded by world.mu
};

void CheckOfSet(const OfSet& all, const std::vector<int>& left) {
  const auto of_all_or_left = [&](float whole, float rest) {
    return AnyOf(Each(whole), Each(rest));
  };
  const float whole = Bits(kAllOfSet), rest = Bits(left);
  EXPECT_THAT(all.sum, of_all_or_left(whole, rest));
  EXPECT_THAT(all.direct, AnyOf(Each(double{whole}), Each(double{rest})));
  EXPECT_THAT(all.average, of_all_or_left(whole / 3, rest / static_cast<float>(left.size())));
  for (const auto& part : all.group) EXPECT_THAT(part, Each(all.group[0][0])) << "of one group";
  EXPECT_THAT(all.group[0], of_all_or_left(whole, rest));
  const auto by_id = [](const std::vector<int>& ids) {
    std::vector<float> ones(4, 0.0f);
    for (int id : ids) ones[static_cast<size_t>(id)] = 1;
    return ones;
  };
  EXPECT_THAT(all.adasum, AnyOf(by_id(kAllOfSet), by_id(left)));
  const auto rows_of = [](const std::vector<int>& ids) {
    std::vector<int32_t> rows;
    for (int id : ids) rows.insert(rows.end(), static_cast<size_t>(id) + 1, id);
    return rows;
  };
  EXPECT_THAT(all.gathered, AnyOf(rows_of(kAllOfSet), rows_of(left)));
  for (const auto& [root, data] : all.broadcast) EXPECT_THAT(data, Each(100 * (root + 1)));
  for (const auto& [root, why] : all.lost) {
    EXPECT_THAT(left, testing::Not(testing::Contains(root))) << why;
    EXPECT_THAT(why, testing::HasSubstr(TestWorld::NameOf(root)));
  }
}

void CheckOfMember(const OfMember& own, const OfSet& all, int id, const std::vector<int>& left) {
  const std::vector<int>& over = all.shares.size() == kAllOfSet.size() ? kAllOfSet : left;
  ASSERT_EQ(all.shares.size(), over.size());
  const size_t rank = static_cast<size_t>(std::find(over.begin(), over.end(), id) - over.begin());
  for (size_t r = 0; r < over.size(); ++r)
    EXPECT_EQ(all.shares[r], kScattered / over.size() + (r < kScattered % over.size()));
  EXPECT_EQ(own.scattered, std::vector<float>(all.shares[rank], Bits(over)));
  std::vector<int32_t> expected;
  for (int from : own.received.size() == kAllOfSet.size() ? kAllOfSet : left)
    expected.insert(expected.end(), static_cast<size_t>(id) + 1, 10 * from + id);
  EXPECT_EQ(own.exchanged, expected) << "worker " << id;
}

void CheckDrill(const SetCallDrill& drill, int victim) {
  const std::vector<int> left = Without(kAllOfWorld, victim), members = Without(kAllOfSet, victim);
  for (int id : left) EXPECT_EQ(drill.works[id].error, "") << "worker " << id;
  if (testing::Test::HasFailure()) return;
  const auto& first = drill.works[members[0]];
  for (int time = 0; time < SetCallDrill::kTimes; ++time) {
    for (int id : left) EXPECT_EQ(drill.works[id].in_world[time], first.in_world[time]);
    EXPECT_THAT(first.in_world[time], AnyOf(Bits(kAllOfWorld), Bits(left)));
    CheckOfSet(first.in_set[time], members);
    for (int id : members) {
      const auto& work = drill.works[id];
      EXPECT_EQ(work.in_set[time], first.in_set[time]) << "worker " << id << ", time " << time;
      EXPECT_EQ(work.own[time].received.size(), first.own[time].received.size());
      CheckOfMember(work.own[time], work.in_set[time], id, members);
    }
  }
}

std::vector<std::set<int>> PartsOf(const std::vector<int>& ids) {
  std::vector<std::set<int>> parts;
  for (int mask = 0; mask < 1 << ids.size(); ++mask) {
    auto& part = parts.emplace_back();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (mask >> i & 1) part.insert(ids[i]);
    }
  }
  return parts;
}

// How many calls the set's communicator has in one step.
constexpr int kCallsOfAStep = 19;

TEST(RecoveryTest, EveryOperationInASetEndsAlikeWhereverACallOfItIsCut) {
  std::set<std::string> cut;  // names of calls
  const int stride = support::Rounds(1, 4);
  for (int victim : {0, 2, 3}) {
    const std::vector<int> members = Without(kAllOfSet, victim);
    for (int call = victim % stride; call < kCallsOfAStep; call += stride) {
      // If three members live, the last one never completes the call; the other two vary enough.
      for (const auto& completes : PartsOf({members[0], members[1]})) {
        SCOPED_TRACE("victim " + std::to_string(victim) + " at call " + std::to_string(call) +
                     " of the set, completed by " + testing::PrintToString(completes));
        SetCallDrill drill;
        const uint64_t epoch = drill.world.next_epoch;
        drill.world.set_faults[epoch] = {call, completes};
        drill.Start();
        ASSERT_TRUE(drill.AwaitCut(drill.world.past_set_fault, epoch, kAllOfSet.size()));
        drill.Die(victim);
        drill.Join();
        cut.insert(drill.world.cut_in_set.begin(), drill.world.cut_in_set.end());
        CheckDrill(drill, victim);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_THAT(cut, testing::UnorderedElementsAre("allreduce", "allgather", "broadcast", "barrier",
                                                 "reducescatter", "alltoall"));
}

TEST(RecoveryTest, ASetIsAddedAndRemovedForAllOrNoneWhereverTheWorldIsCut) {
  int points = 0;
  for (int victim : {0, 2, 3}) {
    const std::vector<int> left = Without(kAllOfWorld, victim);
    bool reached = true;
    for (int call = 2; reached; call += support::Rounds(1, 4)) {
      for (const std::set<int>& completes : {std::set<int>{}, {left[0]}, {left[1], left[2]}}) {
        SCOPED_TRACE("victim " + std::to_string(victim) + " at call " + std::to_string(call) +
                     " of the world, completed by " + testing::PrintToString(completes));
        SetCallDrill drill;
        const uint64_t epoch = drill.world.next_epoch;
        drill.world.faults[epoch] = {call, completes};
        drill.Start();
        reached = drill.AwaitCut(drill.world.past_fault, epoch, kAllOfWorld.size());
        if (reached) drill.Die(victim);
        drill.Join();
        if (!reached) break;
        ++points;
        CheckDrill(drill, victim);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(points, support::Rounds(60, 15));
}

}  // namespace
}  // namespace ringmaster::engine
