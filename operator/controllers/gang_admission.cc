#include "operator/controllers/gang_admission.h"

#include <algorithm>
#include <vector>

#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

bool HasGated(const planner::Snapshot& snapshot) {
  return std::any_of(snapshot.pods.begin(), snapshot.pods.end(),
                     [](const planner::PodFacts& pod) { return pod.gated && !pod.ended(); });
}

}  // namespace

GangAdmission::Planned GangAdmission::PlanAndAdmit(planner::Snapshot* snapshot) {
  if (capacity_ == nullptr || !HasGated(*snapshot)) return PlanNow(*snapshot);
  const sync::MutexLock lock(&admission_mu_);
  snapshot->gang_fit = FitOf(*snapshot);
  return PlanNow(*snapshot);
}

GangAdmission::Planned GangAdmission::PlanNow(const planner::Snapshot& snapshot) {
  Planned planned{.decision = planner::Plan(snapshot)};
  for (const planner::PodAdmit& pod : planned.decision.admits) {
    planned.admitted = writer_->Admit(snapshot.job, pod) && planned.admitted;
  }
  return planned;
}

scheduler::GangFit GangAdmission::FitOf(const planner::Snapshot& snapshot) const {
  std::vector<kube::Json> gated;
  for (const planner::PodFacts& pod : snapshot.pods) {
    if (!pod.gated || pod.leaving() || pod.ended()) continue;
    if (const auto object = pods_->Get(snapshot.job.ns, pod.name)) gated.push_back(*object);
  }
  return capacity_->FitTogether(gated);
}

}  // namespace ringmaster::controllers
