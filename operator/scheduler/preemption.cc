#include "operator/scheduler/preemption.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "operator/scheduler/givers.h"
#include "operator/scheduler/trial.h"

namespace ringmaster::scheduler {
namespace {

// Pods taken earlier may still have to go although their job has no holding any more.
bool MayTake(const PreemptionCase& what) {
  const auto lowest = LowestPriority(what.holdings);
  return (lowest && *lowest < what.need.priority) || !what.before.empty();
}

}  // namespace

std::optional<int> LowestPriority(const Holdings& holdings) {
  std::optional<int> lowest;
  for (const auto& [job, holding] : holdings) {
    lowest = std::min(lowest.value_or(holding.priority), holding.priority);
  }
  return lowest;
}

bool LosesLess(const Holding* a, const Holding* b) {
  const auto rank = [](const Holding& job) {
    return std::tuple(job.priority, job.pods.size(), -job.since.time_since_epoch(), job.job);
  };
  return rank(*a) < rank(*b);
}

class PreemptionSearch::Search {
 public:
  explicit Search(const PreemptionCase& what)
      : what_(what),
        trial_(*what.capacity, what.need.shapes),
        leaving_(CountOnWhoGoes()),
        givers_(what.holdings, what.need.priority, leaving_, &trial_) {
    for (const TakenPod& pod : what.before) {
      before_.push_back({trial_.PodOf(pod.uid), givers_.Find(pod.job)});
    }
    trial_.Keep();
  }

  // Finds places for all needed pods. May be called again, for other jobs.
  bool Run(const std::set<std::string>& whole) {
    trial_.Restore();
    taken_.clear();
    nodes_.clear();
    TakeWhole(whole);
    CountOnBefore();
    return PlaceAll();
  }

  // Spares jobs that were to give all and turn out not to be needed, those that lose most first.
  void SpareNeedlessJobs() {
    std::map<std::size_t, std::vector<std::size_t>> pods;  // by giver
    for (const Taken& taken : taken_) {
      if (taken.whole && !Leaves(taken.pod)) pods[taken.giver].push_back(taken.pod);
    }
    std::vector<std::size_t> jobs;
    for (const auto& [giver, some] : pods) jobs.push_back(giver);
    std::sort(jobs.begin(), jobs.end(), [&](std::size_t a, std::size_t b) {
      return LosesLess(givers_.At(b).holding, givers_.At(a).holding);
    });
    for (const std::size_t job : jobs) {
      if (!FitBesides(pods.at(job))) continue;
      std::erase_if(taken_, [&](const Taken& taken) {
        return taken.whole && taken.giver == job && !Leaves(taken.pod);
      });
    }
  }

  // Returns pods that turn out not to be needed, those of the most important jobs first.
  void GiveBackNeedless() {
    std::vector<Taken> order = taken_;
    std::stable_sort(order.begin(), order.end(),
                     [&](const Taken& a, const Taken& b) { return PriorityOf(a) > PriorityOf(b); });
    for (const Taken& taken : order) {
      if (taken.whole || Leaves(taken.pod) || !FitBesides({taken.pod})) continue;
      std::erase_if(taken_, [&](const Taken& one) { return one.pod == taken.pod; });
    }
  }

  // A job that trains only with certain numbers of pods gives up more, down to the next such
  // number.
  void RoundToSizes() {
    std::set<std::size_t> jobs;
    for (const Taken& taken : taken_) jobs.insert(taken.giver);
    jobs.erase(Trial::kNone);
    for (const std::size_t job : jobs) {
      const auto& [holding, pods] = givers_.At(job);
      std::vector<std::size_t> left;  // turns
      for (std::size_t turn = 0; turn < pods.size(); ++turn) {
        const bool there = pods[turn] != Trial::kNone && !trial_.IsOut(pods[turn]);
        if (holding->pods[turn].trains && there) left.push_back(turn);
      }
      const auto& sizes = holding->sizes;
      const auto above =
          std::upper_bound(sizes.begin(), sizes.end(), static_cast<int>(left.size()));
      if (above == sizes.begin()) continue;
      const std::size_t more = left.size() - static_cast<std::size_t>(*std::prev(above));
      for (std::size_t i = 0; i < more; ++i) Take(job, left[i], false);
    }
  }

  Preemption Result() const {
    Preemption result{.late_at = late_at_};
    for (const Taken& taken : taken_) {
      if (taken.before != nullptr) {
        result.taken.push_back(*taken.before);
        continue;
      }
      const Holding& holding = *givers_.At(taken.giver).holding;
      const GivablePod& pod = holding.pods[taken.turn];
      result.taken.push_back({pod.uid, pod.name, holding.job, taken.whole});
    }
    for (const std::size_t node : nodes_) result.nodes.push_back(trial_.NameOf(node));
    return result;
  }

 private:
  struct Taken {
    std::size_t pod;    // number in the trial
    std::size_t giver;  // number of its job; Trial::kNone: the job doesn't train any more
    std::size_t turn;   // index in the holding's pods
    bool whole;
    const TakenPod* before;  // null: it was not taken in an earlier pass
  };
  struct Before {
    std::size_t pod;
    std::size_t giver;
  };
  // A node where a needed pod fits: the one with the most free CPU comes first, then by name.
  struct Room {
    double cpu;
    std::size_t node;
    friend bool operator<(const Room& a, const Room& b) {
      return std::tie(a.cpu, b.node) < std::tie(b.cpu, a.node);
    }
  };

  // The leaving pods have the first numbers.
  bool Leaves(std::size_t pod) const { return pod < leaving_; }

  // Treats pods as gone that leave whatever is decided here, unless they are late, and those that
  // are taken for others. Returns how many pods leave.
  std::size_t CountOnWhoGoes() {
    for (const auto& [uid, by] : what_.capacity->placed().leaving()) {
      const std::size_t pod = trial_.PodOf(uid);
      if (by + kLeavesLate <= what_.now) continue;
      trial_.TakeOut(pod);
      late_at_ = std::min(late_at_.value_or(by + kLeavesLate), by + kLeavesLate);
    }
    const std::size_t leaving = trial_.pods();
    for (const std::string& uid : what_.for_others) {
      if (const std::size_t pod = trial_.PodOf(uid); pod != Trial::kNone) trial_.TakeOut(pod);
    }
    return leaving;
  }
  void TakeWhole(const std::set<std::string>& jobs) {
    for (const std::string& job : jobs) {
      const std::size_t giver = givers_.Find(job);
      const auto& pods = givers_.At(giver).pods;
      for (std::size_t turn = 0; turn < pods.size(); ++turn) {
        if (pods[turn] == Trial::kNone || trial_.IsOut(pods[turn]) || Leaves(pods[turn])) continue;
        Take(giver, turn, true);
      }
    }
  }
  // Takes the pods again that were taken in earlier passes: their jobs may be giving them up
  // already and are not asked for others instead. A job that has lost pods since then refuses to
  // give those that it can't do without any more, so these are not counted on.
  void CountOnBefore() {
    givers_.CountBudgets();
    for (std::size_t i = 0; i < before_.size(); ++i) {
      const TakenPod& taken = what_.before[i];
      const auto& [pod, giver] = before_[i];
      if (pod == Trial::kNone) continue;
      // TakeWhole has taken the pods of the jobs that still give all; the rest of such pods is not
      // needed any more.
      if (!Leaves(pod) && (taken.whole || trial_.IsOut(pod))) continue;
      if (Leaves(pod) ? !trial_.IsOut(pod) : !SpendFor(pod, giver)) continue;
      trial_.TakeOut(pod);
      taken_.push_back({pod, giver, 0, taken.whole, &taken});
    }
  }
  // Returns false if the pod may not be taken any more.
  bool SpendFor(std::size_t pod, std::size_t giver) {
    if (giver == Trial::kNone) return false;
    const auto& [holding, pods] = givers_.At(giver);
    if (holding->priority >= what_.need.priority) return false;
    const auto at = std::find(pods.begin(), pods.end(), pod);
    if (at == pods.end()) return false;
    const bool trains = holding->pods[static_cast<std::size_t>(at - pods.begin())].trains;
    if (trains && givers_.BudgetOf(giver) <= 0) return false;
    givers_.Spend(giver, trains);
    return true;
  }
  void Take(std::size_t giver, std::size_t turn, bool whole) {
    const std::size_t pod = givers_.At(giver).pods[turn];
    trial_.TakeOut(pod);
    taken_.push_back({pod, giver, turn, whole, nullptr});
  }

  bool PlaceAll() {
    const Need& need = what_.need;
    givers_.BeginSearch();
    for (std::size_t i = 0; i < need.shapes.size(); ++i) {
      const Shape& shape = *need.shapes[i];
      const Trial::Numbered& requests = trial_.RequestsOf(shape);
      if (i == 0 || need.shapes[i] != need.shapes[i - 1]) FindRoom(shape);
      const auto node = PlaceOne(shape);
      if (!node) return false;
      trial_.Use(*node, requests);
      givers_.Forget(*node);
      nodes_.push_back(*node);
      if (trial_.Fits(*node, requests)) room_.push({trial_.FreeCpuOn(*node), *node});
    }
    return true;
  }
  void FindRoom(const Shape& shape) {
    const Trial::Numbered& requests = trial_.RequestsOf(shape);
    std::vector<Room> room;
    for (const std::size_t node : trial_.OpenTo(shape)) {
      if (trial_.Fits(node, requests)) room.push_back({trial_.FreeCpuOn(node), node});
    }
    room_ = std::priority_queue<Room>({}, std::move(room));
  }
  std::optional<std::size_t> PlaceOne(const Shape& shape) {
    if (!room_.empty()) {
      const std::size_t node = room_.top().node;
      room_.pop();
      return node;
    }
    const auto place = givers_.Cheapest(shape);
    if (!place) return std::nullopt;
    for (const Candidate* candidate : place->pods) {
      givers_.Spend(candidate->giver, candidate->trains);
      Take(candidate->giver, candidate->turn, false);
    }
    return place->node;
  }

  // Puts the pods back where that leaves the needed pods their places.
  bool FitBesides(const std::vector<std::size_t>& pods) {
    for (const std::size_t pod : pods) trial_.PutBack(pod);
    const bool fit = std::none_of(pods.begin(), pods.end(), [&](std::size_t pod) {
      return trial_.IsOverfull(trial_.NodeOf(pod));
    });
    for (const std::size_t pod : pods) {
      if (!fit) trial_.TakeOut(pod);
    }
    return fit;
  }
  int PriorityOf(const Taken& taken) const {
    return taken.giver == Trial::kNone ? 0 : givers_.At(taken.giver).holding->priority;
  }

  const PreemptionCase& what_;
  std::optional<Moment> late_at_;
  Trial trial_;
  const std::size_t leaving_;  // number of the pods that leave
  Givers givers_;
  std::vector<Before> before_;  // of what_.before, in the same order
  // Of the last run.
  std::priority_queue<Room> room_;  // for the shape of the pod that is placed
  std::vector<Taken> taken_;
  std::vector<std::size_t> nodes_;
};

PreemptionSearch::PreemptionSearch(const PreemptionCase& what) {
  if (MayTake(what)) search_ = std::make_unique<Search>(what);
}

PreemptionSearch::~PreemptionSearch() = default;

bool PreemptionSearch::Suffices(const std::set<std::string>& whole) {
  return search_ != nullptr && search_->Run(whole);
}

std::optional<Preemption> PreemptionSearch::TakeWith(const std::set<std::string>& whole) {
  if (!Suffices(whole)) return std::nullopt;
  search_->SpareNeedlessJobs();
  search_->GiveBackNeedless();
  search_->RoundToSizes();
  return search_->Result();
}

}  // namespace ringmaster::scheduler
