#include "operator/controllers/job_controller.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "operator/controllers/metrics.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

constexpr char kManager[] = "ringmaster.dev/operator";

std::string KeyOf(const Json& object) {
  return MetaField(object, "namespace") + "/" + MetaField(object, "name");
}

// The job of a pod: what its controller reference or, failing that, its label says.
std::string JobKeyOf(const Json& pod) {
  const auto labels = pod.value("/metadata/labels"_json_pointer, Json::object());
  return MetaField(pod, "namespace") + "/" + labels.value(planner::kJobNameLabel, "");
}

bool HasGated(const planner::Snapshot& snapshot) {
  return std::any_of(snapshot.pods.begin(), snapshot.pods.end(),
                     [](const planner::PodFacts& pod) { return pod.gated && !pod.ended(); });
}

runtime::ObjectReference ReferenceTo(const api::HorovodJob& job) {
  return {api::kApiVersion, api::kKind, job.ns, job.name, job.uid, job.resource_version};
}

}  // namespace

JobController::JobController(std::shared_ptr<kube::KubeApi> api, SidecarHub* hub,
                             RecordStore* records, JobControllerOptions options)
    : api_(std::move(api)),
      hub_(hub),
      options_(std::move(options)),
      records_(records),
      events_(api_, options_.instance),
      queue_(options_.queue),
      jobs_(api_, kube::HorovodJobs(), {.ns = options_.watch_namespace},
            [this](const Json& object, bool) { queue_.Add(KeyOf(object)); }),
      pods_(api_, kube::Pods(),
            {.ns = options_.watch_namespace,
             .label_selector = fmt::format("{}=worker", planner::kJobRoleLabel)},
            [this](const Json& object, bool) { queue_.Add(JobKeyOf(object)); }),
      room_(options_.gang_admission ? std::make_unique<Room>(api_) : nullptr) {}

JobController::~JobController() { Stop(); }

kube::Result<void> JobController::Start(std::stop_token stop) {
  hub_->SetChangeHandler([this](const std::string& key, std::chrono::milliseconds delay) {
    queue_.AddAfter(key, delay);
  });
  jobs_.Start();
  pods_.Start();
  if (room_ != nullptr) room_->Start();
  if (auto synced = AwaitCaches(std::move(stop)); !synced) {
    Stop();
    return synced;
  }
  for (int i = 0; i < options_.workers; ++i) {
    threads_.emplace_back([this](std::stop_token token) { Work(token); });
  }
  return {};
}

kube::Result<void> JobController::AwaitCaches(std::stop_token stop) {
  const auto fail = [](std::string why) {
    return tl::unexpected(kube::Error{.code = ErrorCode::kUnavailable, .message = std::move(why)});
  };
  const auto end = std::chrono::steady_clock::now() + options_.sync_timeout;
  for (runtime::Informer* informer : Caches()) {
    while (!informer->WaitForSync(std::chrono::milliseconds(100))) {
      if (stop.stop_requested()) return fail("stopped before the caches were there");
      if (std::chrono::steady_clock::now() < end) continue;
      return fail(fmt::format("the API server did not answer within {} s: {}",
                              options_.sync_timeout.count() / 1000, informer->LastError()));
    }
  }
  return {};
}

std::vector<runtime::Informer*> JobController::Caches() {
  std::vector<runtime::Informer*> caches = {&jobs_, &pods_};
  if (room_ != nullptr) {
    for (runtime::Informer* cache : room_->Caches()) caches.push_back(cache);
  }
  return caches;
}

JobController::State JobController::state() const {
  return {.caches = {jobs_.state(), pods_.state()}, .queue = queue_.stats()};
}

void JobController::Stop() {
  hub_->SetChangeHandler(nullptr);
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();  // joins
  jobs_.Stop();
  pods_.Stop();
  if (room_ != nullptr) room_->Stop();
}

void JobController::Work(std::stop_token stop) {
  while (const auto key = queue_.Take(stop)) {
    const auto began = std::chrono::steady_clock::now();
    const bool ok = Reconcile(*key);
    if (ok) {
      queue_.Forget(*key);
    } else {
      queue_.AddBackoff(*key);
    }
    queue_.Done(*key);
    if (options_.metrics == nullptr) continue;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    options_.metrics->Reconciled(ok, took.count());
  }
}

bool JobController::Reconcile(const std::string& key) {
  const std::size_t slash = key.find('/');
  const auto object = jobs_.Get(key.substr(0, slash), key.substr(slash + 1));
  if (object == nullptr) {
    hub_->Forget(key);
    if (options_.metrics != nullptr) {
      options_.metrics->Forget(key.substr(0, slash), key.substr(slash + 1));
    }
    return true;
  }
  hub_->Forget(key, MetaField(*object, "uid"));  // a former job of this name
  const auto job = api::ParseHorovodJob(*object);
  if (!job) return RefuseJob(*object, api::ToString(job.error()));
  const std::string& manager = job->spec.run_policy.managed_by;
  if (!manager.empty() && manager != kManager) return true;
  if (job->deleting) {
    records_->Forget(job->uid);
    return true;  // its pods are the garbage collector's
  }
  return ReconcileJob(*job, *object);
}

bool JobController::ReconcileJob(const api::HorovodJob& job, const Json& object) {
  auto snapshot = Observe(job);
  if (!snapshot) {
    spdlog::warn("job {}: {}", job.Key(), snapshot.error().message);
    return false;
  }
  std::unique_lock<std::mutex> turn;  // until the pods that were admitted count as such
  if (room_ != nullptr && HasGated(*snapshot)) {
    turn = room_->Turn();
    snapshot->room = RoomFor(*snapshot);
  }
  const planner::Decision decision = planner::Plan(*snapshot);
  const bool applied = Apply(*snapshot, decision);
  if (turn.owns_lock()) turn.unlock();
  if (decision.delete_job) return applied;
  if (!(decision.status == job.status) && !WriteStatus(job, object, decision.status)) return false;
  if (options_.metrics != nullptr && decision.status.epoch > job.status.epoch) {
    options_.metrics->Resized(job.ns, job.name, job.status.world_size, decision.status.world_size);
  }
  hub_->ExitsCounted(job.uid, decision.exits_counted);
  for (const planner::Event& event : decision.events) Say(job, event);
  std::set<std::string> pod_uids;
  for (const planner::PodFacts& pod : snapshot->pods) pod_uids.insert(pod.uid);
  hub_->Retain(job.uid, pod_uids);
  if (decision.look_again) queue_.AddAfter(job.Key(), *decision.look_again);
  return applied;
}

kube::Result<planner::Snapshot> JobController::Observe(const api::HorovodJob& job) {
  planner::Snapshot snapshot;
  snapshot.job = job;
  snapshot.now = std::chrono::system_clock::now();
  // Sidecars before pods: whoever attends has a pod that is at least as old.
  SidecarHub::JobFacts facts = hub_->Facts(job.uid);
  snapshot.sidecars = std::move(facts.sidecars);
  snapshot.exits = std::move(facts.exits);
  snapshot.rebuilds = std::move(facts.rebuilds);
  snapshot.view = facts.view;
  snapshot.pods = ReadPods(job, pods_.InNamespace(job.ns));
  const auto recorded = records_->Newest({job.ns, job.name, job.uid});
  if (!recorded) return tl::unexpected(recorded.error());
  if (*recorded) {
    const membership::RecordState& record = **recorded;
    snapshot.lineage =
        std::max(record.lineage, membership::EpochLineage(membership::EpochOf(record.view)));
    if (membership::EpochOf(record.view) > membership::EpochOf(snapshot.view)) {
      snapshot.view = record.view;
    }
  }
  snapshot.view_since = hub_->FirstSeen(job.Key(), job.uid, membership::EpochOf(snapshot.view));
  return snapshot;
}

std::vector<planner::PodFacts> JobController::ReadPods(
    const api::HorovodJob& job, const std::vector<std::shared_ptr<const Json>>& pods) const {
  std::vector<planner::PodFacts> facts;
  for (const auto& pod : pods) {
    if (JobKeyOf(*pod) != job.Key() || !IsOwnedBy(*pod, job.uid)) continue;
    planner::PodFacts read = ReadPod(*pod);
    if (read.index >= 0) facts.push_back(std::move(read));
  }
  std::sort(facts.begin(), facts.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  return facts;
}

bool JobController::Apply(const planner::Snapshot& snapshot, const planner::Decision& decision) {
  const api::HorovodJob& job = snapshot.job;
  bool ok = true;
  if (decision.found != nullptr) ok = ApplyFound(snapshot, decision.found);
  if (decision.arbitrate != 0) ok = ApplyArbitrate(job, decision.arbitrate) && ok;
  for (const auto& create : decision.creates) ok = CreatePod(job, create) && ok;
  for (const auto& pod : decision.admits) ok = Admit(job, pod) && ok;
  for (const auto& drain : decision.drains) {
    spdlog::info("job {}: drain {}: {}", job.Key(), drain.name, drain.reason);
    Say(job, {false, "Draining", fmt::format("pod {} leaves: {}", drain.name, drain.reason),
              drain.name});
    ok = Annotate(job, drain.name,
                  {{planner::kDrainAnnotation, drain.reason},
                   {planner::kDrainSinceAnnotation, api::FormatTime(snapshot.now)}}) &&
         ok;
  }
  for (const auto& note : decision.annotations) {
    ok = Annotate(job, note.name, {{note.key, note.value}}) && ok;
  }
  for (const auto& tell : decision.tells) hub_->Tell(job.uid, tell.pod_uid, tell.notice);
  for (const auto& pod : decision.deletes) ok = DeletePod(job, pod) && ok;
  if (decision.delete_job) {
    const auto deleted = api_->Delete(kube::HorovodJobs(), job.ns, job.name,
                                      {.propagation = "Background", .uid = job.uid});
    ok = ok && (deleted || deleted.error().code == ErrorCode::kNotFound);
  }
  return ok;
}

bool JobController::ApplyFound(const planner::Snapshot& snapshot, const membership::ViewPtr& view) {
  const api::HorovodJob& job = snapshot.job;
  // The first view of all needs no reports: nobody can be in an earlier one.
  if (snapshot.view != nullptr && !StillSo(snapshot, view)) return false;
  const auto found = records_->Found(job, view);
  // With the view in the snapshot the sidecars are told.
  queue_.Add(job.Key());
  if (found) {
    spdlog::info("job {}: first view {}", job.Key(), membership::Describe(*view));
    return true;
  }
  if (found.error().code == ErrorCode::kAlreadyExists) return true;
  spdlog::warn("job {}: no record: {}", job.Key(), found.error().message);
  return false;
}

// Whether the pods as the API server lists them now, after the last report, allow the same: the
// cache may lack one that has got into a view meanwhile.
bool JobController::StillSo(const planner::Snapshot& snapshot, const membership::ViewPtr& view) {
  const api::HorovodJob& job = snapshot.job;
  const auto listed =
      api_->ListAll(kube::Pods(), job.ns,
                    {.label_selector = fmt::format("{}={}", planner::kJobNameLabel, job.name)});
  if (!listed) {
    spdlog::warn("job {}: its pods can't be listed: {}", job.Key(), listed.error().message);
    return false;
  }
  std::vector<std::shared_ptr<const Json>> pods;
  for (const Json& pod : listed->items) pods.push_back(std::make_shared<const Json>(pod));
  planner::Snapshot fresh = snapshot;
  fresh.pods = ReadPods(job, pods);
  const planner::Arbitration now = planner::JudgeArbitration(fresh);
  if (!now.waits.empty()) return false;
  return now.view != nullptr ? *now.view == *view
                             : now.nobody_holds && view->reason == membership::Reason::kFounding;
}

bool JobController::ApplyArbitrate(const api::HorovodJob& job, std::uint64_t lineage) {
  const auto begun = records_->Arbitrate({job.ns, job.name, job.uid}, lineage);
  queue_.Add(job.Key());
  if (begun) {
    spdlog::warn("job {}: no view can train any more, lineage {} begins", job.Key(), lineage);
    return true;
  }
  if (begun.error().code == ErrorCode::kAlreadyExists) return true;
  spdlog::warn("job {}: lineage {} not begun: {}", job.Key(), lineage, begun.error().message);
  return false;
}

bool JobController::CreatePod(const api::HorovodJob& job, const planner::PodCreate& create) {
  const Json pod = BuildPod(job, create.index, options_.pod);
  const std::string name = planner::PodName(job.name, create.index);
  const auto created = api_->Create(kube::Pods(), job.ns, pod);
  if (created) {
    pods_.Observe(*created);
    Say(job, {false, "PodCreated", fmt::format("pod {} created {}", name, create.reason), ""});
    return true;
  }
  if (created.error().code == ErrorCode::kAlreadyExists) {
    // Ours, and the cache is behind: it comes with the next watch event. Or somebody else's: then
    // it stays in the way.
    const auto other = api_->Get(kube::Pods(), job.ns, name);
    if (other && IsOwnedBy(*other, job.uid)) {
      pods_.Observe(*other);
      queue_.Add(job.Key());
      return true;
    }
  }
  spdlog::warn("job {}: pod {} not created: {}", job.Key(), name, created.error().message);
  Say(job, {true, "FailedCreate",
            fmt::format("pod {} could not be created: {}", name, created.error().message), ""});
  return false;
}

std::optional<planner::RoomFacts> JobController::RoomFor(const planner::Snapshot& snapshot) {
  std::vector<Json> gated;
  for (const planner::PodFacts& pod : snapshot.pods) {
    if (!pod.gated || pod.leaving() || pod.ended()) continue;
    if (const auto object = pods_.Get(snapshot.job.ns, pod.name)) gated.push_back(*object);
  }
  const scheduler::GangFit fit = room_->FitTogether(gated);
  return planner::RoomFacts{fit.fit, fit.why};
}

bool JobController::Admit(const api::HorovodJob& job, const planner::PodAdmit& pod) {
  const auto object = pods_.Get(job.ns, pod.name);
  if (object == nullptr || MetaField(*object, "uid") != pod.uid) return true;
  // Other gates are other people's. The version keeps us from taking away one that has just come.
  Json gates = Json::array();
  for (const Json& gate : object->value("/spec/schedulingGates"_json_pointer, Json::array())) {
    if (gate.value("name", "") != planner::kGangGate) gates.push_back(gate);
  }
  const auto patched =
      api_->Patch(kube::Pods(), job.ns, pod.name,
                  {{"metadata", {{"resourceVersion", MetaField(*object, "resourceVersion")}}},
                   {"spec", {{"schedulingGates", gates}}}},
                  {});
  if (patched) {
    pods_.Observe(*patched);
    if (room_ != nullptr) room_->Observe(*patched);
    return true;
  }
  if (patched.error().code == ErrorCode::kNotFound) return true;
  if (patched.error().code != ErrorCode::kConflict) {
    spdlog::warn("job {}: pod {} not admitted: {}", job.Key(), pod.name, patched.error().message);
  }
  return false;
}

bool JobController::Annotate(const api::HorovodJob& job, const std::string& pod,
                             const Json& annotations) {
  const auto patched =
      api_->Patch(kube::Pods(), job.ns, pod, {{"metadata", {{"annotations", annotations}}}}, {});
  if (patched) {
    pods_.Observe(*patched);
    queue_.Add(job.Key());
    return true;
  }
  if (patched.error().code == ErrorCode::kNotFound) return true;
  spdlog::warn("job {}: pod {} not marked: {}", job.Key(), pod, patched.error().message);
  return false;
}

bool JobController::DeletePod(const api::HorovodJob& job, const planner::PodDelete& pod) {
  const auto deleted = api_->Delete(kube::Pods(), job.ns, pod.name, {.uid = pod.uid});
  if (deleted) {
    spdlog::info("job {}: pod {} deleted: {}", job.Key(), pod.name, pod.reason);
    return true;
  }
  // Not there any more, or a newer pod of that name: either way this one is gone.
  const ErrorCode code = deleted.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) return true;
  spdlog::warn("job {}: pod {} not deleted: {}", job.Key(), pod.name, deleted.error().message);
  return false;
}

bool JobController::WriteStatus(const api::HorovodJob& job, Json object,
                                const api::Status& status) {
  object["status"] = api::StatusToJson(status);
  const auto written = api_->Update(kube::HorovodJobs(), job.ns, object, "status");
  if (written) {
    jobs_.Observe(*written);
    return true;
  }
  // On a conflict the newer object is on its way: decide again from that.
  if (written.error().code != ErrorCode::kConflict &&
      written.error().code != ErrorCode::kNotFound) {
    spdlog::warn("job {}: status not written: {}", job.Key(), written.error().message);
  }
  return false;
}

bool JobController::RefuseJob(const Json& object, const std::string& why) {
  api::Status status = api::StatusFromJson(object.value("status", Json::object()));
  const auto generation = object.value("/metadata/generation"_json_pointer, std::int64_t{0});
  if (status.state == "Invalid" && status.observed_generation == generation) return true;
  api::HorovodJob job;
  job.name = MetaField(object, "name");
  job.ns = MetaField(object, "namespace");
  job.uid = MetaField(object, "uid");
  status.state = "Invalid";
  status.observed_generation = generation;
  std::erase_if(status.conditions, [](const api::Condition& c) { return c.type == "Created"; });
  status.conditions.push_back({"Created", false, "InvalidSpec", why,
                               api::FormatTime(std::chrono::system_clock::now()), generation});
  if (!WriteStatus(job, object, status)) return false;
  Say(job, {true, "InvalidSpec", why, ""});
  return true;
}

void JobController::Say(const api::HorovodJob& job, const planner::Event& event) {
  runtime::ObjectReference regarding = ReferenceTo(job);
  if (!event.pod.empty()) {
    if (const auto pod = pods_.Get(job.ns, event.pod)) {
      regarding = {"v1",
                   "Pod",
                   job.ns,
                   event.pod,
                   MetaField(*pod, "uid"),
                   MetaField(*pod, "resourceVersion")};
    }
  }
  events_.Record(regarding, event.warning, event.reason, "Reconcile", event.message);
}

}  // namespace ringmaster::controllers
