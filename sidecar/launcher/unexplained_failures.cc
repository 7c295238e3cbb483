#include "sidecar/launcher/unexplained_failures.h"

#include <signal.h>

#include <utility>

namespace ringmaster::launcher {

bool MayFollowAnother(const ChildExit& exit) { return exit.signal == 0 || exit.signal == SIGABRT; }

void UnexplainedFailures::Add(const ChildExit& exit, TimePoint now) {
  failures_[exit.child.slot] = {.exit = exit, .at = now, .due_at = now + kExplainedWithin};
}

void UnexplainedFailures::BrokeView(int slot) {
  const auto failure = failures_.find(slot);
  if (failure != failures_.end()) failure->second.broke_view = true;
}

bool UnexplainedFailures::OnViewOver(int slot, TimePoint now) {
  const auto found = failures_.find(slot);
  if (found == failures_.end()) return false;
  Failure& failure = found->second;
  if (!failure.broke_view || now - failure.at < kBreaks) return true;
  failure.due_at = failure.at;
  return false;
}

std::optional<ChildExit> UnexplainedFailures::Take(int slot) {
  const auto failure = failures_.find(slot);
  if (failure == failures_.end()) return std::nullopt;
  ChildExit exit = std::move(failure->second.exit);
  failures_.erase(failure);
  return exit;
}

std::optional<ChildExit> UnexplainedFailures::TakeDue(TimePoint now) {
  auto first = failures_.end();
  for (auto it = failures_.begin(); it != failures_.end(); ++it) {
    if (now < it->second.due_at) continue;
    if (first == failures_.end() || it->second.at < first->second.at) first = it;
  }
  if (first == failures_.end()) return std::nullopt;
  return Take(first->first);
}

std::optional<TimePoint> UnexplainedFailures::NextWake() const {
  std::optional<TimePoint> wake;
  for (const auto& [slot, failure] : failures_) wake = Earlier(wake, failure.due_at);
  return wake;
}

}  // namespace ringmaster::launcher
