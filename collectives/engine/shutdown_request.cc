#include "collectives/engine/shutdown_request.h"

#include <utility>

namespace ringmaster::engine {

Status ShutdownRequest::Ask(std::shared_ptr<Operation>* operation) {
  sync::MutexLock lock(&mu_);
  const bool failed = asked_ != nullptr && asked_->done() && !asked_->status().ok();
  if (asked_ == nullptr || failed) {
    Request request;
    request.name = kShutdownName;
    request.kind = Kind::kShutdown;
    const auto asked = std::make_shared<Operation>(std::move(request), nullptr, nullptr);
    if (Status s = inbox_->Submit(asked); !s.ok()) return s;
    asked_ = asked;
  }
  *operation = asked_;
  return {};
}

}  // namespace ringmaster::engine
