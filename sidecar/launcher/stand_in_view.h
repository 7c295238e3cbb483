// What a stand-in is to do in the newest view, and what it owes its sidecar a word of.
//
// Plain data; time is handed in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sidecar/launcher/clock.h"
#include "sidecar/launcher/world.h"

namespace ringmaster::launcher {

class StandInView {
 public:
  // A new view has come, with this worker in it.
  void Take(const World& world, TimePoint now) {
    epoch_ = world.epoch;
    joined_ = world.joined;
    came_at_ = now;
    enters_ = false;
    broken_why_.reset();
    finished_ = false;
  }
  // It asks to be let in as soon as its process is gone.
  void EnterWhenStopped() { enters_ = true; }
  // The sidecar wants views up to this one to be used no more. False: the view is left behind, so
  // that is so already.
  bool Stop(uint64_t epoch) {
    if (epoch < epoch_) return false;
    stopping_ = std::max(stopping_, epoch);
    return true;
  }
  // The view may come after this.
  void Arm(uint64_t epoch) { armed_epoch_ = std::max(armed_epoch_, epoch); }
  void Broken(const std::string& why) { broken_why_ = why; }
  void Finished() { finished_ = true; }

  // The process is gone: the stop that waits for that, if any, and whether to enter.
  std::optional<uint64_t> TakeStop() {
    if (stopping_ == 0) return std::nullopt;
    return std::exchange(stopping_, 0);
  }
  bool TakeEntry() { return std::exchange(enters_, false); }

  uint64_t epoch() const { return epoch_; }  // 0: in none
  bool armed() const { return epoch_ != 0 && armed_epoch_ == epoch_; }
  // Since the view came; nothing for one that came with it: only survivors know what the change
  // has cost.
  std::optional<double> SecondsSince(TimePoint now) const {
    if (joined_) return std::nullopt;
    return std::chrono::duration<double>(now - came_at_).count();
  }
  // What a sidecar that starts again has to hear of the view.
  const std::optional<std::string>& broken_why() const { return broken_why_; }
  bool finished() const { return finished_; }

 private:
  uint64_t epoch_ = 0;
  bool joined_ = false;  // first came with this view
  TimePoint came_at_{};
  uint64_t stopping_ = 0;  // epoch
  bool enters_ = false;
  uint64_t armed_epoch_ = 0;
  std::optional<std::string> broken_why_;
  bool finished_ = false;
};

}  // namespace ringmaster::launcher
