// What this worker and its sidecar have told each other: the worker's role and identity, and what a
// sidecar that starts again must be told again.
//
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "ringmaster/endpoint.h"
#include "ringmaster/status.h"

namespace ringmaster::elastic {

enum class Role { kUnknown, kBootstrap, kJoining, kStandby, kMember };

inline constexpr char kSidecarGone[] =
    "the sidecar of this pod has not answered for long, and nobody else can let this worker in";

// The role that a `welcome` frame gives.
Role RoleIn(const nlohmann::json& welcome);

class WorkerRegistration {
 public:
  using Clock = std::chrono::steady_clock;

  WorkerRegistration(int slot, uint64_t incarnation, bool standby, std::string version = "")
      : version_(std::move(version)), standby_(standby), slot_(slot), incarnation_(incarnation) {}

  // The first frame of each connection.
  nlohmann::json Hello(const PeerEndpoint& address) const;

  // What is wrong with a view: the worker believes that `rank` is lost; or the view is `broken` for
  // the worker, because of the link to `rank`, which lives, or for an unknown reason (-1).
  struct Trouble {
    uint64_t epoch = 0;
    int rank = -1;
    std::string why;
    bool broken = false;
  };
  // What a sidecar that has just started again may not know, and has to be told.
  struct Repeat {
    bool enter = false;
    uint64_t boundary_epoch = 0;  // 0: the worker stands at no boundary
    uint64_t boundary_step = 0;
    std::vector<Trouble> troubles;  // of the view that the worker is in
  };
  // A sidecar has sent its welcome. Returns what it has to be told again.
  Repeat Welcomed(const nlohmann::json& frame);
  // A standby takes a dead worker's place, and is a joiner from now on.
  void Promoted(const nlohmann::json& frame);
  // The worker is in no view any more. True: its user waits to be in one, so the sidecar must be
  // told that the worker wants to enter. A worker that was to begin the job waits only for that:
  // its script has yet to register what state it has.
  bool Dropped();
  // The sidecar gave up.
  void Failed(const std::string& message);
  // The sidecar has fallen silent. If it is not heard until then it counts as gone.
  void SidecarSilent(Clock::time_point ends);
  // It answers again on the same connection. A welcome says the same.
  void SidecarHeard();
  // Far away while the sidecar is heard.
  Clock::time_point silence_ends() const;

  // The user begins to wait for a view. False: the sidecar need not be told, because it was told
  // before and no view has been installed since, or because a view has come that lists the worker.
  bool RequestEntry();
  // The user waits no longer.
  void EndWait();
  // The user was let in: a worker that was to begin the job has begun it.
  void Entered();
  // This view has come, and may be in use before it counts as installed. False: the worker has left
  // it before, and only a sidecar that has started again can't know that.
  bool Given(uint64_t epoch);
  void Installed(uint64_t epoch);
  void AtBoundary(uint64_t epoch, uint64_t step);
  // Keeps the trouble until another view is installed, because a broken connection stays broken,
  // and the others may wait until this worker reports it.
  void InTrouble(const Trouble& trouble);

  Role role() const;
  // Waits until the worker has a role in the job, which a standby has not: it waits without a
  // deadline until it is needed. RM_ERR_TIMEOUT: the deadline has passed; RM_ERR_INTERNAL: the
  // sidecar gave up; RM_ERR_UNAVAILABLE: a standby's sidecar is gone.
  Status AwaitRole(Clock::time_point deadline, Role* role);

 private:
  bool settled() const REQUIRES(mu_) {
    return !failure_.empty() || (role_ != Role::kUnknown && role_ != Role::kStandby);
  }
  // `before`: the role of the worker until now.
  void LeaveView(Role before) REQUIRES(mu_);
  void TakeIdentity(const nlohmann::json& frame) REQUIRES(mu_);

  const std::string version_;  // of the library
  const bool standby_;

  mutable sync::Mutex mu_;
  sync::CondVar changed_;
  Role role_ GUARDED_BY(mu_) = Role::kUnknown;
  int slot_ GUARDED_BY(mu_);
  uint64_t incarnation_ GUARDED_BY(mu_);
  std::string failure_ GUARDED_BY(mu_);  // empty: none
  Clock::time_point silence_ends_ GUARDED_BY(mu_) = Clock::time_point::max();
  bool wants_to_enter_ GUARDED_BY(mu_) = false;
  bool user_waits_ GUARDED_BY(mu_) = false;
  uint64_t given_ GUARDED_BY(mu_) = 0;      // epoch
  uint64_t forgone_ GUARDED_BY(mu_) = 0;    // the worker uses no view up to this epoch any more
  uint64_t installed_ GUARDED_BY(mu_) = 0;  // epoch
  uint64_t boundary_epoch_ GUARDED_BY(mu_) = 0;  // the worker stands at the boundary of this view
  uint64_t boundary_step_ GUARDED_BY(mu_) = 0;
  std::vector<Trouble> troubles_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::elastic
