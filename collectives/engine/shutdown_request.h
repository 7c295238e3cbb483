// The agreement on the job's end that this worker has asked for: once, however often its script
// shuts down.
//
// Thread rule: any thread.
#pragma once

#include <memory>

#include "collectives/engine/inbox.h"
#include "common/sync/mutex.h"

namespace ringmaster::engine {

class ShutdownRequest {
 public:
  // Outlives this.
  explicit ShutdownRequest(Inbox* inbox) : inbox_(inbox) {}

  // *operation: completes when all ranks have asked for it. A second call waits for the agreement
  // that the first one has asked for and did not live to see, or finds that it has come meanwhile;
  // after one that has failed there is a new one. A failure is the inbox's.
  Status Ask(std::shared_ptr<Operation>* operation);

 private:
  Inbox* const inbox_;

  sync::Mutex mu_;
  std::shared_ptr<Operation> asked_ GUARDED_BY(mu_);  // null: never asked for
};

}  // namespace ringmaster::engine
