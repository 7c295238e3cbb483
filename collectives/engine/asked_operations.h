// The operations that users of this rank have asked for and that have not ended here: takes them
// from the inbox, and when they end frees their names, wakes who waits for them, and lets the meter
// know that nobody waits any more.
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

  // Takes what has been posted. Operations that the inbox refuses by now, or that are of a set to
  // which this rank does not belong, end at once. True: something has been taken.
  bool Take(const Submitted& submitted, const CheckSet& check);

  // The operations that were taken and have not ended.
  PendingTable& pending() { return pending_; }
  const PendingTable& pending() const { return pending_; }
  bool idle() const { return pending_.empty(); }

  // Frees the names of operations whose results are about to be published: they may be used again.
  void FreeNames(const Response& response) { inbox_->Forget(response); }
  // These operations are of a process set that has been removed: nobody asks for them any more.
  void FailLeftOver(const Submitted& operations);
  // Ends all operations with this status, and those that are asked for from now on, until the inbox
  // resumes, or for ever. An operation that a user asks for at the same moment ends the same way
  // and is not carried into a later view.
  void Drop(const std::string& why);
  void End(const Status& why);
  // The same until the inbox wakes.
  void Rest(const Status& why);

 private:
  void FailAll(const Submitted& posted, const Status& why);

  Inbox* const inbox_;
  UserTasks* const users_;
  WorkMeter* const work_;

  PendingTable pending_;
};

}  // namespace ringmaster::engine
