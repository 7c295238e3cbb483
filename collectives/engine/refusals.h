// The reasons why this worker takes no operations: its part in the job has ended, all ranks have
// shut down and not begun again, or it was dropped from the view. Several of them may hold at a
// time, and each ends independently of the others.
//
// Owner: Inbox. Thread rule: any thread.
#pragma once

#include <optional>
#include <string>

#include "common/sync/mutex.h"
#include "ringmaster/status.h"

namespace ringmaster::engine {

class Refusals {
 public:
  // Until Resume(): RM_ERR_DROPPED with this message.
  void Suspend(const std::string& why);
  void Resume();
  // Until Wake().
  void Rest(const Status& why);
  void Wake();
  bool rests() const;
  // For ever; only the first call counts.
  void Refuse(const Status& why);
  std::optional<Status> refused() const;

  // The status with which an operation is refused now; empty: operations are taken. If there are
  // several reasons, the end of this worker's part counts first, then a rest, then a drop.
  std::optional<Status> current() const;

 private:
  mutable sync::Mutex mu_;
  std::optional<Status> suspended_ GUARDED_BY(mu_);
  std::optional<Status> rests_ GUARDED_BY(mu_);
  std::optional<Status> refused_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::engine
