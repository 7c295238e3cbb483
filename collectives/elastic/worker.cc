#include "collectives/elastic/worker.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "collectives/link/view_json.h"

namespace ringmaster::elastic {
namespace {

constexpr int kLinkVersion = 1;
constexpr uint64_t kFirstEpoch = uint64_t{1} << 40 | 1;  // 1.1, as a job's first view

class RealCommunicators : public engine::CommunicatorFactory {
 public:
  explicit RealCommunicators(Endpoint* endpoint) : endpoint_(endpoint) {}
  Status Create(const CommunicatorOptions& options, std::unique_ptr<Communicator>* out) override {
    return Communicator::Create(endpoint_, options, out);
  }

 private:
  Endpoint* const endpoint_;
};

engine::Membership ExpectedFrom(const nlohmann::json& frame) {
  engine::Membership expected;
  expected.rank = frame.value("rank", 0);
  expected.size = frame.value("size", 1);
  expected.local_rank = frame.value("localRank", 0);
  expected.local_size = frame.value("localSize", 1);
  expected.cross_size = 1;
  return expected;
}

}  // namespace

Worker::Worker(const WorkerOptions& options, engine::StateRegistry* state)
    : options_(options), state_(state), slot_(options.slot), incarnation_(options.incarnation) {}

Worker::~Worker() {
  // Order: the engine stops using the link, the link stops using the engine, then both can go.
  if (engine_) engine_->Close();
  if (link_) link_->Send({{"t", "bye"}, {"reason", "shutdown"}});
  link_.reset();
  engine_.reset();
}

Status Worker::Start(const WorkerOptions& options, engine::StateRegistry* state,
                     Clock::time_point deadline, std::unique_ptr<Worker>* out) {
  std::unique_ptr<Worker> worker(new Worker(options, state));
  Status status = options.socket.empty() ? worker->StartAlone() : worker->StartLinked(deadline);
  if (status.ok()) *out = std::move(worker);
  return status;
}

Status Worker::StartAlone() {
  engine_ = std::make_unique<engine::Engine>(
      engine::Engine::Options{nullptr, this, state_, true, options_.fusion_bytes, {}});
  engine::View view;
  view.epoch = kFirstEpoch;
  view.reason = "Bootstrap";
  view.peers.resize(1);
  view.self = 0;
  role_ = Role::kMember;
  engine_->PostView(view);
  Status status = engine_->AwaitEntered(Clock::time_point::max());
  last_epoch_ = kFirstEpoch;
  last_size_ = 1;
  return status;
}

Status Worker::StartLinked(Clock::time_point deadline) {
  Endpoint::Options endpoint;
  endpoint.bind = options_.bind + ":0";
  endpoint.job = options_.job;
  endpoint.shared_memory = options_.shared_memory;
  if (Status s = Endpoint::Create(endpoint, &endpoint_); !s.ok()) return s;
  communicators_ = std::make_unique<RealCommunicators>(endpoint_.get());
  // Whether it has state is known with the welcome: joiners are told to be void then, before any
  // view.
  engine_ = std::make_unique<engine::Engine>(
      engine::Engine::Options{communicators_.get(), this, state_, true, options_.fusion_bytes, {}});
  link_ = std::make_unique<link::WorkerLink>(link::WorkerLink::Options{options_.socket}, this);

  std::unique_lock lock(mu_);
  const auto settled = [this] {
    return !failure_.empty() || (role_ != Role::kUnknown && role_ != Role::kStandby);
  };
  if (!changed_.wait_until(lock, deadline, settled)) {
    const std::string trouble = link_->trouble();
    return {RM_ERR_UNAVAILABLE,
            "rm_init: " +
                (trouble.empty() ? "the sidecar has not answered before the deadline" : trouble)};
  }
  if (!failure_.empty()) return {RM_ERR_INTERNAL, failure_};
  const bool bootstrap = role_ == Role::kBootstrap;
  lock.unlock();
  if (!bootstrap) return {};
  if (Status s = Enter(deadline); !s.ok()) return s;
  const auto membership = engine_->membership();
  lock.lock();
  last_epoch_ = membership.epoch;
  last_size_ = membership.size;
  return {};
}

// ---- The user's calls
// -----------------------------------------------------------------------------------------------

Status Worker::Enter(Clock::time_point deadline) {
  if (engine_->entered()) return {};
  SendEnter();
  Status status = engine_->AwaitEntered(deadline);
  if (!status.ok()) return status;
  const auto membership = engine_->membership();
  std::lock_guard lock(mu_);
  if (last_epoch_ == 0) {
    last_epoch_ = membership.epoch;
    last_size_ = membership.size;
  }
  return {};
}

void Worker::SendEnter() {
  {
    std::lock_guard lock(mu_);
    if (wants_to_enter_) return;
    wants_to_enter_ = true;
  }
  if (link_) link_->Send({{"t", "enter"}});
}

bool Worker::joining() const {
  std::lock_guard lock(mu_);
  return role_ == Role::kJoining && !engine_->entered();
}

Status Worker::Submit(const std::shared_ptr<engine::Operation>& operation) {
  if (joining() && !engine_->is_void()) {
    if (Status s = Enter(Clock::time_point::max()); !s.ok()) return s;
  }
  return engine_->Submit(operation);
}

Status Worker::StepEnd(rm_step_info* info) {
  if (joining() && !engine_->is_void()) {
    if (Status s = Enter(Clock::time_point::max()); !s.ok()) return s;
  }
  engine::StepResult result;
  if (Status s = engine_->StepEnd(&result); !s.ok()) return s;
  std::lock_guard lock(mu_);
  if (info != nullptr) {
    *info = {result.epoch,       result.step, last_size_, result.size, result.epoch != last_epoch_,
             result.state_synced};
  }
  last_epoch_ = result.epoch;
  last_size_ = result.size;
  return {};
}

Status Worker::Shutdown(Clock::time_point deadline) {
  // A worker that is in no view has nothing to agree on with anybody.
  if (!engine_->entered()) return {};
  return engine_->Shutdown(deadline);
}

void Worker::Report(const std::string& name, double value) {
  std::lock_guard lock(mu_);
  values_[name] = value;
}

std::string Worker::LastRebuild() const {
  const engine::RebuildTimes times = engine_->last_rebuild();
  if (times.epoch == 0) return "";
  // Detection and decision are the sidecars' part: they are in its /status and in the job's.
  return nlohmann::json({{"epoch", times.epoch},
                         {"reason", times.reason},
                         {"seconds",
                          {{"detect", 0.0},
                           {"decide", 0.0},
                           {"stop", times.stop},
                           {"connect", times.connect},
                           {"redo", times.redo},
                           {"resume", times.resume}}}})
      .dump();
}

// ---- What the engine says
// -------------------------------------------------------------------------------------------

void Worker::OnStopped(uint64_t epoch) {
  if (link_) link_->Send({{"t", "stopped"}, {"epoch", epoch}});
}

void Worker::OnInstalled(uint64_t epoch, double connect_seconds) {
  {
    std::lock_guard lock(mu_);
    installed_ = epoch;
    wants_to_enter_ = false;
  }
  if (link_)
    link_->Send(
        {{"t", "installed"}, {"epoch", epoch}, {"seconds", {{"connect", connect_seconds}}}});
}

void Worker::OnBoundary(uint64_t epoch, uint64_t step) {
  {
    std::lock_guard lock(mu_);
    boundary_epoch_ = epoch;
    boundary_step_ = step;
  }
  if (link_) link_->Send({{"t", "boundary"}, {"epoch", epoch}, {"step", step}});
}

void Worker::OnSuspect(uint64_t epoch, int rank, const std::string& why) {
  if (link_) link_->Send({{"t", "suspect"}, {"epoch", epoch}, {"rank", rank}, {"reason", why}});
}

void Worker::OnRebuilt(const engine::RebuildTimes& times, uint64_t step, uint64_t resumed) {
  if (!link_) return;
  link_->Send({{"t", "rebuilt"},
               {"epoch", times.epoch},
               {"step", step},
               {"resumed", resumed},
               {"seconds",
                {{"stop", times.stop},
                 {"connect", times.connect},
                 {"redo", times.redo},
                 {"resume", times.resume}}}});
}

void Worker::OnFinished(uint64_t epoch) {
  if (!link_) return;
  link_->PingSoon();  // with the last step and values: nobody asks later
  link_->Send({{"t", "finished"}, {"epoch", epoch}});
}

void Worker::OnReadyToEnter() { SendEnter(); }

// ---- What the sidecar says
// ------------------------------------------------------------------------------------------

nlohmann::json Worker::Hello() {
  const PeerEndpoint address = endpoint_->Address();
  std::lock_guard lock(mu_);
  return {{"t", "hello"},
          {"version", kLinkVersion},
          {"role", "worker"},
          {"slot", slot_},
          {"incarnation", incarnation_},
          {"pid", getpid()},
          {"tcp", address.tcp},
          {"shm", address.shm},
          {"epoch", installed_},
          {"standby", options_.standby && (role_ == Role::kUnknown || role_ == Role::kStandby)}};
}

nlohmann::json Worker::PingFields() {
  const uint64_t epoch = engine_->membership().epoch;
  std::lock_guard lock(mu_);
  return {{"epoch", epoch},
          {"step", engine_->step()},
          {"ran", engine_->ran_epoch()},
          {"busy", engine_->busy()},
          {"values", values_}};
}

void Worker::OnFrame(const nlohmann::json& frame) {
  const std::string type = frame.at("t");
  if (type == "welcome") return OnWelcome(frame);
  if (type == "promoted") return OnPromoted(frame);
  if (type == "view") return OnView(frame);
  if (type == "stop") return engine_->PostStop(frame.at("epoch").get<uint64_t>());
  if (type == "arm") return engine_->PostArmed(frame.at("epoch").get<uint64_t>(), true);
  if (type == "left") {
    return engine_->PostEnd(
        {RM_ERR_LEFT, "this worker has left the job: " + frame.value("reason", "drained")});
  }
  if (type == "error") {
    const std::string message = frame.value("message", "the sidecar gave up");
    engine_->PostEnd({RM_ERR_INTERNAL, message});
    std::lock_guard lock(mu_);
    failure_ = message;
    changed_.notify_all();
    return;
  }
  std::fprintf(stderr, "ringmaster: unknown frame '%s' from the sidecar ignored\n", type.c_str());
}

void Worker::OnWelcome(const nlohmann::json& frame) {
  const std::string state = frame.value("state", "");
  const Role role = state == "bootstrap" ? Role::kBootstrap
                    : state == "standby" ? Role::kStandby
                    : state == "member"  ? Role::kMember
                                         : Role::kJoining;
  if (role == Role::kJoining) {
    // New, or dropped by a wrong suspicion while the link was down: what it holds counts for
    // nothing now.
    engine_->PostDropped();
  }
  if (role != Role::kMember) engine_->ExpectMembership(ExpectedFrom(frame));
  bool enter_again = false;
  uint64_t boundary = 0, step = 0;
  {
    std::lock_guard lock(mu_);
    const bool reconnect = role_ != Role::kUnknown;
    if (!(role == Role::kMember && reconnect))
      role_ = role == Role::kMember ? Role::kJoining : role;
    slot_ = frame.value("slot", slot_);
    incarnation_ = frame.value("incarnation", incarnation_);
    enter_again = reconnect && wants_to_enter_;
    if (reconnect && boundary_epoch_ == installed_) {
      boundary = boundary_epoch_;
      step = boundary_step_;
    }
    changed_.notify_all();
  }
  // Frames that a sidecar which has just started again may have lost; it knows what is old.
  if (enter_again) link_->Send({{"t", "enter"}});
  if (boundary != 0 && step == engine_->step())
    link_->Send({{"t", "boundary"}, {"epoch", boundary}, {"step", step}});
}

void Worker::OnPromoted(const nlohmann::json& frame) {
  engine_->PostDropped();
  engine_->ExpectMembership(ExpectedFrom(frame));
  std::lock_guard lock(mu_);
  role_ = Role::kJoining;
  slot_ = frame.value("slot", slot_);
  incarnation_ = frame.value("incarnation", incarnation_);
  changed_.notify_all();
}

void Worker::OnView(const nlohmann::json& frame) {
  engine::View view;
  Status status = link::ParseView(frame.at("view"), frame.value("self", -1), &view);
  if (!status.ok()) {
    return engine_->PostEnd(
        {RM_ERR_INTERNAL, "the sidecar sent a view that can't be read: " + status.message()});
  }
  if (view.self < 0) {
    std::lock_guard lock(mu_);
    role_ = Role::kJoining;
  }
  engine_->PostView(std::move(view));
}

void Worker::OnFenced(const std::string& why) { engine_->PostEnd({RM_ERR_UNAVAILABLE, why}); }

}  // namespace ringmaster::elastic
