// Gang admission: asks the line of waiting jobs how many of a job's pods may be created, and plans
// with the answer.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/controllers/admission_loop.h"
#include "operator/controllers/creation_backoff.h"
#include "operator/controllers/expected_priorities.h"
#include "operator/controllers/granted_pods.h"
#include "operator/controllers/pod_options.h"
#include "operator/controllers/pod_writer.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/clock.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class GangAdmission {
 public:
  // What outlives it. `loop` is null if free capacity is not tracked: all pods are created then.
  struct Surroundings {
    AdmissionLoop* loop = nullptr;
    const runtime::Informer* pods = nullptr;
    PodWriter* writer = nullptr;
    CreationBackoff* backoff = nullptr;
  };
  // `api` is asked for priority classes. `nodes_within`: see Snapshot::nodes_within.
  GangAdmission(std::shared_ptr<kube::KubeApi> api, const Surroundings& around, PodOptions options,
                std::optional<std::chrono::seconds> nodes_within = std::nullopt,
                runtime::Clock clock = {});

  // Sets gang_fit of `snapshot`, and creation_waits where a dry run has shown that the API server
  // refuses the job's pods. Places are held for the pods that the decision creates.
  planner::Decision Plan(planner::Snapshot* snapshot);
  // The job asks for nothing any more; places held for its pods are freed, unless the pods may
  // start.
  void Forget(const std::string& job_key);

 private:
  planner::Decision PlanWithLine(planner::Snapshot* snapshot);
  scheduler::GangFit AskFor(planner::Snapshot* snapshot, const planner::Decision& wishes,
                            const std::vector<std::string>& started);
  // nullopt: nobody knows yet how important the job is, or what its pods take.
  std::optional<scheduler::AdmissionRequest> RequestOf(const planner::Snapshot& snapshot,
                                                       const planner::Decision& wishes);

  // As the API server has written it, or would write it, on the job's pods; nullopt: it has not
  // said.
  struct Importance {
    int priority = 0;
    bool preempts = true;
  };
  static std::optional<Importance> ImportanceOf(const kube::Json& pod);
  std::optional<Importance> ImportanceOf(const api::HorovodJob& job) const;
  void Offer(const planner::Snapshot& snapshot, const planner::Decision& wishes);

  ExpectedPriorities priorities_;
  AdmissionLoop* const loop_;
  const runtime::Informer* const pods_;
  CreationBackoff* const backoff_;
  GrantedPods granted_;
  const std::optional<std::chrono::seconds> nodes_within_;
};

}  // namespace ringmaster::controllers
