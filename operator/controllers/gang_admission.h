// Gang admission: asks the line of waiting jobs how many of a job's pods may start, and plans with
// the answer.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/controllers/admission_loop.h"
#include "operator/controllers/expected_priorities.h"
#include "operator/controllers/granted_pods.h"
#include "operator/controllers/pod_options.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class GangAdmission {
 public:
  // All arguments outlive it. `loop` is null if free capacity is not tracked; pods then have no
  // gate. `api` is asked for priority classes. `nodes_within`: see Snapshot::nodes_within.
  GangAdmission(std::shared_ptr<kube::KubeApi> api, AdmissionLoop* loop,
                const runtime::Informer* pods, PodOptions options,
                std::optional<std::chrono::seconds> nodes_within = std::nullopt)
      : priorities_(std::move(api)),
        loop_(loop),
        pods_(pods),
        granted_(std::move(options)),
        nodes_within_(nodes_within) {}

  // Sets gang_fit of `snapshot`. Places are held for the pods that the decision admits, or creates
  // without a gate.
  planner::Decision Plan(planner::Snapshot* snapshot);
  // The job asks for nothing any more; places held for its pods are freed, unless the pods may
  // start.
  void Forget(const std::string& job_key);

 private:
  // nullopt: the cache has newer pods than the snapshot, or nobody knows yet how important the job
  // is. Its pods are made with a gate then, and another reconcile follows soon.
  std::optional<scheduler::AdmissionRequest> RequestOf(const planner::Snapshot& snapshot,
                                                       const planner::Decision& wishes);

  // Priority as the job's pods have it from their priority class; nullopt: no pod has one yet.
  struct Importance {
    int priority = 0;
    bool preempts = true;
  };
  std::optional<Importance> ImportanceOf(const api::HorovodJob& job) const;
  // The priority that pods of the job will have; nullopt: their class can't be read.
  void Offer(const planner::Snapshot& snapshot, const planner::Decision& wishes);

  ExpectedPriorities priorities_;
  AdmissionLoop* const loop_;
  const runtime::Informer* const pods_;
  GrantedPods granted_;
  const std::optional<std::chrono::seconds> nodes_within_;
};

}  // namespace ringmaster::controllers
