#include "collectives/engine/inbox.h"

#include <utility>

namespace ringmaster::engine {

bool Messages::empty() const {
  return !close && !stop && !dropped && !view && !end && armed.empty() && submitted.empty();
}

void Inbox::PostStop(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  if (!messages_.stop || *messages_.stop < epoch) {
    if (!messages_.stop) messages_.stop_at = Clock::now();
    messages_.stop = epoch;
  }
  if (messages_.view && messages_.view->epoch <= epoch) messages_.view.reset();
  posted_.NotifyAll();
}

void Inbox::PostView(WorkerView view) {
  sync::MutexLock lock(&mu_);
  if (messages_.view && messages_.view->epoch >= view.epoch) return;
  if (messages_.stop && *messages_.stop >= view.epoch) return;
  // A view without this worker means that its state counts for nothing from now on. The engine's
  // thread must learn that even if, before it looks, this view is stopped or replaced by a newer
  // one that lists the worker again.
  if (view.self < 0) messages_.dropped = GoesOnWithout(view);
  messages_.view = std::move(view);
  messages_.view_at = Clock::now();
  posted_.NotifyAll();
}

void Inbox::PostDropped(const std::string& why) {
  sync::MutexLock lock(&mu_);
  messages_.dropped = why;
  messages_.view.reset();
  posted_.NotifyAll();
}

void Inbox::PostArmed(uint64_t epoch, bool armed) {
  sync::MutexLock lock(&mu_);
  messages_.armed[epoch] = armed;
  posted_.NotifyAll();
}

void Inbox::PostEnd(Status why) {
  sync::MutexLock lock(&mu_);
  if (!messages_.end) messages_.end = std::move(why);
  posted_.NotifyAll();
}

void Inbox::PostClose() {
  sync::MutexLock lock(&mu_);
  messages_.close = true;
  posted_.NotifyAll();
}

Status Inbox::Submit(std::span<const std::shared_ptr<Operation>> operations) {
  sync::MutexLock lock(&mu_);
  if (const auto refusal = refusals_.current()) return *refusal;
  if (Status entered = names_.Enter(operations); !entered.ok()) return entered;
  messages_.submitted.insert(messages_.submitted.end(), operations.begin(), operations.end());
  posted_.NotifyOne();
  return {};
}

Messages Inbox::Take() {
  sync::MutexLock lock(&mu_);
  return std::exchange(messages_, {});
}

std::map<uint64_t, bool> Inbox::TakeArmed() {
  sync::MutexLock lock(&mu_);
  return std::exchange(messages_.armed, {});
}

Messages Inbox::Wait(std::optional<Clock::time_point> until) {
  sync::MutexLock lock(&mu_);
  while (messages_.empty()) {
    if (!until) {
      posted_.Wait(&mu_);
    } else if (!posted_.WaitUntil(&mu_, *until)) {
      break;
    }
  }
  return std::exchange(messages_, {});
}

void Inbox::Forget(const Response& response) {
  sync::MutexLock lock(&mu_);
  names_.Free(response);
}

void Inbox::Forget(const Request& request) {
  sync::MutexLock lock(&mu_);
  names_.Free(request);
}

Submitted Inbox::Suspend(const std::string& why) {
  sync::MutexLock lock(&mu_);
  refusals_.Suspend(why);
  return TakeBack();
}

void Inbox::Resume() { refusals_.Resume(); }

Submitted Inbox::Rest(const Status& why) {
  sync::MutexLock lock(&mu_);
  refusals_.Rest(why);
  return TakeBack();
}

void Inbox::Wake() { refusals_.Wake(); }

Submitted Inbox::Refuse(const Status& why) {
  sync::MutexLock lock(&mu_);
  refusals_.Refuse(why);
  return TakeBack();
}

Submitted Inbox::TakeBack() {
  names_.FreeAll();
  return std::exchange(messages_.submitted, {});
}

}  // namespace ringmaster::engine
