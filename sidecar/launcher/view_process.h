// What is planned for the process of a slot whose collectives are not ours: the view that it is to
// run in, when it starts there, and for what reason and how soon it ends.
//
// Owner: ForeignSlots, one for each slot. Plain data; time is handed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "sidecar/launcher/clock.h"
#include "sidecar/launcher/slots.h"
#include "sidecar/launcher/world.h"

namespace ringmaster::launcher {

class ViewProcess {
 public:
  // Pods often come one after the other: what is started in the meantime would be ended at once.
  static constexpr std::chrono::milliseconds kSettle{500};
  // Between TERM, in which a script may write its checkpoint, and KILL.
  static constexpr std::chrono::seconds kEndGrace{5};

  // ---- Its view
  // It is to run in this view, and starts in a moment.
  void Enter(World world, TimePoint now) {
    world_ = std::move(world);
    start_at_ = now + kSettle;
  }
  // Its view is over: nothing starts here until the next one.
  void LeaveView() {
    world_.reset();
    start_at_.reset();
  }
  // Of the view that it runs in, or is about to.
  const std::optional<World>& world() const { return world_; }
  bool IsInViewUpTo(uint64_t epoch) const { return world_ && world_->epoch <= epoch; }

  // Its time to start has come; once in a view. Ask while none runs here.
  bool TakeStart(TimePoint now) { return TakeDue(&start_at_, now); }
  // It could not be started; the next try is then.
  void StartAgainAt(TimePoint at) { start_at_ = at; }
  // It starts now: how many times it was started before.
  int CountStart() { return starts_++; }

  // ---- Its end
  // It gets TERM now, and KILL when it takes too long. False: it has got TERM already.
  bool TellToEnd(TimePoint now) {
    if (std::exchange(told_to_end_, true)) return false;
    kill_at_ = now + kEndGrace;
    return true;
  }
  bool TakeKill(TimePoint now) { return TakeDue(&kill_at_, now); }
  // It has ended. True: it had been told to.
  bool Ended() {
    kill_at_.reset();
    return std::exchange(told_to_end_, false);
  }
  // The pod leaves by plan, so this process is the last one here.
  void LeaveByPlan() { leaves_by_plan_ = true; }
  bool leaves_by_plan() const { return leaves_by_plan_; }

  // Another worker comes in this place when the process is gone. `by_us`: that is no failure of the
  // worker that goes.
  void ReplaceWorker(bool by_us) {
    LeaveView();
    replaced_by_us_ = by_us;
  }
  bool is_replaced() const { return replaced_by_us_.has_value(); }
  // The other worker is there now. True: ReplaceWorker() was `by_us`.
  bool TakeReplacement() {
    told_to_end_ = false;
    return std::exchange(replaced_by_us_, std::nullopt).value_or(false);
  }

  std::optional<TimePoint> NextWake(bool runs) const {
    return Earlier(runs ? std::nullopt : start_at_, kill_at_);
  }

 private:
  std::optional<World> world_;
  std::optional<TimePoint> start_at_;
  int starts_ = 0;
  bool told_to_end_ = false;
  std::optional<TimePoint> kill_at_;
  bool leaves_by_plan_ = false;
  std::optional<bool> replaced_by_us_;  // nothing: the worker remains
};

}  // namespace ringmaster::launcher
