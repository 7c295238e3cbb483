// What users and the sidecar ask of the engine's thread.
//
// Messages of one kind replace each other where only the newest counts, so the inbox never grows
// while the engine's thread sits in a collective.
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
#include "collectives/engine/view.h"
#include "common/sync/mutex.h"

namespace ringmaster::engine {

using Submitted = std::vector<std::shared_ptr<Operation>>;

struct Messages {
  Submitted submitted;
  std::optional<uint64_t> stop;  // the newest epoch to stop
  std::chrono::steady_clock::time_point stop_at;
  std::optional<View> view;  // the newest
  std::chrono::steady_clock::time_point view_at;
  std::map<uint64_t, bool> armed;
  std::optional<Status> end;           // the first
  std::optional<std::string> dropped;  // why
  bool close = false;

  bool empty() const;
};

class Inbox {
 public:
  using Clock = std::chrono::steady_clock;

  void PostStop(uint64_t epoch);
  void PostView(View view);
  void PostDropped(const std::string& why);
  void PostArmed(uint64_t epoch, bool armed);
  void PostEnd(Status why);
  void PostClose();
  // Takes all of them or none. RM_ERR_INVALID: an operation with the name of one of them is in
  // flight.
  Status Submit(std::span<const std::shared_ptr<Operation>> operations);
  Status Submit(const std::shared_ptr<Operation>& operation) {
    return Submit(std::span(&operation, 1));
  }

  // What has been posted since the last call; may be nothing.
  Messages Take();
  // Waits for a message, but not longer than `until`; without it for ever.
  Messages Wait(std::optional<Clock::time_point> until);

  // Frees the names for new operations. Call it before the operations complete, because a user may
  // at once ask for the next operation of the same name.
  void Forget(const Response& response);
  void Forget(const Request& request);
  // Submit() answers RM_ERR_DROPPED with this message until Resume(). Returns the operations that
  // were submitted and not taken yet: they have to fail the same way, because their users did not
  // know.
  [[nodiscard]] Submitted Suspend(const std::string& why);
  void Resume();
  // The same between a shutdown and Wake(), whatever becomes of the view meanwhile.
  [[nodiscard]] Submitted Rest(const Status& why);
  void Wake();
  // From now on Submit() answers `why`; only the first call counts. Returns as Suspend().
  [[nodiscard]] Submitted Refuse(const Status& why);
  const Refusals& refusals() const { return refusals_; }

 private:
  // Nothing is in flight any more. Returns what was submitted and not taken yet.
  Submitted TakeBack() REQUIRES(mu_);

  sync::Mutex mu_;
  sync::CondVar posted_;
  Messages messages_ GUARDED_BY(mu_);
  NamesInFlight names_ GUARDED_BY(mu_);
  // Begins under mu_, so that no operation slips in beside those that are taken back.
  Refusals refusals_;
};

}  // namespace ringmaster::engine
