#include "collectives/engine/inbox.h"

#include <utility>

namespace ringmaster::engine {
namespace {

// What can be in flight once at a time: a name; of a transfer, a name between its two workers.
const std::string& Once(const Request& request) {
  return request.kind == Kind::kTransfer ? request.key() : request.name;
}

}  // namespace

void Inbox::PostStop(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  if (!messages_.stop || *messages_.stop < epoch) {
    if (!messages_.stop) messages_.stop_at = Clock::now();
    messages_.stop = epoch;
  }
  if (messages_.view && messages_.view->epoch <= epoch) messages_.view.reset();
  posted_.NotifyAll();
}

void Inbox::PostView(View view) {
  sync::MutexLock lock(&mu_);
  if (messages_.view && messages_.view->epoch >= view.epoch) return;
  if (messages_.stop && *messages_.stop >= view.epoch) return;
  // What it holds counts for nothing from here on. That is not to be lost when a newer view, which
  // may list it again, or the stop of this one comes before the engine's thread has looked.
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
  if (const auto refusal = RefusalLocked()) return *refusal;
  for (size_t i = 0; i < operations.size(); ++i) {
    const Request& request = operations[i]->request;
    if (in_flight_.emplace(Once(request), request.process_set).second) continue;
    for (const auto& entered : operations.first(i)) in_flight_.erase(Once(entered->request));
    if (request.kind == Kind::kStepEnd) return {RM_ERR_INVALID, "another thread is in rm_step_end"};
    return {RM_ERR_INVALID,
            "'" + request.name + "' is already in flight: wait for it, or use another name"};
  }
  messages_.submitted.insert(messages_.submitted.end(), operations.begin(), operations.end());
  posted_.NotifyOne();
  return {};
}

Messages Inbox::Take() {
  sync::MutexLock lock(&mu_);
  return TakeLocked();
}

Messages Inbox::Wait(std::optional<Clock::time_point> until) {
  sync::MutexLock lock(&mu_);
  while (!HasMessages()) {
    if (!until) {
      posted_.Wait(&mu_);
    } else if (!posted_.WaitUntil(&mu_, *until)) {
      break;
    }
  }
  return TakeLocked();
}

void Inbox::Forget(const Response& response) {
  sync::MutexLock lock(&mu_);
  for (const Request& request : response.requests) {
    const auto found = in_flight_.find(Once(request));
    // Of another set's operation: this rank may have the name in flight in its own.
    if (found == in_flight_.end() || found->second != request.process_set) continue;
    in_flight_.erase(found);
  }
}

void Inbox::Forget(const Request& request) {
  sync::MutexLock lock(&mu_);
  in_flight_.erase(Once(request));
}

Submitted Inbox::Suspend(const std::string& why) {
  sync::MutexLock lock(&mu_);
  suspended_ = Status(RM_ERR_DROPPED, why);
  in_flight_.clear();
  return std::exchange(messages_.submitted, {});
}

void Inbox::Resume() {
  sync::MutexLock lock(&mu_);
  suspended_.reset();
}

Submitted Inbox::Rest(const Status& why) {
  sync::MutexLock lock(&mu_);
  rests_ = why;
  in_flight_.clear();
  return std::exchange(messages_.submitted, {});
}

void Inbox::Wake() {
  sync::MutexLock lock(&mu_);
  rests_.reset();
}

bool Inbox::rests() const {
  sync::MutexLock lock(&mu_);
  return rests_.has_value();
}

Submitted Inbox::Refuse(const Status& why) {
  sync::MutexLock lock(&mu_);
  if (!refused_) refused_ = why;
  in_flight_.clear();
  return std::exchange(messages_.submitted, {});
}

std::optional<Status> Inbox::refused() const {
  sync::MutexLock lock(&mu_);
  return refused_;
}

std::optional<Status> Inbox::Refusal() const {
  sync::MutexLock lock(&mu_);
  return RefusalLocked();
}

std::optional<Status> Inbox::RefusalLocked() const {
  if (refused_) return refused_;
  return rests_ ? rests_ : suspended_;
}

bool Inbox::HasMessages() const {
  return messages_.close || messages_.stop || messages_.dropped || messages_.view ||
         messages_.end || !messages_.armed.empty() || !messages_.submitted.empty();
}

Messages Inbox::TakeLocked() { return std::exchange(messages_, {}); }

}  // namespace ringmaster::engine
