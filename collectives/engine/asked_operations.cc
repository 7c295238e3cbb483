#include "collectives/engine/asked_operations.h"

#include <optional>

namespace ringmaster::engine {

bool AskedOperations::Take(const Submitted& submitted, const CheckSet& check) {
  if (submitted.empty()) return false;
  bool taken = false;
  const std::optional<Status> refused = inbox_->refusals().current();
  for (const auto& operation : submitted) {
    const Status set = check(operation->request.process_set);
    if (refused) {
      operation->Complete(*refused);
    } else if (!set.ok()) {
      inbox_->Forget(operation->request);
      operation->Complete(set);
    } else {
      pending_.Add(operation);
      taken = true;
    }
  }
  if (!idle()) work_->Asked(WorkMeter::Clock::now());
  users_->Notify();
  return taken;
}

void AskedOperations::FailLeftOver(const Submitted& operations) {
  for (const auto& operation : operations) {
    inbox_->Forget(operation->request);
    operation->Complete(
        {RM_ERR_INVALID, "'" + operation->request.name + "': its process set has been removed"});
  }
}

void AskedOperations::Drop(const std::string& why) {
  FailAll(inbox_->Suspend(why), {RM_ERR_DROPPED, why});
}

void AskedOperations::End(const Status& why) { FailAll(inbox_->Refuse(why), why); }

void AskedOperations::Rest(const Status& why) { FailAll(inbox_->Rest(why), why); }

void AskedOperations::FailAll(const Submitted& posted, const Status& why) {
  for (const auto& operation : posted) operation->Complete(why);
  for (auto& operation : pending_.TakeAll()) operation->Complete(why);
  work_->Clear(WorkMeter::Clock::now());
  users_->Notify();
}

}  // namespace ringmaster::engine
