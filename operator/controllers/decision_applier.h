// Carries out a Decision, in the order of its fields, except for the status.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "operator/controllers/creation_backoff.h"
#include "operator/controllers/event_writer.h"
#include "operator/controllers/pod_writer.h"
#include "operator/controllers/record_writer.h"
#include "operator/controllers/sidecar_registry.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class DecisionApplier {
 public:
  // The objects that write; all outlive the applier.
  struct Writers {
    PodWriter* pods = nullptr;
    RecordWriter* record = nullptr;
    SidecarRegistry* registry = nullptr;
    CreationBackoff* backoff = nullptr;
    EventWriter* events = nullptr;
  };

  DecisionApplier(std::shared_ptr<kube::KubeApi> api, const runtime::Informer* pods,
                  const Writers& writers)
      : api_(std::move(api)), pods_(pods), to_(writers) {}

  // Returns false if not everything could be done; the job should be reconciled again after a
  // while. If a pod of this job or another job is urgent, a part of it may be left to the next
  // look, for which the job is in the queue then; drains never are.
  bool Apply(const planner::Snapshot& snapshot, const planner::Decision& decision);

 private:
  bool WriteRecord(const planner::Snapshot& snapshot, const planner::Decision& decision);
  bool Drain(const planner::Snapshot& snapshot, const planner::Decision& decision);
  bool DrainOne(const planner::Snapshot& snapshot, const planner::PodDrain& drain);
  bool Annotate(const planner::Snapshot& snapshot, const planner::Decision& decision);
  bool Delete(const api::HorovodJob& job, const planner::Decision& decision);
  bool Release(const api::HorovodJob& job, const planner::Decision& decision);
  void Notify(const planner::Snapshot& snapshot, const planner::Decision& decision);
  bool IsAnnotatedAsRegistered(const planner::Snapshot& snapshot, const std::string& uid) const;
  bool DeleteJob(const api::HorovodJob& job);

  const std::shared_ptr<kube::KubeApi> api_;
  const runtime::Informer* const pods_;
  const Writers to_;
};

}  // namespace ringmaster::controllers
