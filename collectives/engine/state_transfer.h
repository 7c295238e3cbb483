// Gives the state of the lowest rank that has it (the donor) to the joiners of a view, while all
// stand at a step boundary.
//
// Every rank takes part in every step, whether it needs the state or not: the steps are collectives
// of the view, and a fault ends all of them together. The state is staged whole before any of it is
// loaded, so a fault in the middle leaves a joiner's memory as it was. Saving and loading are the
// user's code and run on the thread that stands in step_end or enter.
//
// Owner and thread: one recovery, on the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/engine/state_registry.h"
#include "collectives/engine/user_tasks.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

class StateTransfer {
 public:
  struct Part {
    int donor = 0;
    bool has_state = true;  // false: a joiner
  };

  StateTransfer(Communicator* communicator, StateRegistry* registry, UserTasks* users, Part part);

  // Moves the donor's state to all joiners and loads it there. A failure is one of the view.
  Status Run();
  // Returns when all ranks have called it, so all joiners have loaded the state: a rank may leave
  // step_end after this without leaving a joiner behind that has no state.
  Status AwaitAll();

  // After Run: what the donor's save callback said, the same on all ranks.
  const Status& saved() const { return saved_; }
  // After Run, on a joiner: whether it has the state now.
  const Status& loaded() const { return loaded_; }

 private:
  bool donates() const { return communicator_->rank() == part_.donor; }
  Status Save();
  Status ShareManifest();
  void ReadManifest(const std::vector<std::byte>& bytes);
  Status Stage();
  Status Move();
  Status Load();

  Communicator* const communicator_;
  StateRegistry* const registry_;
  UserTasks* const users_;
  const Part part_;

  // Shared with the user's thread, which may still be at it when the view has been stopped.
  std::shared_ptr<std::vector<StateSegment>> segments_;
  std::shared_ptr<void> staged_;
  Status saved_;
  Status loaded_;
};

}  // namespace ringmaster::engine
