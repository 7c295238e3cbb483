// The pings of one worker and what their answers prove.
//
// A worker whose pings are not answered may have been replaced: when the last answered ping was
// sent too long ago, the worker is fenced. What counts is when that ping was sent, and not when its
// answer came, because the sidecar may have answered at once and given the worker up a moment
// later.
//
// Thread rule: one thread; times are given to it, in milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>

namespace ringmaster::sidecar_client {

class Heartbeat {
 public:
  Heartbeat(int ping_ms, int fence_ms) : ping_ms_(ping_ms), fence_ms_(fence_ms) {}

  int ping_ms() const { return ping_ms_; }
  int fence_ms() const { return fence_ms_; }

  // A new connection was welcomed. Pings on the one before will not be answered any more.
  void Restart(int64_t now, int ping_ms, int fence_ms) {
    ping_ms_ = std::max(1, ping_ms);
    fence_ms_ = std::max(1, fence_ms);
    ping_at_ = now;
    sent_.clear();
    if (answered_ == 0 || fenced_) answered_ = now;
    fenced_ = false;
  }

  int64_t ping_at() const { return ping_at_; }
  uint64_t newest() const { return number_; }
  // The number of the ping that is sent now.
  uint64_t Ping(int64_t now) {
    sent_.emplace_back(++number_, now);
    if (sent_.size() > kMostUnanswered) sent_.pop_front();
    ping_at_ = now + ping_ms_;
    return number_;
  }
  // An answer counts for all pings before it too.
  void Answered(uint64_t number) {
    while (!sent_.empty() && sent_.front().first <= number) {
      answered_ = std::max(answered_, sent_.front().second);
      sent_.pop_front();
    }
  }

  // When the worker is fenced if no further ping is answered. Never before the first welcome, and
  // only once until the sidecar is heard again.
  int64_t fence_at() const {
    return fenced_ || answered_ == 0 ? std::numeric_limits<int64_t>::max() : answered_ + fence_ms_;
  }
  // True when that time has come, and false afterwards.
  bool Fence(int64_t now) {
    if (now < fence_at()) return false;
    return fenced_ = true;
  }
  // True, once after a fence, when a ping has been answered that is recent. A new welcome counts as
  // that without a word.
  bool HeardAgain(int64_t now) {
    if (!fenced_ || now >= answered_ + fence_ms_) return false;
    fenced_ = false;
    return true;
  }

 private:
  static constexpr size_t kMostUnanswered = 1000;

  int ping_ms_, fence_ms_;
  int64_t ping_at_ = 0;
  uint64_t number_ = 0;
  std::deque<std::pair<uint64_t, int64_t>> sent_;  // not answered: number and time
  int64_t answered_ = 0;  // when the last answered ping was sent; 0: no welcome yet
  bool fenced_ = false;
};

}  // namespace ringmaster::sidecar_client
