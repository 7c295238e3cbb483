// What a joiner must get before it can train: plain buffers, and whatever the save/load callbacks
// carry.
//
// Thread rule: registration from any thread; Save and Load from the user's thread that is in
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
  Status Register(const std::string& name, void* data, size_t bytes);
  Status Unregister(const std::string& name);
  // Nothing is registered: a joiner could not be given anything.
  bool empty() const;
  void SetCallbacks(rm_state_save_fn save, rm_state_load_fn load, void* user);

  // The segments of a donor. Their memory stays as it is until the thread that called leaves
  // step_end.
  Status Save(std::vector<StateSegment>* segments);
  // Gives a joiner what a donor has saved. Names and sizes must be those registered here.
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
