#include "operator/controllers/gang_admission.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/fields/fields.h"
#include "operator/api/object_key.h"
#include "operator/controllers/node_affinity.h"
#include "operator/controllers/pod_identity.h"
#include "operator/controllers/pod_record.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

bool MayStart(const planner::PodFacts& pod) { return !pod.gated && !pod.leaving() && !pod.ended(); }

// Paths of pods that may start or have started. Their places stay held until the capacity cache has
// seen them run, which may be later than this reconcile has.
std::vector<std::string> Started(const planner::Snapshot& snapshot) {
  std::vector<std::string> started;
  for (const planner::PodFacts& pod : snapshot.pods) {
    if (MayStart(pod)) {
      started.push_back(api::KeyText(snapshot.job.ns, pod.name));
    }
  }
  return started;
}

// Also finds the domain of the job's pods that may start or have started, and stay.
scheduler::Nearness NearnessOf(const planner::Snapshot& snapshot) {
  const api::TopologyPolicy& topology = snapshot.job.spec.run_policy.scheduling_policy.topology;
  scheduler::Nearness near{.label = topology.label, .required = topology.required};
  for (const planner::PodFacts& pod : snapshot.pods) {
    const std::string domain = DomainOf(pod.topology, topology);
    if (MayStart(pod) && !domain.empty()) near.domain = domain;
  }
  return near;
}

}  // namespace

GangAdmission::GangAdmission(std::shared_ptr<kube::KubeApi> api, const Surroundings& around,
                             PodOptions options, std::optional<std::chrono::seconds> nodes_within,
                             runtime::Clock clock)
    : priorities_(std::move(api)),
      loop_(around.loop),
      pods_(around.pods),
      backoff_(around.backoff),
      granted_(
          std::move(options),
          [writer = around.writer](const api::HorovodJob& job, int index) {
            return writer->TryOut(job, index);
          },
          std::move(clock)),
      nodes_within_(nodes_within) {}

planner::Decision GangAdmission::Plan(planner::Snapshot* snapshot) {
  if (snapshot->grouped) {
    // The Kubernetes scheduler decides for all pods of the group together.
    Forget(snapshot->job.Key());
    planner::Decision decision = planner::Plan(*snapshot);
    for (planner::PodCreate& create : decision.creates) create.grouped = true;
    return decision;
  }
  if (loop_ == nullptr) return planner::Plan(*snapshot);
  if (snapshot->queue) {
    // The job's queue has decided for all its pods together.
    Forget(snapshot->job.Key());
    return planner::Plan(*snapshot);
  }
  planner::Decision decision = PlanWithLine(snapshot);
  if (const auto importance = ImportanceOf(snapshot->job)) {
    decision.status.priority = importance->priority;
  }
  return decision;
}

planner::Decision GangAdmission::PlanWithLine(planner::Snapshot* snapshot) {
  // Plans first as if everything fitted, to find out what the job would take.
  snapshot->gang_fit = scheduler::GangFit{.fit = std::numeric_limits<int>::max()};
  snapshot->demands = loop_->DemandsOn(snapshot->job.Key());
  snapshot->nodes_within = nodes_within_;
  planner::Decision wishes = planner::Plan(*snapshot);
  Offer(*snapshot, wishes);
  loop_->SetCalling(snapshot->job.Key(), wishes.calls_for_nodes,
                    snapshot->job.status.times_given_back > 0);
  const std::vector<std::string> started = Started(*snapshot);
  if (wishes.gang_sizes.empty()) {
    granted_.Forget(snapshot->job.Key());
    loop_->Withdraw(snapshot->job.Key(), started);
    if (wishes.kept_back == 0) return wishes;
    // This plan assumed that everything fits, so its messages must not reach people.
    snapshot->gang_fit = scheduler::GangFit{.decided = false};
    return planner::Plan(*snapshot);
  }
  snapshot->gang_fit = AskFor(snapshot, wishes, started);
  planner::Decision decision = planner::Plan(*snapshot);
  if (snapshot->gang_fit->decided || granted_.Tried(snapshot->job) != nullptr) return decision;
  const std::chrono::milliseconds soon = GrantedPods::kSilence;
  decision.look_again = std::min(decision.look_again.value_or(soon), soon);
  return decision;
}

// Pods that are granted at once are created, which tells all that a dry run would tell. One is made
// for a job that has to wait: what it takes and how important it is may differ from its template,
// and others must not make room for pods that the API server refuses.
scheduler::GangFit GangAdmission::AskFor(planner::Snapshot* snapshot,
                                         const planner::Decision& wishes,
                                         const std::vector<std::string>& started) {
  const api::HorovodJob& job = snapshot->job;
  scheduler::GangFit fit{.decided = false};
  if (auto request = RequestOf(*snapshot, wishes)) fit = loop_->Ask(std::move(*request), started);
  if (fit.fit > 0) return fit;
  const bool has_news = granted_.TryOut(job, wishes.creates.front().index);
  if (backoff_->Waits(job, Needed::kDryRun)) {
    snapshot->creation_waits = true;
    granted_.Forget(job.Key());
    loop_->Withdraw(job.Key(), started);
    return {.decided = false};
  }
  if (!has_news) return fit;
  if (auto request = RequestOf(*snapshot, wishes)) fit = loop_->Ask(std::move(*request), started);
  return fit;
}

void GangAdmission::Offer(const planner::Snapshot& snapshot, const planner::Decision& wishes) {
  const api::HorovodJob& job = snapshot.job;
  if (!wishes.holding) return loop_->RemoveHolding(job.Key());
  scheduler::Holding holding = *wishes.holding;
  holding.job = job.Key();
  holding.priority = ImportanceOf(job).value_or(Importance()).priority;
  loop_->SetHolding(std::move(holding));
}

void GangAdmission::Forget(const std::string& job_key) {
  if (loop_ == nullptr) return;
  granted_.Forget(job_key);
  loop_->RemoveHolding(job_key);
  loop_->SetCalling(job_key, false);
  std::vector<std::string> started;
  for (const auto& pod : pods_->Indexed(api::ParseKey(job_key).ns, job_key)) {
    const planner::PodFacts& facts = RecordOf(pod).facts;
    if (MayStart(facts)) started.push_back(api::KeyText(api::ParseKey(job_key).ns, facts.name));
  }
  loop_->Withdraw(job_key, started);
}

std::optional<GangAdmission::Importance> GangAdmission::ImportanceOf(const Json& pod) {
  const Json& priority = fields::At(pod, "/spec/priority");
  if (!priority.is_number_integer()) return std::nullopt;
  return Importance{priority.get<int>(), fields::TextAt(pod, "/spec/preemptionPolicy") != "Never"};
}

// Pods that exist say more than those that would be made now.
std::optional<GangAdmission::Importance> GangAdmission::ImportanceOf(
    const api::HorovodJob& job) const {
  for (const auto& pod : pods_->Indexed(job.ns, job.Key())) {
    if (!IsOwnedBy(RecordOf(pod), job.uid)) continue;
    if (const auto importance = ImportanceOf(*pod.WithoutTree())) return importance;
  }
  const auto tried = granted_.Tried(job);
  return tried == nullptr ? std::nullopt : ImportanceOf(*tried);
}

std::optional<scheduler::AdmissionRequest> GangAdmission::RequestOf(
    const planner::Snapshot& snapshot, const planner::Decision& wishes) {
  const api::HorovodJob& job = snapshot.job;
  scheduler::AdmissionRequest request{.job = job.Key(),
                                      .state = wishes.gang_state,
                                      .since = wishes.in_line_since,
                                      .near = NearnessOf(snapshot),
                                      .sizes = wishes.gang_sizes};
  const bool tried = granted_.Tried(job) != nullptr;
  // Its pods were let start in vain: perhaps they take something else than their template says.
  if (!tried && job.status.times_given_back > 0) return std::nullopt;
  const auto importance = ImportanceOf(job);
  request.calls_alone = job.status.times_given_back > 0;
  const bool refused = backoff_->PodsWereRefused(job);
  // Nodes that are booked for pods which can't be created would stand idle.
  request.may_call = wishes.may_call && !(refused && snapshot.requests);
  if (importance) {
    request.priority = importance->priority;
  } else {
    const auto expected = priorities_.Of(job);
    if (!expected) return std::nullopt;
    request.priority = *expected ? (*expected)->value : 0;
  }
  // A job whose pods were let start in vain more than once takes nothing from others, because the
  // Kubernetes scheduler evidently sees less room than is counted here. Neither does one whose pods
  // the API server refuses: a dry run shows this for one pod, and only their creation shows that a
  // quota has no room for all of them.
  request.preempts =
      tried && importance && importance->preempts && job.status.times_given_back < 2 && !refused;
  for (const planner::PodCreate& create : wishes.creates) {
    request.pods.push_back(granted_.Of(job, create));
  }
  return request;
}

}  // namespace ringmaster::controllers
