// Stands in for Kueue's controllers in tests: one queue with a quota of pods, decided on as Kueue's
// documentation says (docs/kueue.md has the sources). It does nothing by itself: a test calls Step.
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
    std::string queue;     // LocalQueue
    std::string flavor;    // ResourceFlavor of all that is admitted
    std::string resource;  // that the flavour is for
    int quota = 0;         // pods
  };
  KueueStandIn(kube::KubeApi* api, Options options) : api_(api), options_(std::move(options)) {}

  void SetQuota(int pods) { options_.quota = pods; }
  // One round over all Workloads of the queue: admits what fits, the more important first, fewer
  // pods where the Workload allows that; evicts what was deactivated.
  void Step();
  // What a preemption does.
  void Evict(const std::string& workload, const std::string& reason, const std::string& message);
  kube::Json Workload(const std::string& name) const;

  // What Kueue's webhook would have refused of what was written since the last Step.
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
