#include "operator/runtime/list_watch_health.h"

#include "common/logging/log.h"

namespace ringmaster::runtime {
namespace {

constexpr std::chrono::seconds kLogAgain{60};

}  // namespace

// Logs an error that repeats for an hour only a few times.
void ListWatchHealth::Failed(const kube::Error& error) {
  const auto now = std::chrono::steady_clock::now();
  if (error.message != logged_error_ || now - logged_at_ >= kLogAgain) {
    logging::Warn("list or watch failed resource={} error={}", resource_,
                  logging::Value(error.message));
    logged_error_ = error.message;
    logged_at_ = now;
  }
  const sync::MutexLock lock(&mu_);
  state_.error = error.message;
  ++state_.failures;
}

void ListWatchHealth::Recovered() {
  if (logged_error_.empty()) return;
  logged_error_.clear();
  logging::Info("list and watch go well again resource={}", resource_);
  const sync::MutexLock lock(&mu_);
  state_.error.clear();
}

void ListWatchHealth::SetSynced() {
  {
    const sync::MutexLock lock(&mu_);
    state_.synced = true;
    state_.error.clear();
  }
  synced_changed_.NotifyAll();
}

void ListWatchHealth::SetTurn() {
  const sync::MutexLock lock(&mu_);
  state_.last_turn = std::chrono::steady_clock::now();
}

bool ListWatchHealth::WaitForSync(std::chrono::milliseconds timeout) {
  sync::MutexLock lock(&mu_);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!state_.synced && synced_changed_.WaitUntil(&mu_, deadline)) {
  }
  return state_.synced;
}

ListWatchHealth::State ListWatchHealth::state() const {
  const sync::MutexLock lock(&mu_);
  return state_;
}

}  // namespace ringmaster::runtime
