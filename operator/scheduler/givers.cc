#include "operator/scheduler/givers.h"

#include <algorithm>
#include <utility>

namespace ringmaster::scheduler {
namespace {

constexpr double kNothing = 1e-9;  // amounts below this are rounding errors of sums

// How many training pods of this job the option takes.
int Asked(const std::vector<const Candidate*>& pods, std::size_t giver) {
  return static_cast<int>(std::count_if(pods.begin(), pods.end(), [&](const Candidate* pod) {
    return pod->trains && pod->giver == giver;
  }));
}

}  // namespace

Givers::Givers(const Holdings& holdings, int priority, std::size_t leaving, Trial* trial)
    : trial_(*trial) {
  all_.reserve(holdings.size());
  for (const auto& [job, holding] : holdings) {
    Giver giver{&holding, {}};
    for (const GivablePod& pod : holding.pods) giver.pods.push_back(trial_.PodOf(pod.uid));
    all_.push_back(std::move(giver));
  }
  budgets_.resize(all_.size());
  FindCandidates(priority, leaving);
}

// A pod that leaves and is not counted on is late: taking it would not help.
void Givers::FindCandidates(int priority, std::size_t leaving) {
  candidates_.resize(trial_.nodes());
  for (std::size_t giver = 0; giver < all_.size(); ++giver) {
    const Holding& holding = *all_[giver].holding;
    if (holding.priority >= priority) continue;
    for (std::size_t turn = 0; turn < holding.pods.size(); ++turn) {
      const std::size_t pod = all_[giver].pods[turn];
      if (pod == Trial::kNone || pod < leaving || trial_.IsOut(pod)) continue;
      candidates_[trial_.NodeOf(pod)].push_back({giver, turn, pod, holding.pods[turn].trains});
    }
  }
  for (auto& some : candidates_) {
    std::stable_sort(some.begin(), some.end(), [&](const Candidate& a, const Candidate& b) {
      return At(a.giver).holding->priority < At(b.giver).holding->priority;
    });
  }
}

std::size_t Givers::Find(const std::string& job) const {
  const auto at = std::lower_bound(
      all_.begin(), all_.end(), job,
      [](const Giver& giver, const auto& name) { return giver.holding->job < name; });
  if (at == all_.end() || at->holding->job != job) return Trial::kNone;
  return static_cast<std::size_t>(at - all_.begin());
}

void Givers::CountBudgets() {
  for (std::size_t giver = 0; giver < all_.size(); ++giver) {
    const auto& [holding, pods] = all_[giver];
    int train = 0;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      train += holding->pods[i].trains && pods[i] != Trial::kNone && !trial_.IsOut(pods[i]) ? 1 : 0;
    }
    budgets_[giver] = train - holding->least;
  }
}

void Givers::BeginSearch() {
  options_of_ = nullptr;
  knows_who_may_give_ = false;
}

void Givers::SeeWhoMayGive() {
  if (std::exchange(knows_who_may_give_, true)) return;
  may_give_.assign(candidates_.size(), 0);
  for (std::size_t node = 0; node < candidates_.size(); ++node) {
    const auto& some = candidates_[node];
    may_give_[node] = std::any_of(some.begin(), some.end(), [&](const Candidate& candidate) {
      return !trial_.IsOut(candidate.pod);
    });
  }
}

// Options are kept from one needed pod to the next, because most remain valid.
std::optional<Givers::Place> Givers::Cheapest(const Shape& shape) {
  SeeWhoMayGive();
  if (&shape != options_of_) options_.assign(trial_.nodes(), {});
  options_of_ = &shape;
  const Trial::Numbered& requests = trial_.RequestsOf(shape);
  std::optional<std::size_t> best;
  Ranking best_rank;
  for (const std::size_t node : trial_.OpenTo(shape)) {
    if (may_give_[node] == 0) continue;
    Option& option = options_[node];
    if (!option.known || (option.enough && !Allows(option))) option = OptionOn(node, requests);
    if (!option.enough) continue;
    const Ranking rank = Rank(option);
    if (best && best_rank <= rank) continue;
    best = node;
    best_rank = rank;
  }
  if (!best) return std::nullopt;
  return Place{*best, options_[*best].pods};
}

Givers::Ranking Givers::Rank(const Option& option) const {
  int could_give = std::numeric_limits<int>::max();
  for (const Candidate* candidate : option.pods) {
    could_give = std::min(could_give, BudgetOf(candidate->giver));
  }
  return {option.priority, option.pods.size(), -could_give, option.turn};
}

bool Givers::Allows(const Option& option) const {
  return std::all_of(option.pods.begin(), option.pods.end(), [&](const Candidate* candidate) {
    return Asked(option.pods, candidate->giver) <= BudgetOf(candidate->giver);
  });
}

Givers::Option Givers::OptionOn(std::size_t node, const Trial::Numbered& requests) const {
  Option option{.known = true};
  Trial::Numbered lacks = LacksOn(node, requests);
  for (const Candidate& candidate : candidates_[node]) {
    if (lacks.empty()) break;
    if (trial_.IsOut(candidate.pod) || !Helps(candidate, lacks)) continue;
    if (candidate.trains && Asked(option.pods, candidate.giver) >= BudgetOf(candidate.giver)) {
      continue;
    }
    Subtract(candidate, &lacks);
    option.pods.push_back(&candidate);
  }
  if (!lacks.empty()) return option;
  option.enough = true;
  DropNeedless(LacksOn(node, requests), &option);
  for (const Candidate* candidate : option.pods) {
    option.priority = std::max(option.priority, At(candidate->giver).holding->priority);
    option.turn = std::max(option.turn, candidate->turn);
  }
  return option;
}

Trial::Numbered Givers::LacksOn(std::size_t node, const Trial::Numbered& requests) const {
  Trial::Numbered lacks;
  for (const auto& [resource, n] : requests) {
    const double lack = n - trial_.FreeOn(node, resource);
    if (n > 0 && lack > kNothing) lacks.emplace_back(resource, lack);
  }
  return lacks;
}

bool Givers::Helps(const Candidate& candidate, const Trial::Numbered& lacks) const {
  const Trial::Numbered& has = trial_.RequestsOf(candidate.pod);
  return std::any_of(has.begin(), has.end(), [&](const auto& one) {
    return one.second > 0 && std::any_of(lacks.begin(), lacks.end(),
                                         [&](const auto& lack) { return lack.first == one.first; });
  });
}

void Givers::Subtract(const Candidate& candidate, Trial::Numbered* lacks) const {
  for (const auto& [resource, n] : trial_.RequestsOf(candidate.pod)) {
    for (auto& lack : *lacks) {
      if (lack.first == resource) lack.second -= n;
    }
  }
  std::erase_if(*lacks, [](const auto& lack) { return lack.second <= kNothing; });
}

// A large pod that was added late may make smaller ones before it unnecessary.
void Givers::DropNeedless(const Trial::Numbered& lacks, Option* option) const {
  for (std::size_t i = option->pods.size(); i-- > 0;) {
    Trial::Numbered without = lacks;
    for (std::size_t j = 0; j < option->pods.size(); ++j) {
      if (j != i) Subtract(*option->pods[j], &without);
    }
    if (without.empty()) option->pods.erase(option->pods.begin() + static_cast<long>(i));
  }
}

}  // namespace ringmaster::scheduler
