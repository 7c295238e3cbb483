#include "collectives/engine/agreed_request.h"

#include <utility>

namespace ringmaster::engine {

Status AgreedRequest::Ask(std::shared_ptr<Operation>* operation) {
  sync::MutexLock lock(&mu_);
  const bool failed = asked_ != nullptr && asked_->done() && !asked_->status().ok();
  if (asked_ == nullptr || failed) {
    Request request;
    request.name = name_;
    request.kind = kind_;
    const auto asked = std::make_shared<Operation>(std::move(request), nullptr, nullptr);
    if (Status s = inbox_->Submit(asked); !s.ok()) return s;
    asked_ = asked;
  }
  *operation = asked_;
  return {};
}

void AgreedRequest::Renew() {
  sync::MutexLock lock(&mu_);
  asked_.reset();
}

}  // namespace ringmaster::engine
