// One ringmaster-operator from start to end: it waits for the API server, takes part in the
// election, runs the operator while it leads, serves health and metrics, and stops everything in
// order.
//
// Thread rule: Run once, from the main thread; RequestStop from any.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/app/api_clients.h"
#include "operator/app/leadership.h"
#include "operator/app/operator_app.h"
#include "operator/app/operator_config.h"
#include "operator/app/operator_metrics.h"
#include "operator/app/page.h"
#include "operator/app/status_endpoints.h"
#include "operator/kube/kube_api.h"
#include "operator/kube/kubeconfig.h"

namespace ringmaster::app {

enum class ProcessExit : int {
  kStopped = 0,
  kFailed = 1,        // the API server was unreachable for too long, an address is in use
  kWrongConfig = 2,   // flags, config file
  kNoApi = 3,         // kubeconfig or service account can't be read
  kLostLease = 4,     // another replica may lead: the process starts anew
  kSecondSignal = 5,  // ended at once, as requested
};

// What the pod's environment says about itself; empty outside a cluster.
struct ProcessIdentity {
  std::string pod_name;
  std::string pod_uid;
  std::string pod_namespace;
  std::string version;
};

class OperatorProcess {
 public:
  // `open_page` may be null: then there is no page.
  OperatorProcess(OperatorConfig config, kube::ClientConfig client, ProcessIdentity identity,
                  OpenPage open_page);
  ~OperatorProcess();

  ProcessExit Run();
  void RequestStop();

 private:
  bool Listen();
  bool AwaitApiServer();
  void CheckRights();
  bool AwaitLeadership();
  kube::Result<void> RunOperator();
  kube::Result<void> OpenThePage();
  void StopAll();
  OperatorOptions AppOptions() const;
  std::string LeaseNamespace() const;
  std::string OwnNamespace() const;

  // The answers of /readyz and /healthz; empty: no problem.
  std::vector<std::string> NotReady() const;
  std::vector<std::string> NotAlive() const;
  std::string Metrics();

  const OperatorConfig config_;
  const ProcessIdentity identity_;
  const OpenPage open_page_;
  OperatorMetrics metrics_;
  ApiClients clients_;
  std::stop_source stop_;
  Leadership leadership_;

  mutable sync::Mutex mu_;
  sync::CondVar changed_;
  std::string api_problem_ GUARDED_BY(mu_);

  // Only Run's thread sets these pointers, under mu_, because other threads read them under mu_ for
  // their answers. Run's thread reads them without it, so they have no GUARDED_BY.
  std::shared_ptr<kube::KubeApi> api_;
  std::unique_ptr<OperatorApp> app_;
  std::unique_ptr<Page> page_;  // while it leads, if the page is enabled

  StatusEndpoints endpoints_;  // last: its answers read the other fields
};

}  // namespace ringmaster::app
