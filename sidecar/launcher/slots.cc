#include "sidecar/launcher/slots.h"

#include <algorithm>
#include <utility>

namespace ringmaster::launcher {

void Slots::CloseIdle() {
  for (Slot& slot : slots_) {
    slot.closed = slot.closed || slot.pid == 0;
    slot.restart_at.reset();
    slot.finish_by.reset();
  }
}

void Slots::CloseAll() {
  CloseIdle();
  for (Slot& slot : slots_) slot.closed = true;
}

bool Slots::AllClosed() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.closed; });
}

bool Slots::AllIdle() const {
  return std::all_of(slots_.begin(), slots_.end(),
                     [](const Slot& slot) { return slot.pid == 0 && !slot.restart_at; });
}

void Slots::ExitedWell(int slot, TimePoint now, std::chrono::seconds grace) {
  Slot& ended = slots_[static_cast<size_t>(slot)];
  const bool just_back = !sidecar_lost_ && found_again_by_ && now < *found_again_by_;
  ended.unheard = sidecar_lost_ || just_back;
  ended.finish_by = now + (sidecar_lost_ ? kSidecarAway : grace);
  if (just_back) ended.finish_by = std::max(*ended.finish_by, *found_again_by_);
}

void Slots::SidecarLost(TimePoint now) {
  sidecar_lost_ = true;
  for (Slot& slot : slots_) {
    if (!slot.finish_by) continue;
    slot.unheard = true;
    slot.finish_by = now + kSidecarAway;
  }
}

void Slots::SidecarFound(TimePoint now) {
  if (!std::exchange(sidecar_lost_, false)) return;
  found_again_by_ = now + kSidecarBack;
  for (Slot& slot : slots_) {
    if (slot.finish_by) slot.finish_by = found_again_by_;
  }
}

void Slots::SidecarReads(bool everything, TimePoint now) {
  if (everything) {
    if (std::exchange(look_at_, std::nullopt)) SidecarFound(now);
    return;
  }
  const bool due = std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.finish_by && *slot.finish_by <= now;
  });
  if (due && !sidecar_lost_) {
    SidecarLost(now);
    look_at_ = now;
  }
  if (look_at_) look_at_ = now + kLookAgain;
}

std::vector<int> Slots::TakeRestarts(TimePoint now) {
  std::vector<int> due;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (TakeDue(&slots_[i].restart_at, now)) due.push_back(static_cast<int>(i));
  }
  return due;
}

std::vector<Unfinished> Slots::TakeUnfinished(TimePoint now) {
  std::vector<Unfinished> due;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!TakeDue(&slots_[i].finish_by, now)) continue;
    if (sidecar_lost_ && !AllIdle()) {
      slots_[i].finish_by = now + kSidecarAway;
      continue;
    }
    due.push_back({.slot = static_cast<int>(i), .unheard = slots_[i].unheard});
  }
  return due;
}

std::optional<TimePoint> Slots::NextWake() const {
  std::optional<TimePoint> wake = look_at_;
  for (const Slot& slot : slots_) wake = Earlier(wake, Earlier(slot.restart_at, slot.finish_by));
  return wake;
}

bool TakeDue(std::optional<TimePoint>* at, TimePoint now) {
  if (!*at || now < **at) return false;
  at->reset();
  return true;
}

std::optional<TimePoint> Earlier(std::optional<TimePoint> a, std::optional<TimePoint> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace ringmaster::launcher
