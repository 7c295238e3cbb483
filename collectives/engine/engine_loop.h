// The engine's loop: takes what was posted, agrees in rounds on what runs, and brings interrupted
// operations to their end when a view has changed. It decides what comes after what; the parts it
// is made of own the state and do the work.
//
// Owner: Engine, which runs it on a thread of its own. Thread rule: that thread alone, but for
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
#include "collectives/engine/view.h"
#include "collectives/engine/view_connection.h"

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
  // One pass of the loop; false: the inbox says close.
  bool Turn(const Messages& messages);

  // ---- What was posted
  Messages Await();
  void HandleStop(const Messages& messages);
  void End(const Status& why);
  void Detach(const std::string& why);

  // ---- A round
  // When the next round is due here; nullopt: when something is submitted.
  std::optional<Clock::time_point> RoundDue() const;
  void Round();
  Status Execute(Response response);
  // `handed_over`: by a survivor, in a recovery.
  void Finish(const Retained& result, bool handed_over = false);
  void Publish(const Retained& result);
  void FinishShutdown(bool handed_over);
  void EndStep(bool armed);
  void Break(const Status& why);

  // ---- A new view
  void Install(View view, Clock::time_point since);
  Status Recover(RecoveryPlan* plan);
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
