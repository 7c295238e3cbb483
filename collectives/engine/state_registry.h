// The state that a joiner must get before it can train: plain buffers, and a blob that the save
// callback makes and the load callback reads.
//
// Thread rule: registration from any thread; Save() and Load() from the user's thread that is in
// step_end or enter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "ringmaster/ringmaster.h"
#include "ringmaster/status.h"

namespace ringmaster::engine {

// One named segment of state; the callbacks' blob has the empty name.
struct StateSegment {
  std::string name;
  void* data = nullptr;
  uint64_t bytes = 0;
};

class StateRegistry {
 public:
  // RM_ERR_INVALID: the name is empty, or data is null and bytes is not 0. A name that is
  // registered already gets the new buffer.
  Status Register(const std::string& name, void* data, size_t bytes);
  // RM_ERR_INVALID: the name is not registered.
  Status Unregister(const std::string& name);
  // Nothing is registered: a joiner could not be given anything.
  bool empty() const;
  void SetCallbacks(rm_state_save_fn save, rm_state_load_fn load, void* user);

  // Adds the segments of a donor to *segments. Their memory stays as it is until the calling thread
  // leaves step_end. RM_ERR_NO_STATE: nothing is registered. RM_ERR_INTERNAL: the save callback has
  // failed.
  Status Save(std::vector<StateSegment>* segments);
  // Copies what a donor has saved into the buffers and the load callback of a joiner.
  // RM_ERR_NO_STATE, RM_ERR_MISMATCH: names or sizes differ from what is registered here; nothing
  // has been loaded. RM_ERR_INTERNAL: the load callback has failed.
  Status Load(const std::vector<StateSegment>& segments);

 private:
  struct Callbacks {
    rm_state_save_fn save = nullptr;
    rm_state_load_fn load = nullptr;
    void* user = nullptr;
  };

  mutable sync::Mutex mu_;
  std::map<std::string, StateSegment> buffers_ GUARDED_BY(mu_);
  Callbacks callbacks_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::engine
