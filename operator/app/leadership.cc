#include "operator/app/leadership.h"

#include <algorithm>
#include <utility>

namespace ringmaster::app {
namespace {

constexpr std::chrono::seconds kHungElection{60};

// A try comes every retry_period, and each of its few calls takes at most renew_deadline.
std::chrono::milliseconds HungAfter(const runtime::ElectionOptions& options) {
  return std::max<std::chrono::milliseconds>(kHungElection,
                                             2 * (options.retry_period + options.renew_deadline));
}

}  // namespace

void Leadership::LeadAlone() {
  const sync::MutexLock lock(&mu_);
  leads_ = true;
}

bool Leadership::AwaitElection(Candidacy candidacy, std::stop_token stop) {
  runtime::ElectorCallbacks callbacks;
  callbacks.on_leading = [this] {
    const sync::MutexLock lock(&mu_);
    leads_ = true;
    changed_.NotifyAll();
  };
  callbacks.on_lost = std::move(candidacy.on_lost);
  std::unique_ptr<LeaderLabel> label;
  if (!candidacy.pod.empty()) {
    label =
        std::make_unique<LeaderLabel>(std::move(candidacy.label_api), candidacy.ns, candidacy.pod);
    label->Clear();
  }
  auto elector = std::make_unique<runtime::LeaderElector>(std::move(candidacy.elector_api),
                                                          candidacy.ns, candidacy.lease,
                                                          candidacy.options, std::move(callbacks));
  const sync::MutexLock lock(&mu_);
  hung_after_ = HungAfter(candidacy.options);
  label_ = std::move(label);
  elector_ = std::move(elector);
  elector_->Start();
  while (!leads_ && !stop.stop_requested()) changed_.Wait(&mu_, stop);
  return leads_ && !stop.stop_requested();
}

void Leadership::SetLabel() {
  if (label_ != nullptr) label_->Start();
}

void Leadership::RemoveLabel() {
  if (label_ != nullptr) label_->Stop();
}

void Leadership::Release() {
  if (elector_ != nullptr) elector_->Stop();
}

bool Leadership::leads() const {
  const sync::MutexLock lock(&mu_);
  return leads_;
}

std::string Leadership::lease_error() const {
  const sync::MutexLock lock(&mu_);
  return elector_ != nullptr ? elector_->state().error : "";
}

std::string Leadership::label_error() const {
  const sync::MutexLock lock(&mu_);
  return label_ != nullptr ? label_->error() : "";
}

bool Leadership::ElectionHangs(Clock::time_point now) const {
  const sync::MutexLock lock(&mu_);
  return elector_ != nullptr && now - elector_->state().last_try > hung_after_;
}

}  // namespace ringmaster::app
