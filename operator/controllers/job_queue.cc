#include "operator/controllers/job_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "operator/api/labels.h"
#include "operator/api/object_key.h"
#include "operator/controllers/pod_builder.h"
#include "operator/controllers/pod_identity.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

constexpr char kLabelsRestored[] =
    "somebody had changed the labels of the job's Workload; it has them back, and is read again";
// How soon to try again if Kueue's objects could not be read or written.
constexpr std::chrono::seconds kTryAgain{10};

// The Workload is deleted with its owner, or is being deleted already.
bool IsOfEarlierJob(const Json& workload, const std::string& name) {
  if (!MetaField(workload, "deletionTimestamp").empty()) return true;
  const Json& owners = fields::ListAt(workload, "/metadata/ownerReferences");
  return std::any_of(owners.begin(), owners.end(), [&](const Json& owner) {
    return fields::Flag(owner, "controller", false) && fields::Text(owner, "kind") == api::kKind &&
           fields::Text(owner, "name") == name;
  });
}

// If an admission lies between two allowed sizes, the job uses the smaller one.
int WantedOf(const api::HorovodJob& job, const Json* live) {
  if (live == nullptr) return job.WantedPods();
  const kueue::WorkloadFacts facts = kueue::ReadWorkload(*live);
  return facts.quota_reserved ? job.WantedPodsOf(facts.Granted()) : job.WantedPods();
}

// `live` is null if there is no Workload.
kueue::JobNeeds NeedsOf(const planner::Snapshot& snapshot, const Json* live) {
  const api::HorovodJob& job = snapshot.job;
  kueue::JobNeeds needs{.wants_quota = !job.Suspended() && !job.queue.empty(),
                        .gives_up_admission = kueue::GivesUpAdmission(job),
                        .wanted = WantedOf(job, live),
                        .least = job.LeastPods(),
                        .succeeded = job.status.Is("Succeeded"),
                        .failed = job.status.Is("Failed"),
                        .now = snapshot.now};
  // Ended pods may be the only evidence of the job's end, so they count until the end is recorded.
  needs.pods_left = planner::EndComesFirst(snapshot);
  for (const planner::PodFacts& pod : snapshot.pods) {
    // A pod that is deleted before it had a node takes nothing, even if a finalizer keeps its
    // object.
    if (pod.ended() || (pod.deleting && !pod.scheduled)) continue;
    needs.pods_left = true;
    ++needs.pods_alive;
    needs.pods_running += pod.running_since && !pod.deleting ? 1 : 0;
  }
  for (const char* type : {"Succeeded", "Failed"}) {
    if (job.status.Is(type)) needs.end = job.status.Find(type)->message;
  }
  return needs;
}

}  // namespace

JobQueue::JobQueue(std::shared_ptr<kube::KubeApi> api, Options options,
                   std::function<void(const std::string&)> changed)
    : api_(std::move(api)),
      options_(std::move(options)),
      workloads_(api_, kube::Workloads(),
                 {.namespaces = options_.namespaces,
                  .label_selector = fmt::format("{}={}", api::kManagedByLabel, api::kManagedBy),
                  .keep = runtime::WithoutManagedFields},
                 [changed = std::move(changed)](const Json& workload, bool) {
                   const std::string job = fields::Text(
                       fields::ObjectAt(workload, "/metadata/labels"), api::kJobNameLabel);
                   if (!job.empty()) changed(api::KeyText(MetaField(workload, "namespace"), job));
                 }),
      lookup_(api_),
      priorities_(api_) {}

void JobQueue::Start() {
  if (options_.enabled) workloads_.Start();
}

bool JobQueue::HasAnswer() const {
  const auto cache = workloads_.state();
  return !options_.enabled || cache.synced || !cache.error.empty();
}

void JobQueue::Stop() { workloads_.Stop(); }

JobQueue::Answer JobQueue::Look(const planner::Snapshot& snapshot) {
  const api::HorovodJob& job = snapshot.job;
  const auto unknown = [&job](const std::string& why) -> Answer {
    if (job.queue.empty()) return {};
    return {kueue::UnknownQueueState(job, why), kTryAgain};
  };
  if (!options_.enabled) {
    return unknown("the operator runs without --kueue, so that nobody serves queues");
  }
  const auto cache = workloads_.state();
  if (!cache.synced) {
    return unknown(fmt::format("Workloads of {}/{} can't be read, is Kueue installed? {}",
                               kueue::kGroup, kueue::kVersion,
                               cache.error.empty() ? "no answer yet" : cache.error));
  }
  return Ask(snapshot);
}

JobQueue::Answer JobQueue::Ask(const planner::Snapshot& snapshot) {
  const api::HorovodJob& job = snapshot.job;
  const std::string name = kueue::WorkloadName(job.name);
  const runtime::ObjectPtr stored = workloads_.Get(job.ns, name);
  const Json* const live = stored ? &*stored : nullptr;
  if (live == nullptr && job.queue.empty()) return {};
  if (live == nullptr && !snapshot.pods.empty()) {
    const auto restored = RestoreLabels(job);
    if (!restored) return {kueue::UnknownQueueState(job, restored.error().message), kTryAgain};
    if (*restored) return {kueue::UnknownQueueState(job, kLabelsRestored), kTryAgain};
  }
  const auto problem = [&](const std::string& why) {
    logging::Warn("workload not kept job={} error={}", job.Key(), logging::Value(why));
    Answer answer = job.queue.empty() ? EvaluateWithoutQueue(job) : Evaluate(job, live);
    answer.look_again = kTryAgain;
    const bool admitted = answer.state && answer.state->stage == kueue::Stage::kAdmitted;
    if (answer.state && !admitted) answer.state->message += "; " + why;
    return answer;
  };
  if (live != nullptr && !IsOwnedBy(*live, job.uid)) {
    if (job.queue.empty()) return {};
    if (IsOfEarlierJob(*live, job.name)) return {kueue::WaitsForEarlier(job, name), kTryAgain};
    return {kueue::UnusableAdmission(
                job, fmt::format("Workload {} is another job's: it is left as it is", name)),
            kTryAgain};
  }
  const auto wanted = WantedWorkload(job);
  if (!wanted && live == nullptr) return problem(wanted.error().message);
  // An existing Workload is kept unchanged while its priority can't be found out.
  const kueue::Write write =
      kueue::NextWrite(NeedsOf(snapshot, live), live, wanted ? *wanted : *live);
  if (const auto written = Write(job, live, write, snapshot.now); !written) {
    // Another client has written it, and the cache will catch up.
    if (written.error().code != ErrorCode::kConflict) return problem(written.error().message);
  }
  if (!wanted) return problem(wanted.error().message);
  if (job.queue.empty()) return EvaluateWithoutQueue(job);
  const runtime::ObjectPtr now = workloads_.Get(job.ns, name);
  // If it has left the cache just now, the next look finds out whether it has only lost its labels.
  const bool just_left = now == nullptr && write.kind != kueue::Write::Kind::kDelete;
  return Evaluate(job, now ? &*now : just_left ? live : nullptr);
}

kube::Result<void> JobQueue::Write(const api::HorovodJob& job, const Json* live,
                                   const kueue::Write& write, api::Time now) {
  using Kind = kueue::Write::Kind;
  if (write.kind == Kind::kNothing) return {};
  const std::string name = kueue::WorkloadName(job.name);
  kube::Result<Json> written = Json();
  switch (write.kind) {
    case Kind::kNothing:
      return {};
    case Kind::kCreate:
      written = api_->Create(kube::Workloads(), job.ns, write.body);
      if (!written && written.error().code == ErrorCode::kAlreadyExists) {
        const auto restored = RestoreLabels(job);
        if (restored && *restored) return {};
      }
      break;
    case Kind::kChange:
      written = api_->Patch(kube::Workloads(), job.ns, name, write.body, {});
      break;
    case Kind::kChangeStatus:
      written = api_->Patch(kube::Workloads(), job.ns, name, write.body, {.subresource = "status"});
      break;
    case Kind::kDelete: {
      // The uid keeps a newer Workload from being deleted.
      const auto deleted =
          api_->Delete(kube::Workloads(), job.ns, name, {.uid = MetaField(*live, "uid")});
      if (!deleted && deleted.error().code != ErrorCode::kNotFound) {
        return tl::unexpected(deleted.error());
      }
      // The watch may be late, but no pod may start on quota that was given back.
      workloads_.ObserveDeletion(*live, api::FormatTime(now));
      break;
    }
  }
  if (!written) return tl::unexpected(written.error());
  logging::Info("workload written job={} workload={} why={}", job.Key(), name,
                logging::Value(write.why));
  if (written->is_object()) workloads_.Observe(*written);
  return {};
}

// The cache loses a Workload of which somebody has changed the labels, and its quota is used. The
// watch shows it again when it has them back.
kube::Result<bool> JobQueue::RestoreLabels(const api::HorovodJob& job) {
  const std::string name = kueue::WorkloadName(job.name);
  const auto found = api_->Get(kube::Workloads(), job.ns, name);
  // An operator of which the Role is older may not look.
  if (!found &&
      (found.error().code == ErrorCode::kNotFound || found.error().code == ErrorCode::kForbidden)) {
    return false;
  }
  if (!found) return tl::unexpected(found.error());
  if (!IsOwnedBy(*found, job.uid) || !MetaField(*found, "deletionTimestamp").empty()) return false;
  const auto patched = api_->Patch(kube::Workloads(), job.ns, name,
                                   {{"metadata", {{"labels", kueue::WorkloadLabels(job)}}}}, {});
  if (!patched) return tl::unexpected(patched.error());
  return true;
}

kube::Result<Json> JobQueue::WantedWorkload(const api::HorovodJob& job) {
  const auto priority = PriorityOf(job);
  if (!priority) return tl::unexpected(priority.error());
  return kueue::BuildWorkload(job, BuildPod(job, 0, options_.pod), *priority);
}

kube::Result<std::optional<kueue::Priority>> JobQueue::PriorityOf(const api::HorovodJob& job) {
  if (const std::string& name = job.queue_priority_class; !name.empty()) {
    const auto found = lookup_.Get(kube::WorkloadPriorityClasses(), name);
    if (!found) return tl::unexpected(found.error());
    return kueue::Priority{name, true, static_cast<int>(fields::Integer(*found, "value"))};
  }
  const auto of_pods = priorities_.Of(job);
  if (!of_pods) return tl::unexpected(of_pods.error());
  if (!*of_pods) return std::optional<kueue::Priority>();
  return kueue::Priority{(*of_pods)->class_name, false, (*of_pods)->value};
}

// While the Workload exists, pods of the job may use what it was granted.
JobQueue::Answer JobQueue::EvaluateWithoutQueue(const api::HorovodJob& job) {
  const auto workload = workloads_.Get(job.ns, kueue::WorkloadName(job.name));
  if (workload == nullptr) return {};
  const kueue::WorkloadFacts facts = kueue::ReadWorkload(*workload);
  if (facts.deleting || facts.finished) return {};
  return {kueue::LeavesQueue(facts), {}};
}

JobQueue::Answer JobQueue::Evaluate(const api::HorovodJob& job, const Json* workload) {
  kueue::WorkloadFacts facts;
  if (workload != nullptr) facts = kueue::ReadWorkload(*workload);
  Answer answer{kueue::QueueStateOf(job, workload == nullptr ? nullptr : &facts), {}};
  if (answer.state->stage != kueue::Stage::kAdmitted) return answer;
  const auto flavors = FlavorsOf(facts);
  const auto changes =
      flavors
          ? kueue::ChangesOf(*flavors, facts.updates, job.spec.worker.pod_template)
          : tl::expected<kueue::PodChanges, std::string>(tl::unexpected(flavors.error().message));
  if (changes) {
    answer.state->changes = std::make_shared<const kueue::PodChanges>(*changes);
  } else {
    // Running pods keep what they have.
    answer = {kueue::UnknownQueueState(job, changes.error()), kTryAgain};
    answer.state->reason = kueue::kAdmissionUnusable;
  }
  return answer;
}

kube::Result<std::vector<Json>> JobQueue::FlavorsOf(const kueue::WorkloadFacts& facts) {
  std::vector<Json> flavors;
  for (const std::string& name : facts.flavors) {
    auto flavor = lookup_.Get(kube::ResourceFlavors(), name);
    if (!flavor) return tl::unexpected(flavor.error());
    flavors.push_back(std::move(*flavor));
  }
  return flavors;
}

}  // namespace ringmaster::controllers
