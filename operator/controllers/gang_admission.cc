#include "operator/controllers/gang_admission.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/fields/fields.h"
#include "operator/api/object_key.h"
#include "operator/controllers/node_affinity.h"
#include "operator/controllers/pod_facts.h"
#include "operator/controllers/pod_identity.h"
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

bool SomeWait(const planner::Snapshot& snapshot, const planner::Decision& wishes) {
  return !wishes.creates.empty() || std::any_of(snapshot.pods.begin(), snapshot.pods.end(),
                                                [](const auto& pod) { return pod.gated; });
}

}  // namespace

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
  // Plans first as if everything fitted, to find out what the job would take.
  snapshot->gang_fit = scheduler::GangFit{.fit = std::numeric_limits<int>::max()};
  snapshot->demands = loop_->DemandsOn(snapshot->job.Key());
  snapshot->nodes_within = nodes_within_;
  planner::Decision wishes = planner::Plan(*snapshot);
  Offer(*snapshot, wishes);
  loop_->SetCalling(snapshot->job.Key(), wishes.calls_for_nodes,
                    snapshot->job.status.times_given_back > 0);
  const std::vector<std::string> started = Started(*snapshot);
  const scheduler::GangFit undecided{.decided = false};
  if (wishes.gang_sizes.empty()) {
    granted_.Forget(snapshot->job.Key());
    loop_->Withdraw(snapshot->job.Key(), started);
    if (!SomeWait(*snapshot, wishes)) return wishes;
    // This plan assumed that everything fits, so its messages must not reach people.
    snapshot->gang_fit = undecided;
    return planner::Plan(*snapshot);
  }
  auto request = RequestOf(*snapshot, wishes);
  snapshot->gang_fit = request ? loop_->Ask(std::move(*request), started) : undecided;
  return planner::Plan(*snapshot);
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
    if (MayStart(ReadPod(*pod))) started.push_back(api::KeyOf(*pod));
  }
  loop_->Withdraw(job_key, started);
}

// As the API server has written it on the pods that exist.
std::optional<GangAdmission::Importance> GangAdmission::ImportanceOf(
    const api::HorovodJob& job) const {
  for (const auto& pod : pods_->Indexed(job.ns, job.Key())) {
    const Json& priority = fields::At(*pod, "/spec/priority");
    if (!IsOwnedBy(*pod, job.uid) || !priority.is_number_integer()) continue;
    return Importance{priority.get<int>(),
                      fields::TextAt(*pod, "/spec/preemptionPolicy") != "Never"};
  }
  return std::nullopt;
}

std::optional<scheduler::AdmissionRequest> GangAdmission::RequestOf(
    const planner::Snapshot& snapshot, const planner::Decision& wishes) {
  const api::HorovodJob& job = snapshot.job;
  scheduler::AdmissionRequest request{.job = job.Key(),
                                      .state = wishes.gang_state,
                                      .since = wishes.in_line_since,
                                      .near = NearnessOf(snapshot),
                                      .sizes = wishes.gang_sizes};
  const auto importance = ImportanceOf(job);
  request.calls_alone = job.status.times_given_back > 0;
  request.may_call = wishes.may_call;
  if (importance) {
    request.priority = importance->priority;
  } else {
    const auto expected = priorities_.Of(job);
    if (!expected) return std::nullopt;
    request.priority = *expected ? (*expected)->value : 0;
  }
  // A job whose pods were admitted in vain more than once takes nothing from others, because the
  // Kubernetes scheduler evidently sees less room than is counted here. Neither does a job take
  // anything before all the pods that it needs exist: the API server may refuse some.
  request.preempts = importance && importance->preempts && job.status.times_given_back < 2 &&
                     wishes.least_creates == 0;
  for (const planner::PodAdmit& pod : wishes.admits) {
    auto object = pods_->Get(job.ns, pod.name);
    if (object == nullptr || runtime::MetaField(*object, "uid") != pod.uid) return std::nullopt;
    const Json& priority = fields::At(*object, "/spec/priority");
    if (priority.is_number_integer()) request.priority = priority.get<int>();
    request.pods.push_back(AsAsked(std::move(object)));
  }
  for (const planner::PodCreate& create : wishes.creates) {
    if (create.granted) request.pods.push_back(granted_.Of(job, create));
  }
  return request;
}

}  // namespace ringmaster::controllers
