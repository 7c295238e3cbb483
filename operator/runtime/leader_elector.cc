#include "operator/runtime/leader_elector.h"

#include <fmt/format.h>

#include "common/logging/log.h"
#include "common/sync/pause.h"
#include "operator/api/time.h"
#include "operator/runtime/jitter.h"

namespace ringmaster::runtime {
namespace {

std::string Now() { return api::FormatMicroTime(std::chrono::system_clock::now()); }

}  // namespace

LeaderElector::LeaderElector(std::shared_ptr<kube::KubeApi> api, std::string ns, std::string name,
                             ElectionOptions options, ElectorCallbacks callbacks)
    : api_(std::move(api)),
      ns_(std::move(ns)),
      name_(std::move(name)),
      options_(options),
      callbacks_(std::move(callbacks)),
      election_(std::move(options)) {}

LeaderElector::~LeaderElector() { Stop(); }

void LeaderElector::Start() {
  {
    const sync::MutexLock lock(&mu_);
    state_.last_try = Clock::now();
  }
  loop_ = std::jthread([this](std::stop_token stop) { Run(stop); });
  deadline_thread_ = std::jthread([this](std::stop_token stop) { EnforceDeadline(stop); });
}

void LeaderElector::Stop() {
  if (!loop_.joinable()) return;
  deadline_thread_.request_stop();
  loop_.request_stop();
  deadline_thread_.join();
  loop_.join();
  {
    const sync::MutexLock lock(&mu_);
    state_.leading = false;
    if (!election_.leading() || lost_) return;
  }
  const auto released =
      api_->Update(kube::Leases(), ns_, WriteLease(election_.Release(Now()), ns_, name_));
  if (released) return logging::Info("lease released lease={}/{}", ns_, name_);
  logging::Warn("lease not released lease={}/{} error={}", ns_, name_,
                logging::Value(released.error().message));
}

LeaderElector::State LeaderElector::state() const {
  const sync::MutexLock lock(&mu_);
  return state_;
}

void LeaderElector::Run(std::stop_token stop) {
  do {
    const bool led = election_.leading();
    Try();
    if (led && !election_.leading()) {
      return Lose(fmt::format("{} holds the lease now",
                              election_.holder().empty() ? "nobody" : election_.holder()));
    }
    // A leader whose answer came after the deadline does not begin to lead: EnforceDeadline ends
    // it.
    const bool in_time = Clock::now() < election_.deadline();
    if (!led && election_.leading() && in_time) {
      logging::Info("leading lease={}/{} identity={}", ns_, name_,
                    logging::Value(options_.identity));
      callbacks_.on_leading();
    }
  } while (Sleep(stop));
}

void LeaderElector::Try() {
  // A lease that was read some time ago is read again before a decision. A leader relies on its own
  // last write until the API server says otherwise.
  if (!election_.leading()) election_.Lost();
  // One read and the write that follows from it.
  for (int i = 0; i < 2; ++i) {
    switch (election_.Next(Clock::now())) {
      case Election::Step::kLook:
        if (!Look()) return;
        break;
      case Election::Step::kCreate:
        return Write(election_.Claim(Now()), true);
      case Election::Step::kTake:
      case Election::Step::kRenew:
        return Write(election_.Claim(Now()), false);
      case Election::Step::kWait:
        return;
    }
  }
}

bool LeaderElector::Look() {
  const auto lease = api_->Get(kube::Leases(), ns_, name_);
  if (!lease && lease.error().code != kube::ErrorCode::kNotFound) {
    Publish(lease.error().message);
    return false;
  }
  election_.Saw(lease ? std::optional(ReadLease(*lease)) : std::nullopt, Clock::now());
  Publish("");
  return true;
}

void LeaderElector::Write(const LeaseFacts& facts, bool create) {
  const Clock::time_point asked = Clock::now();
  const kube::Json lease = WriteLease(facts, ns_, name_);
  const auto written =
      create ? api_->Create(kube::Leases(), ns_, lease) : api_->Update(kube::Leases(), ns_, lease);
  if (written) {
    election_.Wrote(ReadLease(*written), asked);
    return Publish("");
  }
  election_.Lost();
  const kube::ErrorCode code = written.error().code;
  const bool raced = code == kube::ErrorCode::kConflict || code == kube::ErrorCode::kAlreadyExists;
  // Another client was quicker. That is not an error, but a leader has to find out at once.
  if (!raced) return Publish(written.error().message);
  (void)Look();
}

void LeaderElector::Publish(const std::string& error) {
  if (error != reported_error_) {
    if (!error.empty()) {
      logging::Warn("lease out of reach lease={}/{} error={}", ns_, name_, logging::Value(error));
    } else {
      logging::Info("lease within reach again lease={}/{}", ns_, name_);
    }
    reported_error_ = error;
  }
  const std::string& holder = election_.holder();
  if (holder != reported_holder_ && !holder.empty() && holder != options_.identity) {
    logging::Info("another replica leads lease={}/{} holder={}", ns_, name_,
                  logging::Value(holder));
  }
  reported_holder_ = holder;
  const sync::MutexLock lock(&mu_);
  state_.error = error;
  state_.holder = holder;
  state_.last_try = Clock::now();
  state_.leading = election_.leading() && !lost_;
  deadline_ = election_.deadline();
  changed_.NotifyAll();
}

void LeaderElector::EnforceDeadline(std::stop_token stop) {
  std::string why;
  {
    sync::MutexLock lock(&mu_);
    for (;;) {
      while (!state_.leading && !stop.stop_requested()) changed_.Wait(&mu_, stop);
      if (stop.stop_requested()) return;
      const Clock::time_point until = deadline_;
      if (Clock::now() >= until) break;
      (void)changed_.WaitUntil(&mu_, stop, until);  // the deadline only moves later
    }
    why = fmt::format("not renewed for {} s",
                      static_cast<double>(options_.renew_deadline.count()) / 1000.0);
    if (!state_.error.empty()) why += ": " + state_.error;
  }
  Lose(why);
}

void LeaderElector::Lose(const std::string& why) {
  {
    const sync::MutexLock lock(&mu_);
    state_.leading = false;
    if (std::exchange(lost_, true)) return;
  }
  logging::Error("lease lost lease={}/{} why={}", ns_, name_, logging::Value(why));
  callbacks_.on_lost(why);
}

bool LeaderElector::Sleep(std::stop_token stop) {
  // A leader waits without jitter, because its deadline counts from the last renewal.
  const auto period =
      election_.leading() ? options_.retry_period : WithJitter(options_.retry_period, 5);
  sync::Pause(stop, period);
  const sync::MutexLock lock(&mu_);
  return !stop.stop_requested() && !lost_;
}

}  // namespace ringmaster::runtime
