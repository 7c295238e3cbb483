#include "collectives/elastic/worker_registration.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/worker_link/worker_frames.h"

namespace ringmaster::elastic {

Role RoleIn(const nlohmann::json& welcome) {
  const std::string state = welcome.value("state", "");
  if (state == "bootstrap") return Role::kBootstrap;
  if (state == "standby") return Role::kStandby;
  return state == "member" ? Role::kMember : Role::kJoining;
}

nlohmann::json WorkerRegistration::Hello(const PeerEndpoint& address) const {
  sync::MutexLock lock(&mu_);
  return worker_link::ToFrame(worker_link::WorkerHello{
      .library = version_,
      .slot = slot_,
      .incarnation = incarnation_,
      .pid = getpid(),
      .standby = standby_ && (role_ == Role::kUnknown || role_ == Role::kStandby),
      .tcp = address.tcp,
      .shm = address.shm,
      .epoch = installed_,
      .given = given_});
}

WorkerRegistration::Repeat WorkerRegistration::Welcomed(const nlohmann::json& frame) {
  const Role role = RoleIn(frame);
  Repeat repeat;
  sync::MutexLock lock(&mu_);
  silence_ends_ = Clock::time_point::max();
  const Role before = role_;
  const bool reconnect = before != Role::kUnknown;
  // A new process that the sidecar calls a member has been restarted in a member's place: it joins.
  if (!(role == Role::kMember && reconnect)) role_ = role == Role::kMember ? Role::kJoining : role;
  if (reconnect && role == Role::kJoining) LeaveView(before);
  TakeIdentity(frame);
  // A worker that is to begin the job has asked for that by calling init(), wherever its script
  // stands now.
  repeat.enter = reconnect && (wants_to_enter_ || role_ == Role::kBootstrap);
  if (reconnect && boundary_epoch_ == installed_) {
    repeat.boundary_epoch = boundary_epoch_;
    repeat.boundary_step = boundary_step_;
  }
  if (reconnect) repeat.troubles = troubles_;
  changed_.NotifyAll();
  return repeat;
}

void WorkerRegistration::Promoted(const nlohmann::json& frame) {
  sync::MutexLock lock(&mu_);
  role_ = Role::kJoining;
  TakeIdentity(frame);
  changed_.NotifyAll();
}

bool WorkerRegistration::Dropped() {
  sync::MutexLock lock(&mu_);
  // It was in no view, and says hello to its next sidecar as the standby that it is.
  if (role_ == Role::kStandby) return false;
  LeaveView(std::exchange(role_, Role::kJoining));
  return wants_to_enter_;
}

void WorkerRegistration::Failed(const std::string& message) {
  sync::MutexLock lock(&mu_);
  failure_ = message;
  changed_.NotifyAll();
}

void WorkerRegistration::SidecarSilent(Clock::time_point ends) {
  sync::MutexLock lock(&mu_);
  silence_ends_ = ends;
  changed_.NotifyAll();
}

void WorkerRegistration::SidecarHeard() { SidecarSilent(Clock::time_point::max()); }

WorkerRegistration::Clock::time_point WorkerRegistration::silence_ends() const {
  sync::MutexLock lock(&mu_);
  return silence_ends_;
}

bool WorkerRegistration::RequestEntry() {
  sync::MutexLock lock(&mu_);
  user_waits_ = true;
  if (wants_to_enter_ || given_ != 0) return false;
  wants_to_enter_ = true;
  return true;
}

void WorkerRegistration::EndWait() {
  sync::MutexLock lock(&mu_);
  user_waits_ = false;
}

void WorkerRegistration::Entered() {
  sync::MutexLock lock(&mu_);
  if (role_ == Role::kBootstrap) role_ = Role::kMember;
}

bool WorkerRegistration::Given(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  if (epoch <= forgone_) return false;
  given_ = std::max(given_, epoch);
  return true;
}

void WorkerRegistration::Installed(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  if (given_ < epoch) return;  // dropped meanwhile
  installed_ = epoch;
  wants_to_enter_ = false;
  std::erase_if(troubles_, [&](const Trouble& trouble) { return trouble.epoch < epoch; });
}

void WorkerRegistration::AtBoundary(uint64_t epoch, uint64_t step) {
  sync::MutexLock lock(&mu_);
  boundary_epoch_ = epoch;
  boundary_step_ = step;
}

void WorkerRegistration::InTrouble(const Trouble& trouble) {
  sync::MutexLock lock(&mu_);
  troubles_.push_back(trouble);
}

Role WorkerRegistration::role() const {
  sync::MutexLock lock(&mu_);
  return role_;
}

Status WorkerRegistration::AwaitRole(Clock::time_point deadline, Role* role) {
  sync::MutexLock lock(&mu_);
  while (!settled()) {
    const bool stands_by = role_ == Role::kStandby;
    const auto until = stands_by ? silence_ends_ : deadline;
    // A welcome may have come at the last moment, and have made a standby of this worker.
    if (changed_.WaitUntil(&mu_, until) || settled() || stands_by != (role_ == Role::kStandby))
      continue;
    if (!stands_by) return {RM_ERR_TIMEOUT, "the sidecar has not answered before the deadline"};
    if (Clock::now() >= silence_ends_) return {RM_ERR_UNAVAILABLE, kSidecarGone};
  }
  if (!failure_.empty()) return {RM_ERR_INTERNAL, failure_};
  *role = role_;
  return {};
}

// A user who waits has asked for a view that this worker is not in any more, and so has to ask
// again.
void WorkerRegistration::LeaveView(Role before) {
  forgone_ = std::max({forgone_, given_, installed_});
  given_ = installed_ = boundary_epoch_ = 0;
  wants_to_enter_ = user_waits_ && before != Role::kBootstrap;
  troubles_.clear();
}

void WorkerRegistration::TakeIdentity(const nlohmann::json& frame) {
  slot_ = frame.value("slot", slot_);
  incarnation_ = frame.value("incarnation", incarnation_);
}

}  // namespace ringmaster::elastic
