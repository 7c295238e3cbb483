// What the engine's loop tells the timeline, in Horovod's words where it has one: for each tensor
// how long it waited for the other ranks (NEGOTIATE_ALLREDUCE) and how long it ran (ALLREDUCE);
// beside them rounds, operations, steps, views. Nothing is measured while no timeline is on.
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
#include "collectives/engine/view.h"
#include "collectives/timeline/timeline.h"

namespace ringmaster::engine {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // Null: there is none.
  explicit Trace(timeline::Timeline* timeline) : timeline_(timeline) {}

  void RoundBegins();
  void RoundEnds(const RoundResult& result);
  void OperationBegins(const Response& response, const PendingTable& pending);
  // The operation has been executed. Call it before the results are given out, so that a script
  // which stops the timeline when it has them finds the operation in it.
  void OperationEnds(const Response& response);
  void StepEnds(uint64_t step);
  // All ranks of the view have just heard of each other: timelines are laid side by side by it.
  void ViewBegins(const View& view);
  void Rebuilt(const RebuildTimes& times);

 private:
  void RecordView();
  // From the last request of an operation to its beginning: the rank that the others waited for has
  // the shortest one.
  void RecordWait(const Response& response, Clock::time_point since);
  bool on() const { return timeline_ != nullptr && timeline_->on(); }
  // Unset where nothing is recorded: what began before the timeline did is left out.
  Clock::time_point Now() const { return on() ? Clock::now() : Clock::time_point(); }

  timeline::Timeline* const timeline_;
  std::optional<timeline::Event> view_;  // of this worker; unset: none yet
  uint64_t view_in_ = 0;                 // the timeline that has it; 0: none
  Clock::time_point round_began_;
  Clock::time_point operation_began_;
  std::vector<Clock::time_point> asked_;  // of the operation's requests; unset: not asked for here
  Clock::time_point step_ended_;
};

}  // namespace ringmaster::engine
