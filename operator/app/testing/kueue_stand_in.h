// Replaces Kueue's controllers in tests: one queue with a quota of pods, with the decisions that
// Kueue's documentation describes (docs/kueue.md has the sources). It acts only when a test calls
// Step.
//
// Thread rule: one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::app {

class KueueStandIn {
 public:
  struct Options {
    std::string queue;     // name of the LocalQueue
    std::string flavor;    // ResourceFlavor for everything that is admitted
    std::string resource;  // resource of the flavour
    int quota = 0;         // pods
  };
  KueueStandIn(kube::KubeApi* api, Options options) : api_(api), options_(std::move(options)) {}

  void SetQuota(int pods) { options_.quota = pods; }
  // One round over all Workloads of the queue: admits those that fit, more important ones first,
  // with fewer pods if the Workload allows that; evicts deactivated ones.
  void Step();
  // Evicts the Workload, as a preemption does.
  void Evict(const std::string& workload, const std::string& reason, const std::string& message);
  kube::Json Workload(const std::string& name) const;

  // Changes since the last Step that Kueue's webhook would have refused.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  int Used(const std::vector<kube::Json>& workloads) const;
  void Check(const kube::Json& workload);
  void Decide(const kube::Json& workload, int room);
  void PatchStatus(const kube::Json& workload, kube::Json status,
                   const std::vector<kube::Json>& conditions);

  kube::KubeApi* const api_;
  Options options_;
  std::map<std::string, kube::Json> seen_;  // by name, as of the last Step
  std::vector<std::string> violations_;
};

}  // namespace ringmaster::app
