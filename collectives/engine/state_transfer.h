// Gives the state of the lowest rank that has it (the donor) to the joiners of a view, while all
// ranks stand at a step boundary.
//
// Every rank takes part, whether it needs the state or not: the transfer is a sequence of
// collectives of the view, so a fault ends it on all ranks together. A joiner receives the whole
// state into temporary memory before it loads any of it, so a fault in the middle leaves the
// joiner's own memory as it was. Saving and loading may run the user's code, so they run on the
// thread that stands in step_end or enter.
//
// Owner and thread: one recovery, on the engine's thread.
#pragma once

#include <chrono>
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
    // How long a joiner waits for a thread of its user that loads the state. Meanwhile all others
    // stand at the boundary.
    std::chrono::milliseconds patience = std::chrono::seconds(10);
  };

  StateTransfer(Communicator* communicator, StateRegistry* registry, UserTasks* users, Part part);

  // Moves the donor's state to all joiners and loads it there. RM_ERR_EPOCH_MOVED: the view is dead
  // or was stopped. RM_ERR_OUT_OF_MEMORY: the state can't be received here. Errors of the user's
  // code are in saved() and loaded() only.
  Status Run();
  // Returns when all ranks have called it, so that all joiners have loaded the state. Only then may
  // a rank let its user leave step_end, because a joiner can get the state only from ranks that
  // stand at the boundary.
  Status AwaitAll();

  // After Run: how the donor's save went, the same on all ranks.
  const Status& saved() const { return saved_; }
  // After Run, on a joiner: whether it has the state now. RM_ERR_TIMEOUT: its user waits for it no
  // longer.
  const Status& loaded() const { return loaded_; }

 private:
  bool donates() const { return communicator_->rank() == part_.donor; }
  Status Save();
  // The donor tells all ranks what will come: how its save went, and name and size of each segment.
  Status ShareManifest();
  void ReadManifest(const std::vector<std::byte>& bytes);
  // Makes the memory into which the segments are received.
  Status Stage();
  // Broadcasts the segments.
  Status Move();
  Status Load();

  Communicator* const communicator_;
  StateRegistry* const registry_;
  UserTasks* const users_;
  const Part part_;

  // Shared with the user's thread, whose save or load may still run when the view has been stopped
  // and this object is gone.
  std::shared_ptr<std::vector<StateSegment>> segments_;
  std::shared_ptr<void> staged_;
  Status saved_;
  Status loaded_;
};

}  // namespace ringmaster::engine
