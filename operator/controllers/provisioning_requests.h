// The ProvisioningRequests of jobs, by which cluster-autoscaler is asked for nodes
// (operator/provisioning): reads what they say, makes those that the planner wants, and deletes
// those that are of no use any more. The job owns them and their PodTemplates.
//
// Thread rule: Start and Stop from one thread, the others from any, for one job from one thread at
// a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/controllers/creation_backoff.h"
#include "operator/controllers/event_writer.h"
#include "operator/controllers/pod_options.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

// The versions that this operator supports, the newest first.
const std::vector<kube::Resource>& ProvisioningRequestVersions();

struct ProvisioningOptions {
  // The API version, if the API server serves these requests and they are used.
  std::optional<kube::Resource> version;
  std::string class_name = provisioning::kBestEffortAtomic;  // of jobs that name none
  std::chrono::seconds within{900};                          // the autoscaler tries for so long
};

class ProvisioningRequests {
 public:
  // `changed` is called when a request of this job (namespace/name) has changed.
  ProvisioningRequests(std::shared_ptr<kube::KubeApi> api, ProvisioningOptions options,
                       std::vector<std::string> namespaces, PodOptions pod,
                       const std::function<void(const std::string& job_key)>& changed);

  void Start();
  void Stop();
  // Requests could be read, or the reason why not is known; also true if they are not used.
  bool HasAnswer() const;

  // What the job's requests say, from the cache; nullopt: they are not used for this job.
  std::optional<provisioning::Requests> Look(const planner::Snapshot& snapshot) const;

  // Carries out the decision's part. False: look again after a while.
  struct Reports {
    CreationBackoff* backoff = nullptr;
    EventWriter* events = nullptr;
  };
  bool Apply(const planner::Snapshot& snapshot, const planner::Decision& decision,
             const Reports& reports);

 private:
  kube::Json PodOf(const api::HorovodJob& job) const;
  // Returns the name of the new request; empty: it was there already.
  kube::Result<std::string> Make(const planner::Snapshot& snapshot,
                                 const provisioning::Wanted& wanted);
  kube::Result<void> Drop(const api::HorovodJob& job, const planner::RequestDrop& request,
                          api::Time now);

  const std::shared_ptr<kube::KubeApi> api_;
  const ProvisioningOptions options_;
  const PodOptions pod_;
  std::unique_ptr<runtime::Informer> cache_;  // null: requests are not used
};

}  // namespace ringmaster::controllers
