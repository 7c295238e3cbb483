#include "collectives/elastic/worker.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "collectives/elastic/view_frame.h"
#include "common/ring_key/ring_key.h"

namespace ringmaster::elastic {
namespace {

constexpr std::chrono::seconds kFencedPatience{30};
constexpr std::chrono::seconds kHearingPatience{10};     // longer than a sidecar's restart
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
  engine_ = std::make_unique<engine::Engine>(engine::Engine::Options{communicators_.get(),
                                                                     this,
                                                                     state_,
                                                                     true,
                                                                     options_.fusion_bytes,
                                                                     {},
                                                                     options_.stall,
                                                                     options_.timeline});
  engine::View view;
  view.epoch = kFirstEpoch;
  view.reason = "Bootstrap";
  view.peers.resize(1);
  view.workers = {"this process"};
  view.self = 0;
  engine_->PostView(view);
  Status status = engine_->AwaitEntered(Clock::time_point::max());
  Entered();
  return status;
}

Status Worker::StartWithSidecar(Clock::time_point deadline) {
  Endpoint::Options endpoint;
  endpoint.bind = options_.bind + ":0";
  endpoint.job = options_.job;
  endpoint.shared_memory = options_.shared_memory;
  endpoint.encrypt = options_.encrypt;
  if (Status s = Endpoint::Create(endpoint, &endpoint_); !s.ok()) return s;
  communicators_ = std::make_unique<RealCommunicators>(endpoint_.get());
  // Whether it has state is known with the welcome: joiners are told that they have no state then,
  // before any view.
  engine_ = std::make_unique<engine::Engine>(engine::Engine::Options{communicators_.get(),
                                                                     this,
                                                                     state_,
                                                                     true,
                                                                     options_.fusion_bytes,
                                                                     {},
                                                                     options_.stall,
                                                                     options_.timeline});
  sidecar_ = std::make_unique<sidecar_client::SidecarClient>(
      sidecar_client::SidecarClient::Options{options_.socket}, this);
  sidecar_->Start();  // its thread calls us, and we use it: not before it stands there

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
  RequestEntry();
  // Nobody lets in a worker without state, unless the job begins anew: what it waits for is the
  // end.
  Status status = AwaitEntered(stateless() ? Clock::time_point::max() : deadline);
  registration_.EndWait();
  if (!status.ok()) return status;
  Entered();
  return {};
}

Status Worker::AwaitEntered(Clock::time_point deadline) {
  if (!fenced_) return engine_->AwaitEntered(deadline);
  // A sidecar that was away for long may still count on this worker in the view that it has given
  // up: then nobody lets it in, and only another process can take its place.
  Status status = engine_->AwaitEntered(std::min(deadline, Clock::now() + kFencedPatience));
  if (status.code() != RM_ERR_TIMEOUT) return status;
  if (fenced_) return {RM_ERR_DROPPED, "fenced, and not let in again since: start again"};
  return engine_->AwaitEntered(deadline);
}

void Worker::Entered() {
  const auto membership = engine_->membership();
  sync::MutexLock lock(&mu_);
  last_epoch_ = membership.epoch;
  last_size_ = membership.size;
  lock.Unlock();
  std::call_once(timeline_begun_, [this] {
    if (options_.timeline_file.empty()) return;
    // Training is worth more than its picture.
    if (Status s = StartTimeline(options_.timeline_file); !s.ok())
      std::fprintf(stderr, "ringmaster: HOROVOD_TIMELINE: %s\n", s.message().c_str());
  });
}

Status Worker::StartTimeline(const std::string& path) {
  const int rank = engine_->membership().rank;
  if (rank < 0 || options_.timeline == nullptr)
    return {RM_ERR_INVALID,
            "this worker is in no view yet: it has no rank to write a timeline for"};
  // Ranks move with views: the file of a rank may be another worker's that had it before.
  const bool later = engine_->membership().epoch != kFirstEpoch;
  return options_.timeline->Start(path, later, {rank, engine_->WorkerAt(rank), options_.job});
}

bool Worker::stateless() const { return registration_.role() == Role::kJoining && state_->empty(); }

void Worker::RequestEntry() {
  if (!registration_.RequestEntry() || !sidecar_) return;
  if (stateless()) {
    std::fprintf(
        stderr,
        "ringmaster: the job trains already and this worker's script registers no state that "
        "it could get from the others: they go on without it. @elastic.run with a TorchState "
        "(or register_state, rm_state_register) lets it join\n");
  }
  SendEnter();
}

void Worker::SendEnter() {
  nlohmann::json enter = {{"t", "enter"}};
  if (stateless()) enter["state"] = false;
  sidecar_->Send(enter);
}

bool Worker::joining() const {
  return registration_.role() == Role::kJoining && !engine_->entered() && !engine_->dropped();
}

Status Worker::EnsureEntered() {
  if (!joining()) return {};
  return Enter(Clock::time_point::max());
}

Status Worker::Submit(std::span<const std::shared_ptr<engine::Operation>> operations) {
  if (Status s = EnsureEntered(); !s.ok()) return s;
  return engine_->Submit(operations);
}

Status Worker::StepEnd(rm_step_info* info) {
  if (Status s = EnsureEntered(); !s.ok()) return s;
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
  if (engine_->dropped()) return {RM_ERR_DROPPED, "the others go on without this worker"};
  // A worker that is in no view has nothing to agree on with anybody.
  if (!engine_->entered()) return {};
  Status status = engine_->Shutdown(deadline);
  if (status.ok()) AwaitFinishHeard(deadline);
  return status;
}

// A pod whose worker ends before its sidecar knows that the job is over counts as failed, and the
// sidecar may just be starting again.
void Worker::AwaitFinishHeard(Clock::time_point deadline) {
  if (!sidecar_ || sidecar_->AwaitHeard(std::min(deadline, Clock::now() + kHearingPatience)))
    return;
  std::fprintf(stderr,
               "ringmaster: the job is over, and the sidecar of this pod does not answer: it may "
               "take this end for a failure\n");
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
  Tell({epoch, rank, why, /*broken=*/false});
}

void Worker::OnBroken(uint64_t epoch, int rank, const std::string& why) {
  if (rank >= 0) std::fprintf(stderr, "ringmaster: %s: waits for new connections\n", why.c_str());
  Tell({epoch, rank, why, /*broken=*/true});
}

void Worker::Tell(const Registration::Trouble& trouble) {
  registration_.InTrouble(trouble);
  SendTrouble(trouble);
}

void Worker::SendTrouble(const Registration::Trouble& trouble) {
  if (!sidecar_) return;
  sidecar_->Send({{"t", trouble.broken ? "broken" : "suspect"},
                  {"epoch", trouble.epoch},
                  {"rank", trouble.rank},
                  {"reason", trouble.why}});
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
  registration_.Finished(epoch);
  if (!sidecar_) return;
  sidecar_->PingSoon();  // with the last step and values: nobody asks later
  sidecar_->Send({{"t", "finished"}, {"epoch", epoch}});
}

void Worker::OnStalls(const std::vector<job::Stall>& stalls, bool came) {
  const std::vector<std::string> workers = engine_->workers();
  std::vector<job::Stall> before;
  {
    sync::MutexLock lock(&mu_);
    before = std::exchange(stalls_, stalls);
    stalls_at_ = Clock::now();
  }
  for (job::Stall stall : stalls) {
    for (int rank : stall.missing) stall.pods.push_back(workers.at(static_cast<size_t>(rank)));
    std::fprintf(stderr, "ringmaster: waits for %lld s: %s\n",
                 static_cast<long long>(stall.waited_ms / 1000), job::Describe(stall).c_str());
  }
  if (stalls.empty() && !before.empty() && came) {
    std::fprintf(stderr, "ringmaster: the wait for '%s' is over\n", before.front().tensor.c_str());
  }
}

std::vector<job::Stall> Worker::StallsNow() {
  sync::MutexLock lock(&mu_);
  std::vector<job::Stall> stalls = stalls_;
  const auto since = (Clock::now() - stalls_at_) / std::chrono::milliseconds(1);
  for (job::Stall& stall : stalls) stall.waited_ms += since;
  return stalls;
}

// ---- What the sidecar says
// ------------------------------------------------------------------------------------------

nlohmann::json Worker::Hello() { return registration_.Hello(endpoint_->Address()); }

nlohmann::json Worker::PingFields() {
  const uint64_t epoch = engine_->membership().epoch;
  const std::vector<job::Stall> stalls = StallsNow();
  sync::MutexLock lock(&mu_);
  nlohmann::json fields = {{"epoch", epoch},
                           {"step", engine_->step()},
                           {"ran", engine_->ran_epoch()},
                           {"busy", engine_->busy()},
                           {"values", values_}};
  if (!stalls.empty()) fields["stalls"] = job::ToJson(stalls);
  return fields;
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
  if (!TakeRingKey(frame)) return;
  const Role role = RoleIn(frame);
  if (role == Role::kJoining) {
    // New, or dropped by a wrong suspicion while the connection was down: what it holds counts for
    // nothing now.
    fenced_ = false;
    engine_->PostDropped("the sidecar calls this worker a joiner: the job goes on without it");
  }
  if (role != Role::kMember) engine_->ExpectMembership(ExpectedFrom(frame));
  const Registration::Repeat repeat = registration_.Welcomed(frame);
  if (repeat.enter) SendEnter();
  for (const auto& trouble : repeat.troubles) SendTrouble(trouble);
  if (repeat.finished_epoch != 0)
    sidecar_->Send({{"t", "finished"}, {"epoch", repeat.finished_epoch}});
  if (repeat.boundary_epoch != 0 && repeat.boundary_step == engine_->step()) {
    sidecar_->Send(
        {{"t", "boundary"}, {"epoch", repeat.boundary_epoch}, {"step", repeat.boundary_step}});
  }
}

// A sidecar without one leaves the one that an earlier welcome brought.
bool Worker::TakeRingKey(const nlohmann::json& frame) {
  const auto text = frame.find("ringKey");
  if (text == frame.end()) return true;
  const auto key = text->is_string() ? ring_key::Decode(text->get_ref<const std::string&>())
                                     : std::optional<std::string>();
  const Status taken =
      key ? endpoint_->SetKey(*key) : Status(RM_ERR_INTERNAL, "the sidecar's ringKey is no key");
  if (taken.ok()) return true;
  engine_->PostEnd(taken);
  registration_.Failed(taken.message());
  return false;
}

void Worker::OnPromoted(const nlohmann::json& frame) {
  engine_->PostDropped("promoted");
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
  fenced_ = false;
  const bool enter_again = view.self < 0 && registration_.Dropped();
  if (view.self >= 0) registration_.Given(view.epoch);
  engine_->PostView(std::move(view));
  if (enter_again) SendEnter();
}

void Worker::OnFenced(const std::string& why) {
  fenced_ = true;
  engine_->PostDropped(why);
  if (registration_.Dropped()) SendEnter();
}

}  // namespace ringmaster::elastic
