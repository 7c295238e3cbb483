#include "operator/controllers/pod_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "common/sync/parallel.h"
#include "operator/api/labels.h"
#include "operator/controllers/finalizers.h"
#include "operator/controllers/node_affinity.h"
#include "operator/controllers/pod_annotations.h"
#include "operator/controllers/pod_builder.h"
#include "operator/controllers/pod_groups.h"
#include "operator/controllers/pod_identity.h"
#include "operator/controllers/pod_record.h"
#include "operator/controllers/slim_objects.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

namespace {

constexpr std::size_t kPodsInOneLook = 64;

}  // namespace

PodWriter::PodWriter(std::shared_ptr<kube::KubeApi> api, const Caches& caches,
                     runtime::WorkQueue* queue, CreationBackoff* backoff, EventWriter* events,
                     PodWriterOptions options)
    : api_(std::move(api)),
      pods_(caches.pods),
      jobs_(caches.jobs),
      queue_(queue),
      backoff_(backoff),
      events_(events),
      options_(std::move(options)) {}

bool PodWriter::CreateAll(const api::HorovodJob& job,
                          const std::vector<planner::PodCreate>& creates, int least,
                          const std::vector<planner::PodDelete>& useless_alone) {
  if (creates.empty()) return true;
  if (backoff_->Waits(job, Needed::kPods)) return true;
  std::vector<Json> made;
  std::vector<planner::PodDelete> useless = useless_alone;
  int there = 0;
  std::size_t done = 0;
  const planner::PodCreate* failed = nullptr;
  Attempt failure;
  // If the first pod is refused, the others would be, too, so the first is tried alone.
  for (std::size_t batch = 1; failed == nullptr && done < creates.size();
       batch = std::min(2 * batch, options_.calls_at_once)) {
    if (IsEnough(job, done) || !IsStillWanted(job)) break;
    batch = std::min(batch, creates.size() - done);
    std::vector<Attempt> attempts(batch);
    sync::InParallel(batch, [&](std::size_t i) { attempts[i] = Create(job, creates[done + i]); });
    for (std::size_t i = 0; i < batch; ++i) {
      const planner::PodCreate& create = creates[done + i];
      Attempt& attempt = attempts[i];
      there += attempt.there ? 1 : 0;
      if (!attempt.there && failed == nullptr) {
        failed = &create;
        failure = attempt;
      }
      if (attempt.made.is_null()) continue;
      useless.push_back(
          {MetaField(attempt.made, "name"), MetaField(attempt.made, "uid"), "NotAllCouldBeMade"});
      made.push_back(std::move(attempt.made));
    }
    done += batch;
  }
  ReportCreated(job, made, creates.front().reason);
  if (failed == nullptr) {
    if (done < creates.size()) {
      queue_->Add(job.Key());
    } else {
      backoff_->PodsAreThere(job);
    }
    return true;
  }
  // One report covers all failures of one try.
  ReportNotCreated(job, Needed::kPods, planner::PodName(job.name, failed->index), failure);
  const bool waits = backoff_->Waits(job, Needed::kPods);
  if (waits && failure.refused && there < least) {
    InBatches(job, useless.size(), Rest::kAtOnce,
              [&](std::size_t i) { return Delete(job, useless[i]); });
  }
  return waits;
}

// Enough is done for one reconcile. Each does something, whatever else is urgent.
bool PodWriter::IsEnough(const api::HorovodJob& job, std::size_t done) const {
  return done >= kPodsInOneLook || (done > 0 && queue_->IsHurried(job.Key()));
}

bool PodWriter::IsStillWanted(const api::HorovodJob& job) const {
  const auto object = jobs_->Get(job.ns, job.name);
  return object != nullptr && MetaField(*object, "uid") == job.uid &&
         MetaField(*object, "deletionTimestamp").empty() &&
         fields::IntegerAt(*object, "/metadata/generation") == job.generation;
}

// One event for all pods: a thousand events would say no more.
void PodWriter::ReportCreated(const api::HorovodJob& job, const std::vector<Json>& made,
                              const std::string& reason) {
  constexpr std::size_t kNamed = 3;
  if (made.empty()) return;
  std::vector<std::string> names;
  for (const Json& pod : made) names.push_back(MetaField(pod, "name"));
  if (names.size() == 1) {
    return events_->EmitEvent(
        job, {false, "PodCreated", fmt::format("pod {} created {}", names[0], reason), ""});
  }
  const std::size_t total = names.size();
  names.resize(std::min(total, kNamed));
  const std::string more = total > kNamed ? fmt::format(" and {} more", total - kNamed) : "";
  events_->EmitEvent(
      job,
      {false, "PodCreated",
       fmt::format("{} pods created {}: {}{}", total, reason, fmt::join(names, ", "), more), ""});
}

Json PodWriter::Build(const api::HorovodJob& job, const planner::PodCreate& create) const {
  const PodOptions& options = options_.pod;
  Json pod = BuildPod(job, create.index, options);
  DropOwnAnnotations(pod);
  WriteMadeFrom(pod, job.spec.pods_digest, job.generation);
  if (create.grouped) JoinPodGroup(job, &pod);
  if (options_.proof_finalizer) AddFinalizer(pod);
  AvoidNodes(pod, create.avoid);
  KeepOffNodes(pod, create.keep_off);
  const api::TopologyPolicy& topology = job.spec.run_policy.scheduling_policy.topology;
  // If gang admission doesn't place the pods, the Kubernetes scheduler keeps them together.
  const bool counted = options.counted && create.of_queue == nullptr;
  if (!counted) KeepTogether(pod, topology, job.uid);
  PutInDomain(pod, topology, create.domain);
  WriteAnnounced(pod, create.announced);
  if (options.shield && create.shielded) WriteShields(pod);
  if (create.calls_for_nodes) {
    pod["metadata"]["annotations"][api::kCallsForNodesAnnotation] = "true";
  }
  if (create.booking != nullptr) provisioning::Consume(*create.booking, &pod);
  if (create.of_queue != nullptr) kueue::Apply(*create.of_queue, &pod);
  return pod;
}

PodWriter::Attempt PodWriter::Create(const api::HorovodJob& job, const planner::PodCreate& create) {
  auto created = api_->CreateWith(kube::Pods(), job.ns, Build(job, create),
                                  {.field_validation = "Strict", .unread = UnreadOfPods()});
  if (!created) return NotCreated(job, create, created.error());
  pods_->Observe(*created);
  return {.there = true, .made = std::move(*created)};
}

std::shared_ptr<const Json> PodWriter::TryOut(const api::HorovodJob& job, int index) {
  const planner::PodCreate create{.index = index};
  const Json pod = Build(job, create);
  auto tried =
      api_->CreateWith(kube::Pods(), job.ns, pod,
                       {.field_validation = "Strict", .dry_run = true, .unread = UnreadOfPods()});
  // A webhook with side effects keeps the API server from saying more than the template does.
  const bool can_not =
      !tried && tried.error().message.find("does not support dry run") != std::string::npos;
  if (tried || can_not) {
    tried ? backoff_->DryRunWorked(job) : backoff_->Worked(job, Needed::kDryRun);
    return std::make_shared<const Json>(SlimPod(tried ? std::move(*tried) : pod));
  }
  ReportNotCreated(job, Needed::kDryRun, planner::PodName(job.name, index),
                   NotCreated(job, create, tried.error()));
  return nullptr;
}

PodWriter::Attempt PodWriter::NotCreated(const api::HorovodJob& job,
                                         const planner::PodCreate& create,
                                         const kube::Error& error) {
  const std::string name = planner::PodName(job.name, create.index);
  if (error.code == ErrorCode::kAlreadyExists) {
    // The pod is ours and the cache is behind: its next watch event brings it. Or it belongs to
    // another owner, and then it stays in the way.
    const auto other = api_->Get(kube::Pods(), job.ns, name);
    if (other && IsOwnedBy(*other, job.uid)) {
      if (!HasLabels(*other, LabelsOf(job, create.index))) {
        return {.there = Relabel(job, *other, create.index)};
      }
      if (pods_->Observe(*other)) queue_->Add(job.Key());
      return {.there = true};
    }
    const bool gone = !other && other.error().code == ErrorCode::kNotFound;
    if (gone || (other && !MetaField(*other, "deletionTimestamp").empty())) {
      return {.name_taken = true};
    }
  }
  logging::Warn("pod not created job={} pod={} error={}", job.Key(), name,
                logging::Value(error.message));
  return {.refused = error};
}

void PodWriter::ReportNotCreated(const api::HorovodJob& job, Needed what, const std::string& pod,
                                 const Attempt& failed) {
  // The pod is about to be gone, or has just gone: people need no event about that.
  if (failed.name_taken) return backoff_->NameIsTaken(job, what, pod);
  if (!failed.refused) return;
  backoff_->FailedWithEvent(job, what, *failed.refused, "FailedCreate");
}

// Labels by which the job's pods are found were removed from some. A pod without the role label is
// missing in the cache, but its sidecar is connected.
bool PodWriter::RestoreLabels(const api::HorovodJob& job,
                              const std::vector<planner::SidecarFacts>& sidecars) {
  std::vector<std::pair<runtime::ObjectPtr, int>> found;
  for (const auto& pod : pods_->Indexed(job.ns, job.Key())) {
    const PodRecord& record = RecordOf(pod);
    const auto index = IndexOf(job.name, record.facts.name);
    if (!index || !IsOwnedBy(record, job.uid) || record.is_labelled) continue;
    found.emplace_back(pod, *index);
  }
  std::vector<std::pair<std::string, int>> missing;
  for (const planner::SidecarFacts& sidecar : sidecars) {
    const auto index = IndexOf(job.name, sidecar.pod_name);
    if (index && pods_->Get(job.ns, sidecar.pod_name) == nullptr) {
      missing.emplace_back(sidecar.pod_name, *index);
    }
  }
  const bool relabelled = InBatches(job, found.size(), Rest::kAtOnce, [&](std::size_t i) {
    return Relabel(job, *found[i].first, found[i].second);
  });
  const bool all_found = InBatches(job, missing.size(), Rest::kAtOnce, [&](std::size_t i) {
    return !FindMissing(job, missing[i].first, missing[i].second);
  });
  return relabelled && all_found;
}

// Returns true if there is such a pod of the job; the job is reconciled again when the cache has
// it.
bool PodWriter::FindMissing(const api::HorovodJob& job, const std::string& pod, int index) {
  const auto live = api_->Get(kube::Pods(), job.ns, pod);
  if (!live || !IsOwnedBy(*live, job.uid)) return false;
  if (!HasLabels(*live, LabelsOf(job, index))) (void)Relabel(job, *live, index);
  return true;
}

bool PodWriter::Relabel(const api::HorovodJob& job, const Json& pod, int index) {
  const Json labels = LabelsOf(job, index);
  const std::string name = MetaField(pod, "name");
  const auto patched =
      api_->Patch(kube::Pods(), job.ns, name,
                  {{"metadata", {{"uid", MetaField(pod, "uid")}, {"labels", labels}}}}, {});
  // An admission plugin may remove them at each write.
  if (!patched || !HasLabels(*patched, labels)) {
    logging::Warn("pod not labelled job={} pod={} error={}", job.Key(), name,
                  logging::Value(patched ? "it is written without them" : patched.error().message));
    return false;
  }
  logging::Warn("pod relabelled job={} pod={}", job.Key(), name);
  pods_->Observe(*patched);
  return true;
}

bool PodWriter::InBatches(const api::HorovodJob& job, std::size_t count, Rest rest,
                          const std::function<bool(std::size_t)>& call) {
  return sync::InBatches(count, options_.calls_at_once, call, [&] {
    if (rest == Rest::kAtOnce || !queue_->IsHurried(job.Key())) return false;
    queue_->Add(job.Key());
    return true;
  });
}

bool PodWriter::Annotate(const api::HorovodJob& job, const std::string& pod, const std::string& uid,
                         const Json& annotations) {
  // The uid keeps the annotations from a newer pod with the same name.
  const Json patch = {{"metadata", {{"uid", uid}, {"annotations", annotations}}}};
  const auto patched = api_->Patch(kube::Pods(), job.ns, pod, patch, {});
  if (patched) {
    pods_->Observe(*patched);
    if (annotations.contains(api::kDrainSinceAnnotation)) {
      queue_->AddFirst(job.Key());  // the next reconcile tells the sidecars
    } else {
      queue_->Add(job.Key());
    }
    return true;
  }
  const ErrorCode code = patched.error().code;
  if (code == ErrorCode::kNotFound) return true;
  // The cache is behind and will catch up.
  if (code == ErrorCode::kConflict) return false;
  logging::Warn("pod not annotated job={} pod={} error={}", job.Key(), pod,
                logging::Value(patched.error().message));
  return false;
}

bool PodWriter::Delete(const api::HorovodJob& job, const planner::PodDelete& pod) {
  const auto deleted = api_->Delete(kube::Pods(), job.ns, pod.name, {.uid = pod.uid});
  if (deleted) {
    logging::Info("pod deleted job={} pod={} reason={}", job.Key(), pod.name,
                  logging::Value(pod.reason));
    return true;
  }
  // The pod doesn't exist any more, or a newer pod has its name: either way this one is gone.
  const ErrorCode code = deleted.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) return true;
  logging::Warn("pod not deleted job={} pod={} error={}", job.Key(), pod.name,
                logging::Value(deleted.error().message));
  return false;
}

bool PodWriter::Release(const api::HorovodJob& job, const planner::PodRelease& pod) {
  const auto object = pods_->Get(job.ns, pod.name);
  if (object == nullptr || RecordOf(object).facts.uid != pod.uid) return true;
  // The cache may be newer than what the decision was made from.
  const bool as_seen = !pod.as_seen.empty();
  if (as_seen && RecordOf(object).facts.version != pod.as_seen) return false;
  if (pod.at_once) {
    const auto deleted =
        api_->Delete(kube::Pods(), job.ns, pod.name, {.grace_period_seconds = 0, .uid = pod.uid});
    if (!deleted && deleted.error().code != ErrorCode::kNotFound) {
      logging::Warn("pod not deleted job={} pod={} error={}", job.Key(), pod.name,
                    logging::Value(deleted.error().message));
      return false;
    }
  }
  const auto removed = RemoveFinalizer(*api_, *object, as_seen);
  if (removed) {
    logging::Info("pod released job={} pod={} reason={}", job.Key(), pod.name,
                  logging::Value(pod.reason));
    return true;
  }
  // The pod has changed, and the cache will get the change: decide again from that.
  if (as_seen && removed.error().code == ErrorCode::kConflict) return false;
  logging::Warn("pod not released job={} pod={} error={}", job.Key(), pod.name,
                logging::Value(removed.error().message));
  return false;
}

}  // namespace ringmaster::controllers
