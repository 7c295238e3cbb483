#include "collectives/elastic/worker.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "collectives/elastic/view_frame.h"

namespace ringmaster::elastic {
namespace {

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
    : options_(options),
      state_(state),
      registration_(options.slot, options.incarnation, options.standby) {}

Worker::~Worker() {
  // Order: the engine stops using the link, the link stops using the engine, then both can go.
  if (engine_) engine_->Close();
  if (sidecar_) sidecar_->Send({{"t", "bye"}, {"reason", "shutdown"}});
  sidecar_.reset();
  engine_.reset();
}

Status Worker::Start(const WorkerOptions& options, engine::StateRegistry* state,
                     Clock::time_point deadline, std::unique_ptr<Worker>* out) {
  std::unique_ptr<Worker> worker(new Worker(options, state));
  Status status =
      options.socket.empty() ? worker->StartAlone() : worker->StartWithSidecar(deadline);
  if (status.ok()) *out = std::move(worker);
  return status;
}

Status Worker::StartAlone() {
  communicators_ = std::make_unique<RealCommunicators>(nullptr);
  engine_ = std::make_unique<engine::Engine>(
      engine::Engine::Options{communicators_.get(), this, state_, true, options_.fusion_bytes, {}});
  engine::View view;
  view.epoch = kFirstEpoch;
  view.reason = "Bootstrap";
  view.peers.resize(1);
  view.self = 0;
  engine_->PostView(view);
  Status status = engine_->AwaitEntered(Clock::time_point::max());
  RememberView();
  return status;
}

Status Worker::StartWithSidecar(Clock::time_point deadline) {
  Endpoint::Options endpoint;
  endpoint.bind = options_.bind + ":0";
  endpoint.job = options_.job;
  endpoint.shared_memory = options_.shared_memory;
  if (Status s = Endpoint::Create(endpoint, &endpoint_); !s.ok()) return s;
  communicators_ = std::make_unique<RealCommunicators>(endpoint_.get());
  // Whether it has state is known with the welcome: joiners are told that they have no state then,
  // before any view.
  engine_ = std::make_unique<engine::Engine>(
      engine::Engine::Options{communicators_.get(), this, state_, true, options_.fusion_bytes, {}});
  sidecar_ = std::make_unique<sidecar_client::SidecarClient>(
      sidecar_client::SidecarClient::Options{options_.socket}, this);

  Role role = Role::kUnknown;
  Status status = registration_.AwaitRole(deadline, &role);
  if (status.code() == RM_ERR_TIMEOUT) {
    const std::string trouble = sidecar_->trouble();
    return {RM_ERR_UNAVAILABLE, "rm_init: " + (trouble.empty() ? status.message() : trouble)};
  }
  if (!status.ok()) return status;
  return role == Role::kBootstrap ? Enter(deadline) : Status();
}

// ---- The user's calls
// -----------------------------------------------------------------------------------------------

Status Worker::Enter(Clock::time_point deadline) {
  if (engine_->entered()) return {};
  SendEnter();
  Status status = engine_->AwaitEntered(deadline);
  if (!status.ok()) return status;
  RememberView();
  return {};
}

void Worker::RememberView() {
  const auto membership = engine_->membership();
  sync::MutexLock lock(&mu_);
  if (last_epoch_ != 0) return;
  last_epoch_ = membership.epoch;
  last_size_ = membership.size;
}

void Worker::SendEnter() {
  if (registration_.RequestEntry() && sidecar_) sidecar_->Send({{"t", "enter"}});
}

bool Worker::joining() const {
  return registration_.role() == Role::kJoining && !engine_->entered();
}

Status Worker::Submit(const std::shared_ptr<engine::Operation>& operation) {
  if (joining() && !engine_->detached()) {
    if (Status s = Enter(Clock::time_point::max()); !s.ok()) return s;
  }
  return engine_->Submit(operation);
}

Status Worker::StepEnd(rm_step_info* info) {
  if (joining() && !engine_->detached()) {
    if (Status s = Enter(Clock::time_point::max()); !s.ok()) return s;
  }
  engine::StepResult result;
  if (Status s = engine_->StepEnd(&result); !s.ok()) return s;
  sync::MutexLock lock(&mu_);
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
  sync::MutexLock lock(&mu_);
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
  if (sidecar_) sidecar_->Send({{"t", "stopped"}, {"epoch", epoch}});
}

void Worker::OnInstalled(uint64_t epoch, double connect_seconds) {
  registration_.Installed(epoch);
  if (sidecar_)
    sidecar_->Send(
        {{"t", "installed"}, {"epoch", epoch}, {"seconds", {{"connect", connect_seconds}}}});
}

void Worker::OnBoundary(uint64_t epoch, uint64_t step) {
  registration_.AtBoundary(epoch, step);
  if (sidecar_) sidecar_->Send({{"t", "boundary"}, {"epoch", epoch}, {"step", step}});
}

void Worker::OnSuspect(uint64_t epoch, int rank, const std::string& why) {
  if (sidecar_)
    sidecar_->Send({{"t", "suspect"}, {"epoch", epoch}, {"rank", rank}, {"reason", why}});
}

void Worker::OnRebuilt(const engine::RebuildTimes& times, uint64_t step, uint64_t resumed) {
  if (!sidecar_) return;
  sidecar_->Send({{"t", "rebuilt"},
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
  if (!sidecar_) return;
  sidecar_->PingSoon();  // with the last step and values: nobody asks later
  sidecar_->Send({{"t", "finished"}, {"epoch", epoch}});
}

void Worker::OnReadyToEnter() { SendEnter(); }

// ---- What the sidecar says
// ------------------------------------------------------------------------------------------

nlohmann::json Worker::Hello() { return registration_.Hello(endpoint_->Address()); }

nlohmann::json Worker::PingFields() {
  const uint64_t epoch = engine_->membership().epoch;
  sync::MutexLock lock(&mu_);
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
    return registration_.Failed(message);
  }
  std::fprintf(stderr, "ringmaster: unknown frame '%s' from the sidecar ignored\n", type.c_str());
}

void Worker::OnWelcome(const nlohmann::json& frame) {
  const Role role = RoleIn(frame);
  if (role == Role::kJoining) {
    // New, or dropped by a wrong suspicion while the connection was down: what it holds counts for
    // nothing now.
    engine_->PostDropped();
  }
  if (role != Role::kMember) engine_->ExpectMembership(ExpectedFrom(frame));
  const Registration::Repeat repeat = registration_.Welcomed(frame);
  if (repeat.enter) sidecar_->Send({{"t", "enter"}});
  if (repeat.boundary_epoch != 0 && repeat.boundary_step == engine_->step()) {
    sidecar_->Send(
        {{"t", "boundary"}, {"epoch", repeat.boundary_epoch}, {"step", repeat.boundary_step}});
  }
}

void Worker::OnPromoted(const nlohmann::json& frame) {
  engine_->PostDropped();
  engine_->ExpectMembership(ExpectedFrom(frame));
  registration_.Promoted(frame);
}

void Worker::OnView(const nlohmann::json& frame) {
  engine::View view;
  Status status = ParseView(frame.at("view"), frame.value("self", -1), &view);
  if (!status.ok()) {
    return engine_->PostEnd(
        {RM_ERR_INTERNAL, "the sidecar sent a view that can't be read: " + status.message()});
  }
  if (view.self < 0) registration_.Dropped();
  engine_->PostView(std::move(view));
}

void Worker::OnFenced(const std::string& why) { engine_->PostEnd({RM_ERR_UNAVAILABLE, why}); }

}  // namespace ringmaster::elastic
