#include "operator/scheduler/whole_jobs.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace ringmaster::scheduler {
namespace {

constexpr std::size_t kMostAlone = 16;  // each costs a look at all nodes and pods

using Jobs = std::vector<const Holding*>;

class Victims {
 public:
  Victims(const PreemptionCase& what, PreemptionSearch* search) : what_(what), search_(*search) {
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
    if (IsEnough(whole_)) return true;
    const auto end = EndOfNeeded();
    if (!end) return false;
    const Jobs needed(givable_.cbegin(), *end);
    const auto top = std::find_if(needed.begin(), needed.end(), [&](const Holding* job) {
      return job->priority == needed.back()->priority;
    });
    Add(needed.begin(), top);
    if (!AddOneOf(top, needed.end())) AddFewest(top, needed.end());
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
  int searches() const { return searches_; }

 private:
  bool IsGivable(const Holding& holding) const {
    return holding.whole && holding.priority < what_.need.priority && !holding.pods.empty();
  }
  // False, too, if there were too many searches: every use takes more jobs then, and not too few.
  bool IsEnough(const std::set<std::string>& whole) {
    return searches_ < kMostSearches && ++searches_ > 0 && search_.Suffices(whole);
  }
  void Add(Jobs::const_iterator begin, Jobs::const_iterator end) {
    for (auto job = begin; job != end; ++job) whole_.insert((*job)->job);
  }

  // The end of the shortest sequence of whole priorities, from the lowest up, whose jobs are
  // enough.
  std::optional<Jobs::const_iterator> EndOfNeeded() {
    const Jobs::const_iterator last = givable_.end();
    const auto upto = [&](Jobs::const_iterator end) {
      std::set<std::string> all = whole_;
      for (auto job = givable_.begin(); job != end; ++job) all.insert((*job)->job);
      return IsEnough(all);
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
      if (!with.insert((*job)->job).second || !IsEnough(with)) continue;
      whole_ = std::move(with);
      return true;
    }
    return false;
  }

  // The shortest sequence of these jobs, all of which are enough.
  void AddFewest(Jobs::const_iterator begin, Jobs::const_iterator end) {
    std::ptrdiff_t enough = end - begin, too_few = 0;
    while (enough - too_few > 1) {
      const std::ptrdiff_t middle = too_few + (enough - too_few) / 2;
      std::set<std::string> with = whole_;
      for (auto job = begin; job != begin + middle; ++job) with.insert((*job)->job);
      (IsEnough(with) ? enough : too_few) = middle;
    }
    Add(begin, begin + enough);
  }

  // Tries halves, because usually few of many jobs are needed.
  void LetBe(Jobs::const_iterator begin, Jobs::const_iterator end) {
    if (begin == end) return;
    std::set<std::string> without = whole_;
    for (auto job = begin; job != end; ++job) without.erase((*job)->job);
    if (IsEnough(without)) {
      whole_ = std::move(without);
      return;
    }
    if (std::next(begin) == end) return;
    const auto middle = begin + (end - begin) / 2;
    LetBe(begin, middle);
    LetBe(middle, end);
  }

  const PreemptionCase& what_;
  PreemptionSearch& search_;
  Jobs givable_;  // ordered by LosesLess
  std::set<std::string> whole_;
  int searches_ = 0;
};

}  // namespace

std::optional<Preemption> Preempt(const PreemptionCase& what) {
  PreemptionSearch search(what);
  Victims victims(what, &search);
  if (!victims.Choose()) return std::nullopt;
  victims.LetBeWhoIsNotNeeded();
  auto preemption = search.TakeWith(victims.whole());
  if (preemption) preemption->searches = victims.searches() + 1;
  return preemption;
}

}  // namespace ringmaster::scheduler
