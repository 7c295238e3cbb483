#include "operator/scheduler/whole_jobs.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace ringmaster::scheduler {
namespace {

constexpr std::size_t kMostAlone = 16;  // each costs a look at all nodes and pods

using Jobs = std::vector<const Holding*>;

// Orders jobs by how little is lost if they stop: low priorities first, then small jobs, then those
// that have trained for the shortest time.
bool LosesLess(const Holding* a, const Holding* b) {
  const auto rank = [](const Holding& job) {
    return std::tuple(job.priority, job.pods.size(), -job.since.time_since_epoch(), job.job);
  };
  return rank(*a) < rank(*b);
}

class Victims {
 public:
  explicit Victims(const PreemptionCase& what) : what_(what) {
    for (const auto& [job, holding] : what.holdings) {
      if (IsGivable(holding)) givable_.push_back(&holding);
    }
    std::sort(givable_.begin(), givable_.end(), LosesLess);
    for (const TakenPod& pod : what.before) {
      const auto asked = what.holdings.find(pod.job);
      if (pod.whole && asked != what.holdings.end() && IsGivable(asked->second)) {
        whole_.insert(pod.job);
      }
    }
  }

  bool Choose() {
    if (Suffices(whole_)) return true;
    const auto end = EndOfNeeded();
    if (!end) return false;
    const Jobs needed(givable_.cbegin(), *end);
    const auto top = std::find_if(needed.begin(), needed.end(), [&](const Holding* job) {
      return job->priority == needed.back()->priority;
    });
    Add(needed.begin(), top);
    if (!AddOneOf(top, needed.end())) Add(top, needed.end());
    return true;
  }

  // Spares the most important jobs first.
  void LetBeWhoIsNotNeeded() {
    Jobs jobs;
    for (const std::string& job : whole_) jobs.push_back(&what_.holdings.at(job));
    std::sort(jobs.begin(), jobs.end(), [](auto* a, auto* b) { return LosesLess(b, a); });
    LetBe(jobs.begin(), jobs.end());
  }

  const std::set<std::string>& whole() const { return whole_; }

 private:
  bool IsGivable(const Holding& holding) const {
    return holding.whole && holding.priority < what_.need.priority && !holding.pods.empty();
  }
  bool Suffices(const std::set<std::string>& whole) const {
    return PreemptWith(whole, what_).has_value();
  }
  void Add(Jobs::const_iterator begin, Jobs::const_iterator end) {
    for (auto job = begin; job != end; ++job) whole_.insert((*job)->job);
  }

  // The end of the shortest sequence of whole priorities, from the lowest up, whose jobs are
  // enough.
  std::optional<Jobs::const_iterator> EndOfNeeded() const {
    const Jobs::const_iterator last = givable_.end();
    const auto upto = [&](Jobs::const_iterator end) {
      std::set<std::string> all = whole_;
      for (auto job = givable_.begin(); job != end; ++job) all.insert((*job)->job);
      return Suffices(all);
    };
    std::vector<Jobs::const_iterator> ends;  // the end of each priority's jobs
    for (auto job = givable_.begin(); job != last; ++job) {
      const auto next = std::next(job);
      if (next == last || (*next)->priority != (*job)->priority) ends.push_back(next);
    }
    if (ends.empty() || !upto(ends.back())) return std::nullopt;
    return *std::partition_point(ends.begin(), std::prev(ends.end()),
                                 [&](auto end) { return !upto(end); });
  }

  bool AddOneOf(Jobs::const_iterator begin, Jobs::const_iterator end) {
    std::size_t tried = 0;
    for (auto job = begin; job != end && tried < kMostAlone; ++job, ++tried) {
      std::set<std::string> with = whole_;
      if (!with.insert((*job)->job).second || !Suffices(with)) continue;
      whole_ = std::move(with);
      return true;
    }
    return false;
  }

  // Tries halves, because usually few of many jobs are needed.
  void LetBe(Jobs::const_iterator begin, Jobs::const_iterator end) {
    if (begin == end) return;
    std::set<std::string> without = whole_;
    for (auto job = begin; job != end; ++job) without.erase((*job)->job);
    if (Suffices(without)) {
      whole_ = std::move(without);
      return;
    }
    if (std::next(begin) == end) return;
    const auto middle = begin + (end - begin) / 2;
    LetBe(begin, middle);
    LetBe(middle, end);
  }

  const PreemptionCase& what_;
  Jobs givable_;  // ordered by LosesLess
  std::set<std::string> whole_;
};

}  // namespace

std::optional<Preemption> Preempt(const PreemptionCase& what) {
  Victims victims(what);
  if (!victims.Choose()) return std::nullopt;
  victims.LetBeWhoIsNotNeeded();
  return PreemptWith(victims.whole(), what);
}

}  // namespace ringmaster::scheduler
