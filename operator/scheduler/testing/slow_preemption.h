// The search of preemption.cc in its slow form: by names, on the capacity itself. The quick one is
// compared with it.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operator/scheduler/preemption.h"
#include "operator/scheduler/what_if.h"

namespace ringmaster::scheduler::slow {

inline constexpr double kNothing = 1e-9;  // amounts below this are rounding errors of sums

// A pod that may be taken, and where it is.
struct Candidate {
  const Holding* holding = nullptr;
  const GivablePod* pod = nullptr;
  std::size_t turn = 0;  // index in the holding's pods
  Amounts requests;
};

// The pods of one node that make room for one pod of the need.
struct Option {
  std::vector<const Candidate*> pods;
  int priority = std::numeric_limits<int>::min();  // highest priority of the jobs that give
  std::size_t turn = 0;  // highest index of the pods in their jobs' order of giving
};

// How many training pods each job has above those that it keeps.
class Budgets {
 public:
  Budgets() = default;
  Budgets(const Holdings& holdings, const Capacity& capacity, const WhatIf& what_if) {
    for (const auto& [job, holding] : holdings) {
      int train = 0;
      for (const GivablePod& pod : holding.pods) {
        train += pod.trains && !what_if.IsOut(pod.uid) && capacity.placed().Find(pod.uid) ? 1 : 0;
      }
      left_[job] = train - holding.least;
    }
  }
  int Of(const Holding& holding) const { return left_.at(holding.job); }
  void Spend(const Holding& holding, const GivablePod& pod) {
    if (pod.trains) --left_.at(holding.job);
  }
  bool Allows(const Option& option) const {
    std::map<const Holding*, int> asked;
    for (const Candidate* candidate : option.pods) {
      asked[candidate->holding] += candidate->pod->trains ? 1 : 0;
    }
    return std::all_of(asked.begin(), asked.end(),
                       [&](const auto& ask) { return ask.second <= Of(*ask.first); });
  }

 private:
  std::unordered_map<std::string, int> left_;  // by job
};

class Search {
 public:
  Search(Capacity* capacity, const Need& need, const Holdings& holdings)
      : capacity_(*capacity), need_(need), holdings_(holdings), what_if_(capacity) {}

  // Finds places for all needed pods.
  bool Run(const std::set<std::string>& whole, const PreemptionCase& what) {
    CountOnLeaving(what.now);
    CountOnOthers(what.for_others);
    TakeWhole(whole);
    CountOnBefore(what.before);
    return PlaceAll();
  }

  // Treats pods as gone that leave whatever is decided here, unless they are late.
  void CountOnLeaving(Moment now) {
    for (const auto& [uid, by] : capacity_.placed().leaving()) {
      if (by + kLeavesLate <= now) continue;
      what_if_.TakeOut(uid);
      late_at_ = std::min(late_at_.value_or(by + kLeavesLate), by + kLeavesLate);
    }
  }
  void CountOnOthers(const std::set<std::string>& uids) {
    for (const std::string& uid : uids) {
      if (capacity_.placed().Find(uid)) what_if_.TakeOut(uid);
    }
  }
  void TakeWhole(const std::set<std::string>& jobs) {
    for (const std::string& job : jobs) {
      for (const GivablePod& pod : holdings_.at(job).pods) {
        const bool hangs = capacity_.placed().leaving().count(pod.uid) != 0;
        if (what_if_.IsOut(pod.uid) || hangs || !capacity_.placed().Find(pod.uid)) continue;
        what_if_.TakeOut(pod.uid);
        taken_.push_back({pod.uid, pod.name, job, true});
      }
    }
  }
  // Takes the pods again that were taken in earlier passes: their jobs may be giving them up
  // already and are not asked for others instead. A job that has lost pods since then refuses to
  // give those that it can't do without any more, so these are not counted on.
  void CountOnBefore(const std::vector<TakenPod>& before) {
    budgets_ = Budgets(holdings_, capacity_, what_if_);
    for (const TakenPod& pod : before) {
      if (!capacity_.placed().Find(pod.uid)) continue;
      const bool leaves = capacity_.placed().leaving().count(pod.uid) != 0;
      // TakeWhole has taken the pods of the jobs that still give all; the rest of such pods is not
      // needed any more.
      if (!leaves && (pod.whole || what_if_.IsOut(pod.uid))) continue;
      if (leaves ? !what_if_.IsOut(pod.uid) : !SpendFor(pod)) continue;
      what_if_.TakeOut(pod.uid);
      taken_.push_back(pod);
    }
  }

  bool PlaceAll() {
    FindCandidates();
    for (std::size_t i = 0; i < need_.pods.size(); ++i) {
      const ShapePtr& shape = need_.shapes[i];
      std::string node;
      if (auto place = capacity_.nodes().Place(*shape)) {
        node = std::move(*place);
      } else if (auto cheapest = CheapestNode(*shape)) {
        node = std::move(*cheapest);
        for (const Candidate* candidate : options_.at(node)->pods) Take(*candidate);
      } else {
        return false;
      }
      what_if_.Hold(*need_.pods[i], shape, node, need_.job);
      options_.erase(node);
      nodes_.push_back(std::move(node));
    }
    return true;
  }

  // Spares jobs that were to give all and turn out not to be needed, those that lose most first.
  void SpareNeedlessJobs() {
    std::map<std::string, std::vector<std::string>> uids;  // by job
    for (const TakenPod& pod : taken_) {
      const bool leaves = capacity_.placed().leaving().count(pod.uid) != 0;
      if (pod.whole && !leaves) uids[pod.job].push_back(pod.uid);
    }
    std::vector<const Holding*> jobs;
    for (const auto& [job, pods] : uids) {
      if (const auto known = holdings_.find(job); known != holdings_.end()) {
        jobs.push_back(&known->second);
      }
    }
    std::sort(jobs.begin(), jobs.end(), [](auto* a, auto* b) { return LosesLess(b, a); });
    std::set<std::string> spared;  // uids
    for (const Holding* job : jobs) {
      const auto& pods = uids.at(job->job);
      if (FitsBesides(pods)) spared.insert(pods.begin(), pods.end());
    }
    std::erase_if(taken_, [&](const TakenPod& pod) { return spared.count(pod.uid) != 0; });
  }

  // Returns pods that turn out not to be needed, those of the most important jobs first.
  void GiveBackNeedless() {
    std::vector<TakenPod> order = taken_;
    std::stable_sort(order.begin(), order.end(), [&](const TakenPod& a, const TakenPod& b) {
      return PriorityOf(a) > PriorityOf(b);
    });
    for (const TakenPod& pod : order) {
      if (pod.whole || capacity_.placed().leaving().count(pod.uid) != 0) continue;
      what_if_.PutBack(pod.uid);
      if (capacity_.nodes().IsOverfull(*capacity_.placed().Find(pod.uid)->node)) {
        what_if_.TakeOut(pod.uid);
      } else {
        std::erase(taken_, pod);
      }
    }
  }

  // A job that trains only with certain numbers of pods gives up more, down to the next such
  // number.
  void RoundToSizes() {
    std::set<std::string> givers;
    for (const TakenPod& pod : taken_) givers.insert(pod.job);
    for (const std::string& job : givers) {
      const auto holding = holdings_.find(job);
      if (holding == holdings_.end() || holding->second.sizes.empty()) continue;
      std::vector<const GivablePod*> left;
      for (const GivablePod& pod : holding->second.pods) {
        const bool there = !what_if_.IsOut(pod.uid) && capacity_.placed().Find(pod.uid);
        if (pod.trains && there) left.push_back(&pod);
      }
      const auto& sizes = holding->second.sizes;
      const auto above =
          std::upper_bound(sizes.begin(), sizes.end(), static_cast<int>(left.size()));
      if (above == sizes.begin()) continue;
      const std::size_t more = left.size() - static_cast<std::size_t>(*std::prev(above));
      for (std::size_t i = 0; i < more; ++i) {
        what_if_.TakeOut(left[i]->uid);
        taken_.push_back({left[i]->uid, left[i]->name, job});
      }
    }
  }

  Preemption Result() { return {std::move(taken_), std::move(nodes_), late_at_}; }

 private:
  // Puts the pods back where that leaves the needed pods their places.
  bool FitsBesides(const std::vector<std::string>& uids) {
    for (const std::string& uid : uids) what_if_.PutBack(uid);
    const bool fits = std::none_of(uids.begin(), uids.end(), [&](const std::string& uid) {
      return capacity_.nodes().IsOverfull(*capacity_.placed().Find(uid)->node);
    });
    for (const std::string& uid : uids) {
      if (!fits) what_if_.TakeOut(uid);
    }
    return fits;
  }
  int PriorityOf(const TakenPod& pod) const {
    const auto holding = holdings_.find(pod.job);
    return holding == holdings_.end() ? 0 : holding->second.priority;
  }
  // Returns false if the pod may not be taken any more.
  bool SpendFor(const TakenPod& taken) {
    const auto holding = holdings_.find(taken.job);
    if (holding == holdings_.end() || holding->second.priority >= need_.priority) return false;
    const auto& pods = holding->second.pods;
    const auto pod = std::find_if(pods.begin(), pods.end(),
                                  [&](const GivablePod& one) { return one.uid == taken.uid; });
    if (pod == pods.end() || (pod->trains && budgets_.Of(holding->second) <= 0)) return false;
    budgets_.Spend(holding->second, *pod);
    return true;
  }

  void FindCandidates() {
    for (const auto& [job, holding] : holdings_) {
      if (holding.priority >= need_.priority) continue;
      for (std::size_t i = 0; i < holding.pods.size(); ++i) {
        const GivablePod& pod = holding.pods[i];
        // A pod that is leaving and was not counted on is late: taking it would not help.
        if (what_if_.IsOut(pod.uid) || capacity_.placed().leaving().count(pod.uid) != 0) continue;
        if (const auto* at = capacity_.placed().Find(pod.uid)) {
          candidates_[*at->node].push_back({&holding, &pod, i, *at->requests});
        }
      }
    }
    for (auto& [node, some] : candidates_) {
      std::stable_sort(some.begin(), some.end(), [](const Candidate& a, const Candidate& b) {
        return a.holding->priority < b.holding->priority;
      });
    }
  }

  void Take(const Candidate& candidate) {
    what_if_.TakeOut(candidate.pod->uid);
    budgets_.Spend(*candidate.holding, *candidate.pod);
    taken_.push_back({candidate.pod->uid, candidate.pod->name, candidate.holding->job});
  }

  // Smaller is better: givers of low priority, few pods, from jobs that could give many.
  using Ranking = std::tuple<int, std::size_t, int, std::size_t>;
  Ranking Rank(const Option& option) const {
    int could_give = std::numeric_limits<int>::max();
    for (const Candidate* candidate : option.pods) {
      could_give = std::min(could_give, budgets_.Of(*candidate->holding));
    }
    return {option.priority, option.pods.size(), -could_give, option.turn};
  }

  // Options are kept from one needed pod to the next, because most remain valid.
  std::optional<std::string> CheapestNode(const Shape& shape) {
    if (&shape != options_of_) options_.clear();
    options_of_ = &shape;
    const std::string* best = nullptr;
    Ranking best_rank;
    for (const std::string& node : capacity_.nodes().OpenTo(shape)) {
      if (candidates_.count(node) == 0) continue;
      auto known = options_.find(node);
      if (known == options_.end() || (known->second && !budgets_.Allows(*known->second))) {
        known = options_.insert_or_assign(node, OptionOn(node, shape)).first;
      }
      if (!known->second) continue;
      const auto rank = Rank(*known->second);
      if (best != nullptr && best_rank <= rank) continue;
      best = &node;
      best_rank = rank;
    }
    return best == nullptr ? std::nullopt : std::optional(*best);
  }

  std::optional<Option> OptionOn(const std::string& node, const Shape& shape) const {
    Amounts lacks = LacksOn(node, shape);
    Option option;
    std::map<const Holding*, int> asked;
    for (const Candidate& candidate : candidates_.at(node)) {
      if (lacks.empty()) break;
      if (what_if_.IsOut(candidate.pod->uid) || !Helps(candidate, lacks)) continue;
      int& from = asked[candidate.holding];
      if (candidate.pod->trains && from >= budgets_.Of(*candidate.holding)) continue;
      from += candidate.pod->trains ? 1 : 0;
      Subtract(candidate, &lacks);
      option.pods.push_back(&candidate);
    }
    if (!lacks.empty()) return std::nullopt;
    DropNeedless(LacksOn(node, shape), &option);
    for (const Candidate* candidate : option.pods) {
      option.priority = std::max(option.priority, candidate->holding->priority);
      option.turn = std::max(option.turn, candidate->turn);
    }
    return option;
  }

  Amounts LacksOn(const std::string& node, const Shape& shape) const {
    Amounts lacks;
    for (const auto& [resource, n] : shape.requests) {
      const double lack = n - capacity_.nodes().FreeOn(node, resource);
      if (n > 0 && lack > kNothing) lacks[resource] = lack;
    }
    return lacks;
  }
  static bool Helps(const Candidate& candidate, const Amounts& lacks) {
    return std::any_of(lacks.begin(), lacks.end(), [&](const auto& lack) {
      const auto has = candidate.requests.find(lack.first);
      return has != candidate.requests.end() && has->second > 0;
    });
  }
  static void Subtract(const Candidate& candidate, Amounts* lacks) {
    for (const auto& [resource, n] : candidate.requests) {
      const auto lack = lacks->find(resource);
      if (lack == lacks->end()) continue;
      lack->second -= n;
      if (lack->second <= kNothing) lacks->erase(lack);
    }
  }
  // A large pod that was added late may make smaller ones before it unnecessary.
  static void DropNeedless(const Amounts& lacks, Option* option) {
    for (std::size_t i = option->pods.size(); i-- > 0;) {
      Amounts without = lacks;
      for (std::size_t j = 0; j < option->pods.size(); ++j) {
        if (j != i) Subtract(*option->pods[j], &without);
      }
      if (without.empty()) option->pods.erase(option->pods.begin() + static_cast<long>(i));
    }
  }

  Capacity& capacity_;
  const Need& need_;
  const Holdings& holdings_;
  WhatIf what_if_;
  Budgets budgets_;
  std::vector<TakenPod> taken_;
  std::vector<std::string> nodes_;
  std::optional<Moment> late_at_;
  std::unordered_map<std::string, std::vector<Candidate>> candidates_;  // by node
  std::unordered_map<std::string, std::optional<Option>> options_;      // by node, of one shape
  const Shape* options_of_ = nullptr;
};

// As PreemptionSearch::TakeWith.
inline std::optional<Preemption> TakeWith(const std::set<std::string>& whole,
                                          const PreemptionCase& what) {
  const auto lowest = LowestPriority(what.holdings);
  const bool may_take = lowest && *lowest < what.need.priority;
  if (!may_take && what.before.empty()) return std::nullopt;
  Capacity capacity = *what.capacity;
  Search search(&capacity, what.need, what.holdings);
  if (!search.Run(whole, what)) return std::nullopt;
  search.SpareNeedlessJobs();
  search.GiveBackNeedless();
  search.RoundToSizes();
  return search.Result();
}

}  // namespace ringmaster::scheduler::slow
