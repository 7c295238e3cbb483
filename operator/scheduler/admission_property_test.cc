// Sends many random mixes of jobs through the admission, with small stand-ins for the operator's
// reconciles, the API server and the scheduler: pods are refused, lost, created over several
// reconciles and reported late; nodes and pods of no job come and go. The admission never grants
// more than there is, the first job in line gets enough, every job ends, and nothing is left
// behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>

#include "operator/scheduler/admission.h"
#include "operator/scheduler/testing/fit_together.h"
#include "operator/scheduler/testing/place_of.h"

namespace ringmaster::scheduler {
namespace {

constexpr char kGpu[] = "nvidia.com/gpu";

struct FakePod {
  std::string uid;
  std::string node;  // empty: the pod waits for the scheduler
  bool told = false;
  int leaves_in = -1;  // ticks; -1: it stays
  bool leave_told = false;
};

struct FakeJob {
  std::string name;
  int least = 1, wanted = 1, gpus = 1, priority = 0;
  Moment since;
  int work = 3;                   // ticks for which it trains
  int refused = 0;                // ticks for which the API server refuses its pods
  int short_for = 0;              // reconciles with too few pods
  int asked_with = -1;            // pods when it last asked; -1: it asks for nothing
  bool gives_all = false;         // true until its pods have gone
  std::set<std::string> offered;  // uids, at its last reconcile
  std::map<int, FakePod> pods;    // by index
  std::string Path(int index) const { return "ns/" + name + "-" + std::to_string(index); }
};

// What important jobs take from others.
enum class Taking { kNothing, kSparePods, kJobs };

class FakeCluster {
 public:
  FakeCluster(unsigned seed, Taking taking)
      : random_(seed), preempts_(taking != Taking::kNothing), whole_(taking == Taking::kJobs) {
    const int nodes = 1 + Random(4);
    for (int i = 0; i < nodes; ++i) {
      all_nodes_["n" + std::to_string(i)] = 2 + Random(6);
      SetNode("n" + std::to_string(i));
    }
  }

  void Storm(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      if (Random(3) == 0 && jobs_.size() < 12) AddJob();
      if (Random(6) == 0) LosePod();
      if (Random(12) == 0) ToggleNode();
      if (Random(5) == 0) ToggleForeign();
      if (Random(15) == 0 && !jobs_.empty()) Delete(PickJob());
      if (Random(8) == 0 && !jobs_.empty()) PickJob()->refused = 1 + Random(4);
      Tick();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  // No more faults: every job that fits at all ends.
  void Calm() {
    for (const auto& [name, gpus] : all_nodes_) SetNode(name);
    while (!foreign_.empty()) RemoveForeign();
    for (FakeJob& job : jobs_) job.refused = 0;
    std::erase_if(jobs_, [&](FakeJob& job) {
      if (FitsAlone(job)) return false;
      RemoveAll(job);
      return true;
    });
    for (int i = 0; i < 2000 && !jobs_.empty(); ++i) {
      Tick();
      if (testing::Test::HasFatalFailure()) return;
    }
    std::string left;
    for (const FakeJob& job : jobs_) left += " " + job.name;
    ASSERT_TRUE(jobs_.empty()) << "wait for ever:" << left;
    EXPECT_EQ(capacity().held().size(), 0u);
    EXPECT_TRUE(capacity().nodes().used().empty())
        << "on " << capacity().nodes().used().begin()->first;
  }

  int given() const { return given_; }
  int given_whole() const { return given_whole_; }

 private:
  Capacity& capacity() { return admission_.capacity(); }
  int Random(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  FakeJob* PickJob() {
    return &jobs_[static_cast<std::size_t>(Random(static_cast<int>(jobs_.size())))];
  }
  std::string NewUid() { return "uid-" + std::to_string(++uids_); }

  static Json PodObject(const std::string& path, int gpus, const std::string& uid = "",
                        const std::string& node = "") {
    Json pod = {
        {"metadata", {{"namespace", "ns"}, {"name", path.substr(3)}}},
        {"spec",
         {{"containers", {{{"resources", {{"requests", {{kGpu, std::to_string(gpus)}}}}}}}}}}};
    if (!uid.empty()) pod["metadata"]["uid"] = uid;
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    return pod;
  }
  void SetNode(const std::string& name) {
    nodes_.insert(name);
    capacity().SetNode(
        {{"metadata", {{"name", name}}},
         {"status",
          {{"allocatable", {{kGpu, std::to_string(all_nodes_.at(name))}, {"pods", "1000"}}}}}});
  }

  void AddJob() {
    FakeJob job;
    job.name = "j" + std::to_string(++names_);
    job.least = 1 + Random(5);
    job.wanted = job.least + Random(3);
    job.gpus = 1 + Random(2);
    job.priority = Random(4) == 0 ? 5 : 0;
    job.since = now_;
    job.work = 1 + Random(20);
    jobs_.push_back(std::move(job));
  }
  bool FitsAlone(const FakeJob& job) const {
    int fits = 0;
    for (const auto& [name, gpus] : all_nodes_) fits += gpus / job.gpus;
    return fits >= job.least;
  }
  void RemovePod(FakeJob& job, int index) {
    job.asked_with = -1;
    if (job.pods.at(index).told) capacity().RemovePod(job.pods.at(index).uid);
    job.pods.erase(index);
  }
  void RemoveAll(FakeJob& job) {
    while (!job.pods.empty()) RemovePod(job, job.pods.begin()->first);
    admission_.Withdraw("ns/" + job.name);
    admission_.RemoveHolding("ns/" + job.name);
  }
  void Delete(FakeJob* job) {
    RemoveAll(*job);
    jobs_.erase(jobs_.begin() + (job - jobs_.data()));
  }
  void LosePod() {
    for (FakeJob& job : jobs_) {
      if (job.pods.empty() || Random(3) != 0) continue;
      return RemovePod(job, job.pods.begin()->first);
    }
  }
  void ToggleNode() {
    auto at = std::next(all_nodes_.begin(), Random(static_cast<int>(all_nodes_.size())));
    if (nodes_.count(at->first) == 0) return SetNode(at->first);
    nodes_.erase(at->first);
    for (FakeJob& job : jobs_) {
      for (int i = 0; i < job.wanted; ++i) {
        if (job.pods.count(i) != 0 && job.pods[i].node == at->first) RemovePod(job, i);
      }
    }
    std::erase_if(foreign_, [&](const auto& pod) {
      if (pod.second != at->first) return false;
      capacity().RemovePod(pod.first);
      return true;
    });
    capacity().RemoveNode(at->first);
  }
  void RemoveForeign() {
    capacity().RemovePod(foreign_.begin()->first);
    foreign_.erase(foreign_.begin());
  }
  void ToggleForeign() {
    if (!foreign_.empty() && Random(2) == 0) return RemoveForeign();
    Json pod = PodObject("ns/foreign", 1, NewUid());
    const auto node = PlaceOf(&capacity(), pod);  // takes nothing from jobs
    if (!node) return;
    pod["spec"]["nodeName"] = *node;
    capacity().SetPod(pod);
    foreign_[pod["metadata"]["uid"]] = *node;
  }

  // The scheduler, which uses the real state of the nodes.
  void Bind(FakeJob& job, int index) {
    std::map<std::string, int> used;
    for (const auto& [uid, node] : foreign_) ++used[node];
    for (const FakeJob& other : jobs_) {
      for (const auto& [i, pod] : other.pods) used[pod.node] += other.gpus;
    }
    for (const std::string& node : nodes_) {
      if (all_nodes_.at(node) - used[node] < job.gpus) continue;
      job.pods[index].node = node;
      break;
    }
    Tell(job, index);
  }
  void Tell(FakeJob& job, int index) {
    FakePod& pod = job.pods[index];
    pod.told = true;
    const auto leaves = pod.leaves_in < 0 ? std::nullopt : std::optional(now_);
    pod.leave_told = leaves.has_value();
    capacity().SetPod(PodObject(job.Path(index), job.gpus, pod.uid, pod.node), "ns/" + job.name,
                      leaves);
  }
  static std::vector<int> Stay(const FakeJob& job) {
    std::vector<int> stay;
    for (const auto& [i, pod] : job.pods) {
      if (!pod.node.empty() && pod.leaves_in < 0) stay.push_back(i);
    }
    return stay;
  }
  static bool IsDemanded(const std::string& uid, const std::vector<PodDemand>& demands) {
    return std::any_of(demands.begin(), demands.end(),
                       [&](const PodDemand& demand) { return demand.uid == uid; });
  }
  // Demanded pods of a training job begin to leave; then other pods of it can be taken. The job may
  // have lost a pod since the decision, so it keeps what it needs, as the planner does. The line
  // may learn one reconcile later that a pod leaves.
  void Give(FakeJob& job) {
    std::vector<int> stay = Stay(job), given;
    const std::vector<PodDemand> demands = admission_.DemandsOn("ns/" + job.name);
    for (auto& [i, pod] : job.pods) {
      if (pod.leaves_in < 0) continue;
      if (!pod.leave_told) Tell(job, i);
      if (IsDemanded(pod.uid, demands)) given.push_back(i);
    }
    const bool all = std::any_of(demands.begin(), demands.end(),
                                 [](const PodDemand& demand) { return demand.whole; });
    if (all) {
      ASSERT_GT(demands.front().priority, job.priority) << job.name;
      return GiveAll(job);
    }
    for (const PodDemand& demand : demands) {
      ASSERT_GT(demand.priority, job.priority) << job.name << " gives to " << demand.job;
      const auto at = std::find_if(stay.begin(), stay.end(),
                                   [&](int i) { return job.pods[i].uid == demand.uid; });
      if (at == stay.end() || static_cast<int>(stay.size()) <= job.least) continue;
      job.pods[*at].leaves_in = Random(4);
      if (Random(2) == 0) Tell(job, *at);
      given.push_back(*at);
      stay.erase(at);
      ++given_;
    }
    if (static_cast<int>(stay.size()) < job.least) {
      return admission_.RemoveHolding("ns/" + job.name);
    }
    Holding holding{"ns/" + job.name, job.priority, {}, job.least, {}, whole_, {}};
    for (const int i : stay) holding.pods.push_back({job.pods[i].uid, job.Path(i)});
    for (const int i : given) holding.pods.push_back({job.pods[i].uid, job.Path(i), false});
    Offer(job, std::move(holding));
  }
  void Offer(FakeJob& job, Holding holding) {
    job.offered.clear();
    for (const GivablePod& pod : holding.pods) job.offered.insert(pod.uid);
    admission_.SetHolding(std::move(holding));
  }
  // The job gives up all its pods, and asks for nothing until they have gone. The line may learn
  // one reconcile later that they leave; until then they are offered.
  void GiveAll(FakeJob& job) {
    Holding holding{"ns/" + job.name, job.priority, {}, job.least, {}, true, {}};
    for (auto& [i, pod] : job.pods) {
      if (pod.leaves_in < 0) pod.leaves_in = Random(4);
      if (job.gives_all || Random(2) == 0) Tell(job, i);
      if (!pod.node.empty()) holding.pods.push_back({pod.uid, job.Path(i)});
    }
    given_whole_ += job.gives_all ? 0 : 1;
    job.gives_all = true;
    Offer(job, std::move(holding));
    admission_.Withdraw("ns/" + job.name);
    job.asked_with = -1;
  }
  void Leave() {
    for (FakeJob& job : jobs_) {
      for (int i = 0; i < job.wanted; ++i) {
        if (job.pods.count(i) == 0 || job.pods[i].leaves_in < 0) continue;
        if (job.pods[i].leaves_in-- == 0) RemovePod(job, i);
      }
    }
  }
  // The line demands no more pods than the jobs have offered.
  void CheckDemands() {
    std::set<std::string> demanded;
    for (const FakeJob& job : jobs_) {
      const std::vector<PodDemand> demands = admission_.DemandsOn("ns/" + job.name);
      bool all = false;
      for (const PodDemand& demand : demands) {
        all = all || demand.whole;
        ASSERT_TRUE(demanded.insert(demand.uid).second) << "taken for two jobs";
        ASSERT_NE(demand.job, "ns/" + job.name);
      }
      const std::vector<int> stay = Stay(job);
      const auto taken = std::count_if(
          stay.begin(), stay.end(), [&](int i) { return IsDemanded(job.pods.at(i).uid, demands); });
      if (all) {
        const auto offered = std::count_if(stay.begin(), stay.end(), [&](int i) {
          return job.offered.count(job.pods.at(i).uid) != 0;
        });
        ASSERT_EQ(taken, offered) << job.name << " gives all or nothing";
        continue;
      }
      ASSERT_LE(taken, std::max(0, static_cast<int>(stay.size()) - job.least)) << job.name;
    }
  }

  // As the operator does: it creates granted pods, some at a time; if pods are refused, it gives
  // back what was granted.
  void Look(FakeJob& job) {
    if (job.gives_all && job.pods.empty()) {
      job.gives_all = false;
      admission_.RemoveHolding("ns/" + job.name);
    }
    if (job.gives_all) return GiveAll(job);
    if (preempts_) Give(job);
    if (job.gives_all) return;
    std::vector<std::string> started;
    AdmissionRequest request{.job = "ns/" + job.name,
                             .priority = job.priority,
                             .preempts = preempts_ && job.refused == 0,
                             .since = job.since};
    std::vector<int> missing;
    for (int i = 0; i < job.wanted; ++i) {
      if (job.pods.count(i) != 0) {
        started.push_back(job.Path(i));
        continue;
      }
      missing.push_back(i);
      request.pods.push_back(std::make_shared<const Json>(PodObject(job.Path(i), job.gpus)));
    }
    const int have = static_cast<int>(started.size());
    job.asked_with = -1;
    if (missing.empty()) return admission_.Withdraw(request.job, started);
    request.state = have == 0          ? GangState::kWaits
                    : have < job.least ? GangState::kShort
                                       : GangState::kRuns;
    for (int i = 1; i <= static_cast<int>(missing.size()); ++i) {
      if (have + i >= job.least) request.sizes.push_back(i);
    }
    if (job.refused > 0) return admission_.Withdraw(request.job, started);
    const GangFit fit = admission_.Ask(std::move(request), started);
    const bool stuck = have > 0 && have < job.least && fit.fit == 0 && fit.decided;
    job.short_for = stuck ? job.short_for + 1 : 0;
    if (job.short_for > 5) {  // it gives back what it has, and goes to the end of the line
      RemoveAll(job);
      job.since = now_;
      return;
    }
    job.asked_with = have;
    for (int i = 0; i < std::min(fit.fit, 2); ++i) {
      job.pods[missing[i]] = {NewUid()};
      if (Random(2) == 0) Tell(job, missing[i]);
    }
  }

  void Tick() {
    now_ += std::chrono::seconds(10);
    std::vector<std::size_t> order(jobs_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    for (const std::size_t i : order) {
      Look(jobs_[i]);
      ASSERT_NO_FATAL_FAILURE(Check());
    }
    for (FakeJob& job : jobs_) {
      for (int i = 0; i < job.wanted; ++i) {
        if (job.pods.count(i) != 0 && job.pods[i].node.empty() && Random(4) != 0) Bind(job, i);
      }
      job.refused = std::max(0, job.refused - 1);
    }
    ASSERT_NO_FATAL_FAILURE(Check());
    Leave();
    if (const auto at = admission_.look_again(); at && *at <= now_) admission_.LookAgain();
    if (admission_.IsPassDue()) {
      admission_.Pass(now_);
      ASSERT_NO_FATAL_FAILURE(Check());
      ASSERT_NO_FATAL_FAILURE(CheckDemands());
      ASSERT_NO_FATAL_FAILURE(CheckFirstInLine());
    }
    for (FakeJob& job : jobs_) {
      const auto runs = std::count_if(job.pods.begin(), job.pods.end(),
                                      [](const auto& pod) { return !pod.second.node.empty(); });
      if (runs >= job.least) --job.work;
    }
    for (std::size_t i = jobs_.size(); i-- > 0;) {
      if (jobs_[i].work <= 0) Delete(&jobs_[i]);
    }
  }

  void Check() {
    for (const auto& [name, used] : capacity().nodes().used()) {
      const auto gpus = used.find(kGpu);
      if (!capacity().nodes().Has(name) || gpus == used.end()) continue;
      ASSERT_LE(gpus->second, capacity().nodes().AllocatableOf(name).at(kGpu)) << name;
    }
  }
  void CheckFirstInLine() {
    const FakeJob* first = nullptr;
    const auto rank = [](const FakeJob& job) {
      const int have = job.asked_with;
      return std::tuple(have == 0 || have >= job.least, -job.priority, job.since, job.name);
    };
    for (const FakeJob& job : jobs_) {
      if (job.asked_with < 0 || job.asked_with >= job.least) continue;
      bool held = false;
      for (int i = 0; i < job.wanted; ++i) {
        held = held || (job.pods.count(i) == 0 && capacity().held().Has(job.Path(i)));
      }
      if (held) continue;
      if (first == nullptr || rank(job) < rank(*first)) first = &job;
    }
    if (first == nullptr || first->asked_with != static_cast<int>(first->pods.size())) return;
    // Free room may be kept for a job of the same importance until pods have left for it.
    if (preempts_) {
      const bool alone = std::none_of(jobs_.begin(), jobs_.end(), [&](const FakeJob& job) {
        return &job != first && job.priority >= first->priority;
      });
      if (!alone) return;
    }
    const int needs = first->least - static_cast<int>(first->pods.size());
    std::vector<Json> pods;
    for (int i = 0; i < needs; ++i)
      pods.push_back(PodObject("ns/x" + std::to_string(i), first->gpus));
    ASSERT_LT(FitTogether(capacity(), pods), needs)
        << first->name << " is first in line, and what it needs is free";
  }

  std::mt19937 random_;
  const bool preempts_, whole_;
  int given_ = 0;        // number of pods taken from jobs
  int given_whole_ = 0;  // number of jobs that gave up all their pods
  Admission admission_;
  std::map<std::string, int> all_nodes_;        // name, GPUs
  std::set<std::string> nodes_;                 // existing ones
  std::map<std::string, std::string> foreign_;  // uid, node
  std::vector<FakeJob> jobs_;
  Moment now_ = Moment(std::chrono::hours(1));
  int names_ = 0, uids_ = 0;
};

TEST(AdmissionPropertyTest, NobodyWaitsForEverNothingIsGrantedTwiceAndNothingIsLeft) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FakeCluster cluster(seed, Taking::kNothing);
    ASSERT_NO_FATAL_FAILURE(cluster.Storm(80));
    ASSERT_NO_FATAL_FAILURE(cluster.Calm());
  }
}

TEST(AdmissionPropertyTest, SoItIsWhereImportantJobsTakeWhatOthersCanDoWithout) {
  int given = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FakeCluster cluster(seed, Taking::kSparePods);
    ASSERT_NO_FATAL_FAILURE(cluster.Storm(80));
    ASSERT_NO_FATAL_FAILURE(cluster.Calm());
    given += cluster.given();
  }
  EXPECT_GT(given, 100);
}

TEST(AdmissionPropertyTest, SoItIsWhereImportantJobsTakeWholeOnes) {
  int given = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FakeCluster cluster(seed, Taking::kJobs);
    ASSERT_NO_FATAL_FAILURE(cluster.Storm(80));
    ASSERT_NO_FATAL_FAILURE(cluster.Calm());
    given += cluster.given_whole();
  }
  EXPECT_GT(given, 100);
}

}  // namespace
}  // namespace ringmaster::scheduler
