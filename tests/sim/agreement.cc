#include "tests/sim/agreement.h"

#include <algorithm>

namespace ringmaster::app::sim {
namespace {

using membership::EpochText;

constexpr std::size_t kModelsKept = 64;

std::string Place(const Given& given) {
  return std::to_string(given.done) + " operations after step " + std::to_string(given.step) +
         " (operation " + std::to_string(given.number) + " is next)";
}

}  // namespace

// One reduction has one result: two ranks that are equally far have seen the same.
void Agreement::CheckSame(const Given& one, const Given& other, Epoch epoch) {
  const bool same = one.number == other.number && one.step == other.step &&
                    one.done == other.done && one.model == other.model;
  if (!same) journal_->Fail("I4: in " + EpochText(epoch) + " " + Difference(one, other));
}

std::string Agreement::Difference(const Given& one, const Given& other) const {
  if (one.number != other.number || one.step != other.step || one.done != other.done)
    return NameOf(one) + " has " + Place(one) + " and " + NameOf(other) + " " + Place(other);
  const WorkerPtr a = find_(one);
  const WorkerPtr b = find_(other);
  if (a != nullptr && b != nullptr) {
    for (const auto& [number, value] : a->recent) {
      const auto found = b->recent.find(number);
      if (found == b->recent.end() || found->second == value) continue;
      return "operation " + std::to_string(number) + " has two results: " + NameOf(one) +
             " has that " + origins_.at(value) + ", and " + NameOf(other) + " that " +
             origins_.at(found->second);
    }
  }
  return NameOf(one) + " and " + NameOf(other) + " hold different models, " + Place(one);
}

// A step counts once, is never lost while somebody has it, and nobody sees another one in its
// place.
void Agreement::CheckFinal(const Given& given, Epoch epoch, bool goes_on) {
  const std::string where = "in " + EpochText(epoch) + " the ranks have " + Place(given);
  const auto operations = script_->OperationsUntil(given.step, given.done);
  if (operations != given.number)
    journal_->Fail("I4: " + where + ", so a step has counted twice or never");
  if (goes_on && given.number < final_number_)
    journal_->Fail("I5: " + where + ", and all had been at operation " +
                   std::to_string(final_number_));
  const auto [known, added] = final_models_.try_emplace(given.number, given.model);
  if (!added && known->second != given.model)
    journal_->Fail("I4: " + where + " with other results than those that counted");
  final_number_ = std::max(final_number_, given.number);
  if (final_models_.size() > kModelsKept) final_models_.erase(final_models_.begin());
}

bool Agreement::Reduced(std::uint64_t number, std::uint64_t value, const std::string& origin) {
  origins_[value] = origin;
  return !reduced_.insert(number).second;
}

void Agreement::BeginLineage(std::uint64_t lowest) {
  final_number_ = lowest;
  final_models_.clear();
  reduced_.clear();
}

}  // namespace ringmaster::app::sim
