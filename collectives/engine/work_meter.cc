#include "collectives/engine/work_meter.h"

#include <algorithm>

namespace ringmaster::engine {

void WorkMeter::Begin(Clock::time_point now) {
  sync::MutexLock lock(&mu_);
  if (!began_) began_ = now;
}

void WorkMeter::Change(Now next, Clock::time_point now) {
  const auto since = std::max(now - changed_, Clock::duration(0));
  if (state_ == Now::kWaiting) waiting_ += since;
  if (state_ == Now::kRunning) running_ += since;
  state_ = next;
  changed_ = now;
}

void WorkMeter::Asked(Clock::time_point now) {
  sync::MutexLock lock(&mu_);
  if (state_ == Now::kIdle) Change(Now::kWaiting, now);
}

void WorkMeter::Runs(Clock::time_point now) {
  sync::MutexLock lock(&mu_);
  Change(Now::kRunning, now);
}

void WorkMeter::Ran(Clock::time_point now, uint64_t bytes, bool more) {
  sync::MutexLock lock(&mu_);
  Change(more ? Now::kWaiting : Now::kIdle, now);
  bytes_ += bytes;
}

void WorkMeter::Clear(Clock::time_point now) {
  sync::MutexLock lock(&mu_);
  Change(Now::kIdle, now);
}

void WorkMeter::Blocks(Clock::time_point now) {
  sync::MutexLock lock(&mu_);
  if (blocked_threads_++ == 0) blocked_since_ = now;
}

void WorkMeter::Unblocks(Clock::time_point now) {
  sync::MutexLock lock(&mu_);
  if (--blocked_threads_ == 0) blocked_ += now - blocked_since_;
}

job::WorkerTimes WorkMeter::At(Clock::time_point now) const {
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(std::max(time, Clock::duration(0))).count();
  };
  sync::MutexLock lock(&mu_);
  if (!began_) return {};
  const auto current = now - changed_;
  return {.seconds = seconds(now - *began_),
          .blocked = seconds(blocked_ +
                             (blocked_threads_ > 0 ? now - blocked_since_ : Clock::duration(0))),
          .waiting = seconds(waiting_ + (state_ == Now::kWaiting ? current : Clock::duration(0))),
          .running = seconds(running_ + (state_ == Now::kRunning ? current : Clock::duration(0))),
          .bytes = bytes_};
}

}  // namespace ringmaster::engine
