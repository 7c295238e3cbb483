// The messages that users and the sidecar have posted and the engine's thread has not taken yet.
//
// Where only the newest message of a kind counts it replaces the earlier one, so what the sidecar
// posts can't pile up while the engine's thread is in a collective.
//
// Thread rule: posting from any thread; Wait() and Take() from the engine's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/engine/names_in_flight.h"
#include "collectives/engine/operation.h"
#include "collectives/engine/refusals.h"
#include "collectives/engine/response.h"
#include "collectives/engine/worker_view.h"
#include "common/sync/mutex.h"

namespace ringmaster::engine {

using Submitted = std::vector<std::shared_ptr<Operation>>;

struct Messages {
  Submitted submitted;
  std::optional<uint64_t> stop;                   // the newest epoch to stop
  std::chrono::steady_clock::time_point stop_at;  // when the first stop among them came
  std::optional<WorkerView> view;                 // the newest
  std::chrono::steady_clock::time_point view_at;  // when it came
  std::map<uint64_t, bool> armed;                 // the newest by epoch
  std::optional<Status> end;                      // the first
  std::optional<std::string> dropped;             // why
  bool close = false;

  bool empty() const;
};

class Inbox {
 public:
  using Clock = std::chrono::steady_clock;

  void PostStop(uint64_t epoch);
  void PostView(WorkerView view);
  void PostDropped(const std::string& why);
  void PostArmed(uint64_t epoch, bool armed);
  void PostEnd(Status why);
  void PostClose();
  // Takes all of the operations or none. RM_ERR_INVALID: an operation with one of their names is in
  // flight. Otherwise the status with which operations are refused now (Refusals::current).
  Status Submit(std::span<const std::shared_ptr<Operation>> operations);
  Status Submit(const std::shared_ptr<Operation>& operation) {
    return Submit(std::span(&operation, 1));
  }

  // What has been posted since the last call; may be nothing.
  Messages Take();
  // Takes only the orders about planned changes.
  std::map<uint64_t, bool> TakeArmed();
  // Waits for a message, but not longer than `until` if that is given.
  Messages Wait(std::optional<Clock::time_point> until);

  // Frees the names for new operations. Call it before the operations complete, because a user may
  // at once ask for the next operation of the same name.
  void Forget(const Response& response);
  void Forget(const Request& request);
  // Submit() returns RM_ERR_DROPPED with this message until Resume(). Returns the operations that
  // were submitted and not taken yet. The caller must fail them the same way: their users did not
  // know yet, and the operations must not run in a later view.
  [[nodiscard]] Submitted Suspend(const std::string& why);
  void Resume();
  // Submit() returns `why` until Wake(), even if the worker is dropped and let in again meanwhile.
  // Returns as Suspend().
  [[nodiscard]] Submitted Rest(const Status& why);
  void Wake();
  // From now on Submit() returns `why`; only the first call counts. Returns as Suspend().
  [[nodiscard]] Submitted Refuse(const Status& why);
  const Refusals& refusals() const { return refusals_; }

 private:
  // Frees all names, and returns what was submitted and not taken yet.
  Submitted TakeBack() REQUIRES(mu_);

  sync::Mutex mu_;
  sync::CondVar posted_;
  Messages messages_ GUARDED_BY(mu_);
  NamesInFlight names_ GUARDED_BY(mu_);
  // A refusal begins under mu_, so that no operation is submitted between its beginning and
  // TakeBack().
  Refusals refusals_;
};

}  // namespace ringmaster::engine
