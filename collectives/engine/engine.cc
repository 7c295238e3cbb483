#include "collectives/engine/engine.h"

#include <algorithm>
#include <utility>

namespace ringmaster::engine {

Engine::Engine(Options options)
    : loop_(std::move(options), &inbox_, &user_tasks_, &info_, &host_),
      thread_([this] { loop_.Run(); }) {}

Engine::~Engine() { Close(); }

// All functions below post the message first and abort what runs afterwards. So when the loop comes
// out of the call that was aborted, it finds the reason in its inbox.

void Engine::Close() {
  if (!thread_.joinable()) return;
  inbox_.PostClose();
  user_tasks_.Interrupt(UINT64_MAX);
  Abort(UINT64_MAX, "the worker is closing");
  thread_.join();
}

void Engine::Abort(uint64_t epoch, const std::string& why) {
  host_.Abort(epoch, why);
  loop_.Abort(epoch);
}

void Engine::PostStop(uint64_t epoch) {
  inbox_.PostStop(epoch);
  user_tasks_.Interrupt(epoch);
  Abort(epoch, "the view was stopped");
}

void Engine::PostDropped(const std::string& why) {
  inbox_.PostDropped(why);
  const uint64_t epoch = host_.AbortCurrent("the worker was dropped from the view");
  loop_.Abort(epoch);
  user_tasks_.Interrupt(std::max(epoch, info_.membership().epoch));
}

void Engine::PostEnd(Status why) {
  inbox_.PostEnd(std::move(why));
  user_tasks_.Interrupt(UINT64_MAX);
  Abort(UINT64_MAX, "the worker has left the view");
}

Status Engine::AwaitEntered(Clock::time_point deadline) {
  std::optional<Status> refused;
  const bool in_time = user_tasks_.Serve(
      [&] {
        if (info_.entered) return true;
        refused = inbox_.refusals().refused();
        return refused.has_value();
      },
      deadline);
  if (refused) return *refused;
  if (!in_time)
    return {RM_ERR_TIMEOUT, "no view with this worker was installed before the deadline"};
  return {};
}

Status Engine::StepEnd(StepResult* result) {
  Request request;
  request.name = kStepEndName;
  request.kind = Kind::kStepEnd;
  const auto operation = std::make_shared<Operation>(std::move(request), nullptr, nullptr);
  if (Status s = Submit(operation); !s.ok()) return s;
  const BlockedHere blocked(this);
  user_tasks_.Serve([&] { return operation->done(); }, Clock::time_point::max());
  *result = operation->step;
  return operation->status();
}

Status Engine::Shutdown(Clock::time_point deadline) {
  std::shared_ptr<Operation> operation;
  if (Status s = shutdown_.Ask(&operation); !s.ok()) return s;
  if (!operation->WaitUntil(deadline)) {
    return {RM_ERR_TIMEOUT, "not every rank has called rm_shutdown before the deadline"};
  }
  if (operation->status().ok()) wake_.Renew();
  return operation->status();
}

Status Engine::Wake(Clock::time_point deadline) {
  inbox_.Wake();
  std::shared_ptr<Operation> operation;
  if (Status s = wake_.Ask(&operation); !s.ok()) return s;
  if (!operation->WaitUntil(deadline)) {
    return {RM_ERR_TIMEOUT, "not every rank has called rm_init again before the deadline"};
  }
  if (operation->status().ok()) shutdown_.Renew();
  return operation->status();
}

}  // namespace ringmaster::engine
