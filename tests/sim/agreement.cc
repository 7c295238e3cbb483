// What must hold of the operations (I4, I5, I3). A vote is the moment to look: all ranks of the
// view have come to it, so nobody is without what came before.
#include <algorithm>

#include "tests/sim/world.h"

namespace ringmaster::app::sim {
namespace {

using membership::EpochText;

constexpr std::size_t kModelsKept = 64;

std::string Place(const Given& given) {
  return std::to_string(given.done) + " operations after step " + std::to_string(given.step) +
         " (operation " + std::to_string(given.number) + " is next)";
}

}  // namespace

void World::CheckVote(const Stage& stage, const membership::View& view) {
  const Given& first = stage.given.front();
  for (const Given& given : stage.given) CheckSame(first, given, view);
  const std::vector<WorkerPtr> ranks = RanksOf(view);
  const bool ends = together_ || first.done + 1 == program_.size();
  // One that has given its part and left the view since takes part in nothing that comes after: the
  // others can leave this vote, and no later one.
  const bool all = std::all_of(ranks.begin(), ranks.end(), [&](const WorkerPtr& worker) {
    return InView(worker, view.epoch) && worker->phase != Phase::kBroken;
  });
  if (all) CheckOver(view);
  CheckFinal(first, view, all);
  if (!ends) return;
  Of(view.epoch).last_step = time_.now();
  ++coverage_.steps;
  Trace([&] { return "step " + std::to_string(first.step + 1) + " in " + EpochText(view.epoch); });
}

// One reduction has one result: two ranks that are equally far have seen the same.
void World::CheckSame(const Given& one, const Given& other, const membership::View& view) {
  const bool same = one.number == other.number && one.step == other.step &&
                    one.done == other.done && one.model == other.model;
  if (!same) Fail("I4: in " + EpochText(view.epoch) + " " + Difference(one, other));
}

std::string World::Difference(const Given& one, const Given& other) const {
  const auto name = [&](const Given& given) {
    return pods_[given.pod]->uid + "/" + std::to_string(given.slot) + "." +
           std::to_string(given.incarnation);
  };
  if (one.number != other.number || one.step != other.step || one.done != other.done)
    return name(one) + " has " + Place(one) + " and " + name(other) + " " + Place(other);
  const WorkerPtr a = FindProcess(one.pod, one.slot, one.incarnation);
  const WorkerPtr b = FindProcess(other.pod, other.slot, other.incarnation);
  if (a != nullptr && b != nullptr) {
    for (const auto& [number, value] : a->recent) {
      const auto found = b->recent.find(number);
      if (found == b->recent.end() || found->second == value) continue;
      return "operation " + std::to_string(number) + " has two results: " + name(one) +
             " has that " + results_.at(value) + ", and " + name(other) + " that " +
             results_.at(found->second);
    }
  }
  return name(one) + " and " + name(other) + " hold different models, " + Place(one);
}

// A step counts once, is never lost while somebody has it, and nobody sees another one in its
// place.
void World::CheckFinal(const Given& given, const membership::View& view, bool goes_on) {
  const std::string where = "in " + EpochText(view.epoch) + " the ranks have " + Place(given);
  const auto operations = static_cast<std::uint64_t>(given.step) * program_.size() + given.done;
  if (operations != given.number) Fail("I4: " + where + ", so a step has counted twice or never");
  if (goes_on && given.number < final_number_)
    Fail("I5: " + where + ", and all had been at operation " + std::to_string(final_number_));
  const auto [known, added] = final_models_.try_emplace(given.number, given.model);
  if (!added && known->second != given.model)
    Fail("I4: " + where + " with other results than those that counted");
  final_number_ = std::max(final_number_, given.number);
  if (final_models_.size() > kModelsKept) final_models_.erase(final_models_.begin());
}

// All ranks of the view take part in it: so no view may have been decided that follows.
void World::CheckOver(const membership::View& view) {
  const std::string name = EpochText(view.epoch);
  const auto later = decided_.upper_bound(view.epoch);
  if (later != decided_.end() && later->second.view != nullptr)
    Fail("I3: " + name + " goes on after " + EpochText(later->first) + " was decided");
  if (view.epoch < trained_) Fail("I3: " + name + " goes on after " + EpochText(trained_));
  trained_ = view.epoch;
  for (const WorkerPtr& worker : RanksOf(view)) {
    if (worker->stopped >= view.epoch)
      Fail(Name(*worker) + " goes on in a view that it has stopped");
  }
}

}  // namespace ringmaster::app::sim
