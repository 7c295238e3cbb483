// The engine's loop: takes what was posted, agrees in rounds with the other ranks on what runs, and
// finishes interrupted operations when the view has changed. It decides the order of these steps;
// its parts own the state and do the work.
//
// Owner: Engine, which runs it on a thread of its own. Thread rule: that thread alone, except for
// Abort().
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "collectives/engine/asked_operations.h"
#include "collectives/engine/engine_info.h"
#include "collectives/engine/engine_options.h"
#include "collectives/engine/inbox.h"
#include "collectives/engine/job_participation.h"
#include "collectives/engine/pipeline.h"
#include "collectives/engine/recovery.h"
#include "collectives/engine/round_timer.h"
#include "collectives/engine/stall_watch.h"
#include "collectives/engine/step_gate.h"
#include "collectives/engine/trace.h"
#include "collectives/engine/user_tasks.h"
#include "collectives/engine/view_connection.h"
#include "collectives/engine/worker_view.h"

namespace ringmaster::engine {

class EngineLoop {
 public:
  using Clock = std::chrono::steady_clock;

  EngineLoop(EngineOptions options, Inbox* inbox, UserTasks* users, EngineInfo* info,
             HostCommunicator* host);

  // Runs until the inbox says close.
  void Run();

  // From any thread: ends what the backend waits for in views up to `epoch`.
  void Abort(uint64_t epoch) { pipeline_.Abort(epoch); }

 private:
  // Handles what was posted, and runs a round if one is due. False: the inbox says close.
  bool Turn(const Messages& messages);

  // ---- What was posted
  // Waits until something is posted or a round is due.
  Messages Await();
  void HandleStop(const Messages& messages);
  // This worker's part in the job has ended.
  void End(const Status& why);
  // The job goes on without this worker, which may be let in again.
  void Detach(const std::string& why);

  // ---- A round
  // When this rank enters the next round; nullopt: not before a message changes something.
  std::optional<Clock::time_point> RoundDue() const;
  void Round();
  Status Execute(Response response);
  // Publishes the result of an operation that was executed here or, with `handed_over`, that a
  // survivor has handed over in a recovery.
  void Finish(const Retained& result, bool handed_over = false);
  void Publish(const Retained& result);
  void FinishShutdown(bool handed_over);
  void EndStep(bool armed);
  // A call in the view has failed: the view is over for this worker, or this worker's part is.
  void Break(const Status& why);

  // ---- A new view
  // Connects the view and finishes what was interrupted. `since`: when the view was posted.
  void Install(WorkerView view, Clock::time_point since);
  Status Recover(RecoveryPlan* plan);
  Status Abandon(const Status& why);
  Status SyncState(const RecoveryPlan& plan);
  void Enter(const RecoveryPlan& plan);
  void LeaveView();

  const EngineOptions options_;
  Inbox* const inbox_;
  UserTasks* const users_;
  EngineInfo* const info_;

  ViewConnection connection_;
  JobParticipation participation_;
  AskedOperations asked_;
  Pipeline pipeline_;
  StepGate gate_;
  RoundTimer rounds_;
  StallWatch stalls_;
  RebuildTimer rebuild_;
  Trace trace_;
};

}  // namespace ringmaster::engine
