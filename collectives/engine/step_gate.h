// Holds a user who has ended a step until the gate opens. Where a planned change is to happen the
// gate tells the sidecar that this rank stands at the boundary.
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
  // The user stands here, or has not been let in yet.
  bool user_waits() const { return boundary_.standing() || !info_->entered; }
  // The next boundary is the last one in this view. Below minReplicas every step is, until the job
  // has enough workers again.
  bool closes() const {
    return boundary_.armed(connection_->view().epoch) || !connection_->view().train;
  }

  // A planned change happens at the next boundary of the view of this epoch, or does not any more.
  void Obey(const std::map<uint64_t, bool>& armed);
  // All ranks have ended the step; `operation` is null where the user has not asked for it.
  void Reach(std::shared_ptr<Operation> operation);
  // The state that this worker was given is that of the end of this step.
  void Restart(uint64_t step);
  // Whether joiners were given state at this boundary.
  void set_synced(bool synced) { boundary_.set_synced(synced); }
  // The sidecar hears that this rank stands at the boundary.
  void Tell() { listener_->OnBoundary(connection_->view().epoch, step()); }
  // Lets the user that stands here go on in the view.
  void Open();
  // The user that stands here gets the error `why`.
  void Fail(const Status& why);

 private:
  const ViewConnection* const connection_;
  EngineListener* const listener_;
  UserTasks* const users_;
  EngineInfo* const info_;

  StepBoundary boundary_;
};

}  // namespace ringmaster::engine
