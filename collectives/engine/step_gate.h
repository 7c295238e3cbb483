// Holds a user who has ended a step until the gate opens, and knows whom the step's ranks mean. If
// a planned change is to happen at this boundary, the gate first tells the sidecar that this rank
// stands there, and opens in the next view or when the change is called off.
//
// Owner: the engine's loop. Thread rule: the engine's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "collectives/engine/engine_info.h"
#include "collectives/engine/engine_listener.h"
#include "collectives/engine/step_boundary.h"
#include "collectives/engine/user_tasks.h"
#include "collectives/engine/view_connection.h"

namespace ringmaster::engine {

class StepGate {
 public:
  // All of them outlive this.
  StepGate(const ViewConnection* connection, EngineListener* listener, UserTasks* users,
           EngineInfo* info)
      : connection_(connection), listener_(listener), users_(users), info_(info) {}

  uint64_t step() const { return boundary_.step(); }
  // This rank stands here, or its user has not been let in yet.
  bool waits() const { return boundary_.standing() || !info_->entered; }
  // A planned change happens at the next boundary of this view.
  bool armed() const { return boundary_.armed(connection_->view().epoch); }
  // The next boundary is the last one in this view: a planned change happens there, or the job is
  // below minReplicas, so that the view doesn't train.
  bool closes() const { return armed() || !connection_->view().train; }

  // Takes the newest orders of the sidecar, by the view's epoch: whether a planned change happens
  // at that view's next boundary.
  void Obey(const std::map<uint64_t, bool>& armed);
  // All ranks have ended the step; `operation` is null if this rank's user has not called step_end.
  void Reach(std::shared_ptr<Operation> operation);
  // This worker was given the state of the end of step number `step`.
  void Restart(uint64_t step);
  // Whether joiners were given state at this boundary.
  void set_synced(bool synced) { boundary_.set_synced(synced); }
  // Tells the sidecar that this rank stands at the boundary.
  void Tell() { listener_->OnBoundary(connection_->view().epoch, step()); }
  // Begins a step, if this rank stands here or its user has not been let in. `begun`: others have
  // begun it already, so its ranks are those of Adopt() and not the current view's.
  void Open(bool begun = false);

  // Whom the step's ranks mean. It moves where all ranks execute the same operation:
  const StepRanks& ranks() const { return ranks_; }
  // They mean the workers of the current view from here on.
  void Rename();
  // This is what they mean to ranks that have executed more.
  void Adopt(StepRanks ranks);
  // The step_end of the user that stands here, if there is one, returns `why`.
  void Fail(const Status& why);

 private:
  const ViewConnection* const connection_;
  EngineListener* const listener_;
  UserTasks* const users_;
  EngineInfo* const info_;

  StepBoundary boundary_;
  StepRanks ranks_;
};

}  // namespace ringmaster::engine
