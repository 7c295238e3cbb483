// Gang admission: asks the line of waiting jobs how many of a job's pods may start, and plans with
// the answer.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/controllers/admission_loop.h"
#include "operator/controllers/pod_options.h"
#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class GangAdmission {
 public:
  // All outlive it. `loop` is null where nobody counts the nodes: pods aren't gated then.
  // `nodes_within`: Snapshot::nodes_within.
  GangAdmission(AdmissionLoop* loop, const runtime::Informer* pods, PodOptions options,
                std::optional<std::chrono::seconds> nodes_within = std::nullopt)
      : loop_(loop), pods_(pods), options_(std::move(options)), nodes_within_(nodes_within) {}

  // Sets gang_fit of `snapshot`. What the decision admits, or makes without a gate, has a place
  // held for it.
  planner::Decision Plan(planner::Snapshot* snapshot);
  // The job asks for nothing, and nothing is held for pods of it that aren't there.
  void Forget(const std::string& job_key);

 private:
  // nullopt: the cache has moved on, and the next look is about to come.
  std::optional<scheduler::AdmissionRequest> RequestOf(const planner::Snapshot& snapshot,
                                                       const planner::Decision& wishes) const;

  // As its pods have it from the priority class; nullopt: of none it is known.
  struct Importance {
    int priority = 0;
    bool preempts = true;
  };
  std::optional<Importance> ImportanceOf(const api::HorovodJob& job) const;
  void Offer(const planner::Snapshot& snapshot, const planner::Decision& wishes);

  AdmissionLoop* const loop_;
  const runtime::Informer* const pods_;
  const PodOptions options_;
  const std::optional<std::chrono::seconds> nodes_within_;
};

}  // namespace ringmaster::controllers
