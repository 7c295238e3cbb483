// The operations that users of this rank have asked for and that have not ended here. This class
// takes them from the inbox. When they end it frees their names, wakes the threads that wait for
// them, and tells the WorkMeter when none is left.
//
// Owner: the engine's loop. Thread rule: the engine's thread only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "collectives/engine/inbox.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/response.h"
#include "collectives/engine/user_tasks.h"
#include "collectives/engine/work_meter.h"

namespace ringmaster::engine {

class AskedOperations {
 public:
  // Why an operation of this process set can't be asked for here; RM_OK: it can.
  using CheckSet = std::function<Status(int32_t process_set)>;

  // All of them outlive this.
  AskedOperations(Inbox* inbox, UserTasks* users, WorkMeter* work)
      : inbox_(inbox), users_(users), work_(work) {}

  // Takes what has been posted. Operations that the inbox refuses by now (Refusals::current), or
  // that `check` refuses, end at once. True: something has been taken.
  bool Take(const Submitted& submitted, const CheckSet& check);

  // The operations that were taken and have not ended.
  PendingTable& pending() { return pending_; }
  const PendingTable& pending() const { return pending_; }
  bool idle() const { return pending_.empty(); }

  // Frees the names of operations whose results are about to be published: they may be used again.
  void FreeNames(const Response& response) { inbox_->Forget(response); }
  // Fails these operations with RM_ERR_INVALID: their process set has been removed.
  void FailLeftOver(const Submitted& operations);
  // These end all operations, and those that are asked for from now on: Drop() with RM_ERR_DROPPED
  // until Inbox::Resume(), End() for ever, Rest() until Inbox::Wake(). An operation that a user
  // asks for at the same moment ends the same way, so none is carried into a later view.
  void Drop(const std::string& why);
  void End(const Status& why);
  void Rest(const Status& why);

 private:
  void FailAll(const Submitted& posted, const Status& why);

  Inbox* const inbox_;
  UserTasks* const users_;
  WorkMeter* const work_;

  PendingTable pending_;
};

}  // namespace ringmaster::engine
