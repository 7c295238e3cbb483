// Why no operation can be asked for at this worker: its part in the job has ended, all ranks have
// shut down and not begun again, or it was dropped from the view. Several of these may hold at a
// time, and each ends by itself.
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

  // What an operation that is asked for now is answered; empty: it is taken. The end of this
  // worker's part goes before a rest, and a rest before a drop.
  std::optional<Status> current() const;

 private:
  mutable sync::Mutex mu_;
  std::optional<Status> suspended_ GUARDED_BY(mu_);
  std::optional<Status> rests_ GUARDED_BY(mu_);
  std::optional<Status> refused_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::engine
