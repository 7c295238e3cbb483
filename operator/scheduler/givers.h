// The less important jobs whose pods may be taken for a job that waits, and on which node the least
// is lost if one of its pods gets room. Only pods that the jobs can do without are taken here.
//
// Pure. What the constructor takes outlives it.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "operator/scheduler/holding.h"
#include "operator/scheduler/trial.h"

namespace ringmaster::scheduler {

// A job that trains; in the order of the jobs' names.
struct Giver {
  const Holding* holding;
  std::vector<std::size_t> pods;  // numbers of holding->pods in the trial, in the same order
};

// A pod that may be taken.
struct Candidate {
  std::size_t giver;  // number of the job
  std::size_t turn;   // index in the holding's pods
  std::size_t pod;    // number in the trial
  bool trains;
};

class Givers {
 public:
  // `leaving`: the pods with numbers below that one leave anyway.
  Givers(const Holdings& holdings, int priority, std::size_t leaving, Trial* trial);
  Givers(const Givers&) = delete;
  Givers& operator=(const Givers&) = delete;

  const Giver& At(std::size_t giver) const { return all_[giver]; }
  // Trial::kNone if the job doesn't train.
  std::size_t Find(const std::string& job) const;

  // Counts how many training pods each job has at this moment above those that it keeps.
  void CountBudgets();
  int BudgetOf(std::size_t giver) const { return budgets_[giver]; }
  void Spend(std::size_t giver, bool trains) { budgets_[giver] -= trains ? 1 : 0; }

  // A search begins: no options are known, and whoever is out now can't be taken.
  void BeginSearch();
  // Where one more pod of this shape costs least, and the pods that have to go there; nullopt if
  // nowhere. A node that gets a pod otherwise has to be forgotten.
  struct Place {
    std::size_t node;
    std::vector<const Candidate*> pods;
  };
  std::optional<Place> Cheapest(const Shape& shape);
  void Forget(std::size_t node) {
    if (node < options_.size()) options_[node].known = false;
  }

 private:
  // The pods of one node that make room for one needed pod.
  struct Option {
    bool known = false;
    bool enough = false;  // false: nobody can make room here
    std::vector<const Candidate*> pods;
    int priority = std::numeric_limits<int>::min();  // highest priority of the jobs that give
    std::size_t turn = 0;  // highest index of the pods in their jobs' order of giving
  };
  // Smaller is better: givers of low priority, few pods, from jobs that could give many.
  using Ranking = std::tuple<int, std::size_t, int, std::size_t>;

  void FindCandidates(int priority, std::size_t leaving);
  void SeeWhoMayGive();
  Ranking Rank(const Option& option) const;
  bool Allows(const Option& option) const;
  Option OptionOn(std::size_t node, const Trial::Numbered& requests) const;
  Trial::Numbered LacksOn(std::size_t node, const Trial::Numbered& requests) const;
  void Subtract(const Candidate& candidate, Trial::Numbered* lacks) const;
  bool Helps(const Candidate& candidate, const Trial::Numbered& lacks) const;
  void DropNeedless(const Trial::Numbered& lacks, Option* option) const;

  Trial& trial_;
  std::vector<Giver> all_;
  std::vector<std::vector<Candidate>> candidates_;  // by node, low priorities first
  // Of the current search.
  std::vector<int> budgets_;     // by giver
  std::vector<Option> options_;  // by node, for one shape
  const Shape* options_of_ = nullptr;
  std::vector<char> may_give_;  // by node: it has candidates that are not out
  bool knows_who_may_give_ = false;
};

}  // namespace ringmaster::scheduler
