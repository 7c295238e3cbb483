// Turns what the engine's loop does into events of the timeline, with Horovod's names where Horovod
// has one: for each tensor how long it waited for the other ranks (NEGOTIATE_ALLREDUCE) and how
// long it ran (ALLREDUCE), and besides that rounds, operations, steps and views. Nothing is
// measured while no timeline is on.
//
// Thread rule: the engine's thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/engine/negotiator.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/rebuild_timer.h"
#include "collectives/engine/response.h"
#include "collectives/engine/worker_view.h"
#include "collectives/timeline/timeline.h"

namespace ringmaster::engine {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // Null: there is no timeline.
  explicit Trace(timeline::Timeline* timeline) : timeline_(timeline) {}

  void RoundBegins();
  void RoundEnds(const RoundResult& result);
  void OperationBegins(const Response& response, const PendingTable& pending);
  // The operation has been executed. Call it before the results are published, so that a script
  // which stops the timeline when it has the results finds the operation in it.
  void OperationEnds(const Response& response);
  void StepEnds(uint64_t step);
  // All ranks of the view have just heard of each other, so this is the same moment on all of them.
  // By it the timelines of several machines are laid side by side.
  void ViewBegins(const WorkerView& view);
  // All phases of a rebuild that this worker sees. How long a death went unnoticed only a sidecar
  // knows.
  void Rebuilt(const RebuildTimes& times);

 private:
  void RecordView();
  void RecordPhase(const char* phase, const RebuildTimes& times, Clock::time_point begin,
                   Clock::time_point end);
  // Records the time from `since`, when this rank had made its last request of the operation, to
  // the operation's beginning. The rank that the others waited for has the shortest one.
  void RecordWait(const Response& response, Clock::time_point since);
  bool on() const { return timeline_ != nullptr && timeline_->on(); }
  // The present, or a time that is not set if nothing is recorded: what began before the timeline
  // did is left out.
  Clock::time_point Now() const { return on() ? Clock::now() : Clock::time_point(); }

  timeline::Timeline* const timeline_;
  std::optional<timeline::Event> view_;  // the newest view; unset: none yet
  uint64_t view_in_ = 0;                 // number of the timeline that has view_; 0: none
  Clock::time_point round_began_;
  Clock::time_point operation_began_;
  // By request of the operation: when it was asked for; not set: not on this rank.
  std::vector<Clock::time_point> asked_;
  Clock::time_point step_ended_;
};

}  // namespace ringmaster::engine
