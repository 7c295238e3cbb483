#include "sidecar/app/worker_liveness.h"

#include <algorithm>

namespace ringmaster::app {
namespace {

// How many pings a worker may miss before the launcher is asked what it does.
constexpr int kPingsMissed = 3;

}  // namespace

void WorkerLiveness::ForgiveOwnSleep(SteadyTime::duration slept, SteadyTime now) {
  // What has been read since the sidecar woke up is of now.
  const auto forgive = [&](SteadyTime since) { return std::min(since + slept, now); };
  heard_ = forgive(heard_);
  asked_ = forgive(asked_);
  if (closed_at_) closed_at_ = forgive(*closed_at_);
  if (halted_at_) halted_at_ = forgive(*halted_at_);
}

SteadyTime WorkerLiveness::AskAt(std::chrono::milliseconds stopped_for,
                                 std::chrono::milliseconds ping) const {
  const SteadyTime due = halted_at_ ? *halted_at_ + stopped_for : heard_ + kPingsMissed * ping;
  return std::max(due, asked_ + ping);
}

}  // namespace ringmaster::app
