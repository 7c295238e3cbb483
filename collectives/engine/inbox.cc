#include "collectives/engine/inbox.h"

#include <utility>

namespace ringmaster::engine {

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
  messages_.view = std::move(view);
  messages_.view_at = Clock::now();
  posted_.NotifyAll();
}

void Inbox::PostDropped() {
  sync::MutexLock lock(&mu_);
  messages_.dropped = true;
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

Status Inbox::Submit(const std::shared_ptr<Operation>& operation) {
  const Request& request = operation->request;
  sync::MutexLock lock(&mu_);
  if (refused_) return *refused_;
  if (!in_flight_.insert(request.name).second) {
    if (request.kind == Kind::kStepEnd) return {RM_ERR_INVALID, "another thread is in rm_step_end"};
    return {RM_ERR_INVALID,
            "'" + request.name + "' is already in flight: wait for it, or use another name"};
  }
  messages_.submitted.push_back(operation);
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
  for (const Request& request : response.requests) in_flight_.erase(request.name);
}

void Inbox::Forget(const std::string& name) {
  sync::MutexLock lock(&mu_);
  in_flight_.erase(name);
}

void Inbox::Refuse(const Status& why) {
  sync::MutexLock lock(&mu_);
  if (!refused_) refused_ = why;
  in_flight_.clear();
}

std::optional<Status> Inbox::refused() const {
  sync::MutexLock lock(&mu_);
  return refused_;
}

bool Inbox::HasMessages() const {
  return messages_.close || messages_.stop || messages_.dropped || messages_.view ||
         messages_.end || !messages_.armed.empty() || !messages_.submitted.empty();
}

Messages Inbox::TakeLocked() { return std::exchange(messages_, {}); }

}  // namespace ringmaster::engine
