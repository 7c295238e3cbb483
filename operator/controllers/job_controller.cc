#include "operator/controllers/job_controller.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "common/logging/log.h"
#include "operator/controllers/metrics.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

// While the first lists are on their way.
constexpr std::chrono::milliseconds kLookAtCaches{10};
constexpr char kManager[] = "ringmaster.dev/operator";
std::string KeyOf(const Json& object) {
  return MetaField(object, "namespace") + "/" + MetaField(object, "name");
}

bool HasGated(const planner::Snapshot& snapshot) {
  return std::any_of(snapshot.pods.begin(), snapshot.pods.end(),
                     [](const planner::PodFacts& pod) { return pod.gated && !pod.ended(); });
}

std::string UidOf(const planner::Snapshot& snapshot, const std::string& pod) {
  const auto at = std::find_if(snapshot.pods.begin(), snapshot.pods.end(),
                               [&](const planner::PodFacts& p) { return p.name == pod; });
  return at == snapshot.pods.end() ? "" : at->uid;
}

runtime::ObjectReference ReferenceTo(const api::HorovodJob& job) {
  return {api::kApiVersion, api::kKind, job.ns, job.name, job.uid, job.resource_version};
}

}  // namespace

JobController::JobController(std::shared_ptr<kube::KubeApi> api, SidecarHub* hub,
                             QuorumRecordStore* records, JobControllerOptions options)
    : api_(std::move(api)),
      hub_(hub),
      options_(std::move(options)),
      records_(records),
      problems_(options_.queue),
      preparation_(api_, options_.preparation_patience),
      events_(api_, options_.instance),
      queue_(options_.queue),
      jobs_(api_, kube::HorovodJobs(), {.ns = options_.watch_namespace},
            [this](const Json& object, bool) { queue_.Add(KeyOf(object)); }),
      pods_(api_, kube::Pods(),
            {.ns = options_.watch_namespace,
             .label_selector = fmt::format("{}=worker", planner::kJobRoleLabel)},
            [this](const Json& object, bool) { queue_.Add(JobKeyOf(object)); }),
      room_(options_.gang_admission ? std::make_unique<Room>(api_) : nullptr),
      nodes_(api_, kube::Nodes(), {},
             [this](const Json& object, bool deleted) { OnNode(object, deleted); }) {
  if (!options_.objects) return;
  JobObjectOptions objects = *options_.objects;
  objects.watch_namespace = options_.watch_namespace;
  objects_ = std::make_unique<JobObjectKeeper>(api_, std::move(objects),
                                               [this](const std::string& key) { queue_.Add(key); });
}

JobController::~JobController() { Stop(); }

kube::Result<void> JobController::Start(std::stop_token stop) {
  hub_->SetChangeHandler([this](const std::string& key, std::chrono::milliseconds delay) {
    queue_.AddAfter(key, delay);
  });
  jobs_.Start();
  pods_.Start();
  if (room_ != nullptr) room_->Start();
  if (objects_ != nullptr) objects_->Start();
  if (auto synced = AwaitCaches(std::move(stop)); !synced) {
    Stop();
    return synced;
  }
  StartNodes();
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
  for (;;) {
    const auto caches = state().caches;
    const auto missing =
        std::find_if(caches.begin(), caches.end(), [](const auto& cache) { return !cache.synced; });
    if (missing == caches.end()) return {};
    if (stop.stop_requested()) return fail("stopped before the caches were there");
    if (std::chrono::steady_clock::now() >= end) {
      return fail(fmt::format("{} could not be listed within {} s: {}", missing->resource,
                              options_.sync_timeout.count() / 1000, missing->error));
    }
    std::this_thread::sleep_for(kLookAtCaches);
  }
}

// Those without which nothing is decided.
std::vector<const runtime::Informer*> JobController::Caches() const {
  std::vector<const runtime::Informer*> caches = {&jobs_, &pods_};
  if (room_ != nullptr) {
    for (const runtime::Informer* cache : room_->Caches()) caches.push_back(cache);
  }
  if (objects_ != nullptr) {
    for (const runtime::Informer* cache : objects_->informers()) caches.push_back(cache);
  }
  return caches;
}

JobController::State JobController::state() const {
  State state{.caches = {}, .queue = queue_.stats()};
  for (const runtime::Informer* cache : Caches()) state.caches.push_back(cache->state());
  return state;
}

void JobController::Stop() {
  hub_->SetChangeHandler(nullptr);
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();  // joins
  jobs_.Stop();
  pods_.Stop();
  if (room_ != nullptr) room_->Stop();
  if (objects_ != nullptr) objects_->Stop();
  nodes_.Stop();
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

// A job that is deleted in the background is just not there any more the next time.
void JobController::ForgetFormer(const std::string& key, const std::string& uid) {
  std::string former;
  {
    const std::lock_guard lock(uids_mu_);
    const auto known = uids_.try_emplace(key, uid).first;
    if (known->second != uid) former = std::exchange(known->second, uid);
    if (uid.empty()) uids_.erase(known);
  }
  if (former.empty()) return;
  records_->Forget(former);
  problems_.Forget(former);
  if (objects_ != nullptr) objects_->Forget(former);
}

bool JobController::Reconcile(const std::string& key) {
  const std::size_t slash = key.find('/');
  const auto object = jobs_.Get(key.substr(0, slash), key.substr(slash + 1));
  ForgetFormer(key, object == nullptr ? "" : MetaField(*object, "uid"));
  if (object == nullptr) {
    hub_->Forget(key);
    preparation_.Forget(key);
    if (options_.metrics != nullptr) {
      options_.metrics->Forget(key.substr(0, slash), key.substr(slash + 1));
    }
    return ReleaseOrphans(key);
  }
  const std::string uid = MetaField(*object, "uid");
  hub_->Forget(key, uid);  // a former job of this name
  const bool released = ReleaseOrphans(key);
  const auto job = api::ParseHorovodJob(*object);
  if (!job) {
    const bool deleting = !MetaField(*object, "deletionTimestamp").empty();
    const bool dead_released = ReleaseAll(key, uid, !deleting);
    return RefuseJob(*object, api::ToString(job.error())) && dead_released && released;
  }
  const std::string& manager = job->spec.run_policy.managed_by;
  if (!manager.empty() && manager != kManager) return true;
  if (job->deleting) {
    // Its pods are the garbage collector's, and whether they are dead matters no more.
    const bool collected = CollectLatePods(*object);
    return ReleaseAll(key, uid, false) && collected && released;
  }
  return ReconcileJob(*job, *object) && released;
}

bool JobController::ReconcileJob(const api::HorovodJob& job, const Json& object) {
  // Who is not found would get a successor while he trains.
  if (!RestoreLabels(job)) return false;
  auto snapshot = Observe(job);
  if (!snapshot) {
    spdlog::warn("job not observed job={} error={}", job.Key(),
                 logging::Value(snapshot.error().message));
    ShowUnreadable(job, object, snapshot.error());
    return false;
  }
  const bool kept = KeepObjects(job);
  std::unique_lock<std::mutex> turn;  // until the pods that were admitted count as such
  if (room_ != nullptr && HasGated(*snapshot)) {
    turn = room_->Turn();
    snapshot->room = RoomFor(*snapshot);
  }
  planner::Decision decision = planner::Plan(*snapshot);
  bool admitted = true;
  for (const auto& pod : decision.admits) admitted = Admit(job, pod) && admitted;
  if (turn.owns_lock()) turn.unlock();
  const bool applied = Apply(*snapshot, decision) && admitted && kept;
  if (decision.delete_job) return applied;
  problems_.Show(job, !snapshot->pods.empty(), api::FormatTime(snapshot->now), &decision.status);
  if (!(decision.status == job.status) && !WriteStatus(job, object, decision.status)) return false;
  if (options_.metrics != nullptr && decision.status.epoch > job.status.epoch) {
    options_.metrics->Resized(job.ns, job.name, job.status.world_size, decision.status.world_size);
  }
  if (decision.status.state != job.status.state) {
    spdlog::info("state of the job changed job={} state={} before={}", job.Key(),
                 decision.status.state, logging::Value(job.status.state));
  }
  hub_->ExitsCounted(job.uid, decision.exits_counted);
  for (const planner::Event& event : decision.events) Say(job, event);
  std::set<std::string> pod_uids;
  for (const planner::PodFacts& pod : snapshot->pods) pod_uids.insert(pod.uid);
  hub_->Retain(job.uid, pod_uids);
  if (decision.look_again) queue_.AddAfter(job.Key(), *decision.look_again);
  return applied;
}

// Without its record nothing can be decided about a job; that much can be said.
void JobController::ShowUnreadable(const api::HorovodJob& job, const Json& object,
                                   const kube::Error& error) {
  problems_.Failed(job, Needed::kRecord, error, CreationProblems::Clock::now());
  api::Status status = job.status;
  problems_.Show(job, true, api::FormatTime(std::chrono::system_clock::now()), &status);
  if (status == job.status || !WriteStatus(job, object, status)) return;
  Say(job, {true, "FailedRecord", error.message, ""});
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
  snapshot.disruption_taints = options_.disruption_taints;
  ObserveNodes(&snapshot);
  const auto look_again =
      preparation_.Explain(job.Key(), job.ns, &snapshot.pods, PreparationProblems::Clock::now());
  if (look_again) queue_.AddAfter(job.Key(), *look_again);
  const auto recorded = records_->Newest({job.ns, job.name, job.uid});
  if (!recorded) return tl::unexpected(recorded.error());
  if (*recorded) {
    const membership::QuorumRecord& record = **recorded;
    snapshot.lineage =
        std::max(record.lineage, membership::EpochLineage(membership::EpochOf(record.view)));
    if (membership::EpochOf(record.view) > membership::EpochOf(snapshot.view)) {
      snapshot.view = record.view;
    }
  }
  snapshot.view_since = hub_->FirstSeen(job.Key(), job.uid, membership::EpochOf(snapshot.view));
  snapshot.taken_over = hub_->TakenOver(job.Key(), job.uid, !job.status.start_time.empty());
  return snapshot;
}

std::vector<planner::PodFacts> JobController::ReadPods(
    const api::HorovodJob& job, const std::vector<std::shared_ptr<const Json>>& pods) const {
  std::vector<planner::PodFacts> facts;
  for (const auto& pod : pods) {
    if (!IsOwnedBy(*pod, job.uid)) continue;
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
  // It could be read, and nothing has to be written.
  if (decision.first_view == nullptr && decision.recover == 0)
    problems_.Worked(job, Needed::kRecord);
  if (decision.first_view != nullptr) ok = ApplyViewDecided(snapshot, decision.first_view);
  if (decision.recover != 0) ok = ApplyRecover(snapshot, decision.recover) && ok;
  ok = CreatePods(job, decision.creates) && ok;
  for (const auto& drain : decision.drains) {
    spdlog::info("pod drained job={} pod={} reason={}", job.Key(), drain.name,
                 logging::Value(drain.reason));
    Say(job, {false, "Draining", fmt::format("pod {} leaves: {}", drain.name, drain.reason),
              drain.name});
    ok = Annotate(job, drain.name, drain.uid,
                  {{planner::kDrainAnnotation, drain.reason},
                   {planner::kDrainSinceAnnotation, api::FormatTime(snapshot.now)}}) &&
         ok;
  }
  std::map<std::string, Json> notes;  // by pod
  for (const auto& note : decision.annotations) {
    notes[note.name][note.key] = note.value.empty() ? Json() : Json(note.value);
  }
  for (const auto& [pod, annotations] : notes) {
    ok = Annotate(job, pod, UidOf(snapshot, pod), annotations) && ok;
  }
  for (const auto& tell : decision.tells) {
    // Who has no mark of having registered counts as never having been in a view, so nobody is told
    // of one before it has the mark.
    const bool found = std::holds_alternative<planner::ViewDecidedNotice>(tell.notice);
    if (found && !IsMarked(snapshot, tell.pod_uid)) continue;
    hub_->Tell(job.uid, tell.pod_uid, tell.notice);
  }
  for (const auto& pod : decision.deletes) ok = DeletePod(job, pod) && ok;
  for (const auto& pod : decision.releases) ok = ReleasePod(job, pod) && ok;
  if (decision.delete_job) {
    const auto deleted = api_->Delete(kube::HorovodJobs(), job.ns, job.name,
                                      {.propagation = "Background", .uid = job.uid});
    ok = ok && (deleted || deleted.error().code == ErrorCode::kNotFound);
  }
  return ok;
}

// Its object is there, and says that its sidecar has registered.
bool JobController::IsMarked(const planner::Snapshot& snapshot, const std::string& uid) const {
  const auto pod = std::find_if(snapshot.pods.begin(), snapshot.pods.end(),
                                [&](const auto& p) { return p.uid == uid; });
  if (pod == snapshot.pods.end()) return false;
  const auto object = pods_.Get(snapshot.job.ns, pod->name);
  return object != nullptr && MetaField(*object, "uid") == uid && !ReadPod(*object).http.empty();
}

bool JobController::ApplyViewDecided(const planner::Snapshot& snapshot,
                                     const membership::ViewPtr& view) {
  const api::HorovodJob& job = snapshot.job;
  // The first view of all needs no reports: nobody can be in an earlier one.
  if (snapshot.view != nullptr && !StillSo(snapshot, view)) return false;
  if (Pauses(job, Needed::kRecord)) return true;
  const auto found = records_->Bootstrap(job, view);
  if (found) {
    spdlog::info("first view job={} epoch={} view={}", job.Key(),
                 membership::EpochText(view->epoch), logging::Value(membership::Describe(*view)));
  }
  return RecordWritten(job, found);
}

bool JobController::RecordWritten(const api::HorovodJob& job, const kube::Result<void>& written) {
  if (written || written.error().code == ErrorCode::kAlreadyExists) {
    problems_.Worked(job, Needed::kRecord);
    queue_.Add(job.Key());  // with what it says in the snapshot the sidecars are told
    return true;
  }
  spdlog::warn("record not written job={} error={}", job.Key(),
               logging::Value(written.error().message));
  // Somebody else's write came before: no refusal.
  if (written.error().code == ErrorCode::kConflict) return false;
  Missed(job, Needed::kRecord, written.error(),
         {true, "FailedRecord", written.error().message, ""});
  return Pauses(job, Needed::kRecord);
}

// Whether the pods as the API server lists them now, after the last report, allow the same: the
// cache may lack one that has got into a view meanwhile.
bool JobController::StillSo(const planner::Snapshot& snapshot, const membership::ViewPtr& view) {
  const api::HorovodJob& job = snapshot.job;
  const auto listed =
      api_->ListAll(kube::Pods(), job.ns,
                    {.label_selector = fmt::format("{}={}", planner::kJobNameLabel, job.name)});
  if (!listed) {
    spdlog::warn("pods not listed job={} error={}", job.Key(),
                 logging::Value(listed.error().message));
    return false;
  }
  std::vector<std::shared_ptr<const Json>> pods;
  for (const Json& pod : listed->items) pods.push_back(std::make_shared<const Json>(pod));
  planner::Snapshot fresh = snapshot;
  fresh.pods = ReadPods(job, pods);
  ObserveNodes(&fresh);
  const planner::QuorumRecovery now = planner::EvaluateRecovery(fresh);
  return now.view != nullptr ? *now.view == *view
                             : now.nobody_holds && view->reason == membership::Reason::kBootstrap;
}

bool JobController::ApplyRecover(const planner::Snapshot& snapshot, std::uint64_t lineage) {
  const api::HorovodJob& job = snapshot.job;
  if (Pauses(job, Needed::kRecord)) return true;
  const auto begun = records_->BeginRecovery({job.ns, job.name, job.uid}, lineage, snapshot.view);
  if (begun) {
    spdlog::warn("no view can train any more, a lineage begins job={} lineage={}", job.Key(),
                 lineage);
  }
  return RecordWritten(job, begun);
}

bool JobController::KeepObjects(const api::HorovodJob& job) {
  // Of a job that has ended they stay as they are until it is deleted.
  if (objects_ == nullptr || !job.status.completion_time.empty()) return true;
  if (Pauses(job, Needed::kObjects)) return true;
  const JobObjectKeeper::Outcome outcome = objects_->Keep(job);
  if (outcome.look_again) queue_.AddAfter(job.Key(), *outcome.look_again);
  if (outcome.problems.empty()) {
    problems_.Worked(job, Needed::kObjects);
    return true;
  }
  for (const kube::Error& problem : outcome.problems) {
    spdlog::warn("object of the job not written job={} error={}", job.Key(),
                 logging::Value(problem.message));
    Missed(job, Needed::kObjects, problem, {true, "FailedObject", problem.message, ""});
  }
  return Pauses(job, Needed::kObjects);
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
    spdlog::warn("status not written job={} error={}", job.Key(),
                 logging::Value(written.error().message));
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
