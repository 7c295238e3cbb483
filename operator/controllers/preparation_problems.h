// Finds out why pods that have a node get no container: mostly a volume can't be mounted. Events
// say so, but the pod's status does not. The events about such a pod are therefore listed once it
// has waited longer than usual, and again at growing intervals; no watch is used.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

class PreparationProblems {
 public:
  using Clock = std::chrono::steady_clock;

  // Most pods are prepared within `patience`.
  PreparationProblems(std::shared_ptr<kube::KubeApi> api, std::chrono::milliseconds patience)
      : api_(std::move(api)), patience_(patience) {}

  static constexpr std::chrono::minutes kRarest{5};
  // The number of pods per job whose events are listed: the others most likely wait for the same
  // reason.
  static constexpr std::size_t kAsked = 3;

  // Sets `unstartable` of the pods of one job as far as it is known. Returns how soon to look
  // again; nullopt: there is nothing to find out.
  std::optional<std::chrono::milliseconds> Explain(const std::string& job_key,
                                                   const std::string& ns,
                                                   std::vector<planner::PodFacts>* pods,
                                                   Clock::time_point now);
  void Forget(const std::string& job_key);

 private:
  struct Wait {
    std::chrono::milliseconds pause;  // before the next listing
    Clock::time_point look_at;
    planner::Unstartable found;  // from the newest event
  };
  using Waits = std::map<std::string, Wait>;  // by pod uid

  void Look(const std::string& ns, const planner::PodFacts& pod, Wait* wait) const;

  const std::shared_ptr<kube::KubeApi> api_;
  const std::chrono::milliseconds patience_;
  sync::Mutex mu_;
  std::map<std::string, Waits> waits_ GUARDED_BY(mu_);  // by job key
};

}  // namespace ringmaster::controllers
