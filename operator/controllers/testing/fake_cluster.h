// Kubelet and sidecars for tests of the operator: pods start and end at once, and sidecars agree on
// every view without a vote.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/membership/view.h"
#include "operator/controllers/sidecar_registry.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

class FakeCluster {
 public:
  // `bind` replaces the scheduler: it gives the pod with that name a node.
  FakeCluster(std::shared_ptr<kube::KubeApi> api, std::string ns, SidecarRegistry* registry,
              std::function<void(const std::string& pod)> bind);
  ~FakeCluster();

  // Pods of these names start, but their workers never call init().
  void NeverReady(const std::string& pod);
  // Cuts the pod's node off: its sidecar and kubelet are silent, and the other pods continue
  // without it.
  void LosePod(const std::string& pod);
  // Sidecars that start from now on report this boot id.
  void SetBootId(const std::string& boot_id);
  // Ends the pod as a kubelet would report it; the exit code is that of all containers.
  void EndPod(const std::string& pod, int exit_code);
  // All ranks agree to end, and every pod of the view ends with 0.
  void FinishJob();
  void RestartWorker(const std::string& pod, int exit_code);
  // Every sidecar connects again, to another operator.
  void MoveTo(SidecarRegistry* registry);

  std::vector<std::string> Members() const;  // pod names of the view, sorted
  std::uint64_t epoch() const;
  bool WasTold(const std::string& pod,
               const std::string& kind) const;  // "ViewDecided", "Drain", ...

 private:
  class Sink;
  struct Pod {
    std::string name;
    std::string uid;
    SidecarRegistry::ConnectionId connection = 0;
    membership::Candidate candidate;
    std::vector<job::WorkerExit> exits;  // that it has told of
    bool ended = false;
    bool lost = false;  // silent, and not ended by its kubelet
  };

  void Watch(std::stop_token stop);
  void OnPod(const kube::Json& object, bool deleted);
  void Connect(Pod& pod);
  void OnNotice(const std::string& pod_uid, const planner::Notice& notice);
  // All members install the view that `change` makes of the newest one.
  void Decide(membership::Reason reason, const std::function<void(membership::View&)>& change);
  void Announce();
  // The kubelet ends a deleted pod and reports that.
  void Terminate(const kube::Json& object);
  void Drop(const std::string& uid);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::string ns_;
  const std::function<void(const std::string& pod)> bind_;
  mutable std::recursive_mutex mu_;
  SidecarRegistry* registry_;                           // guarded by mu_
  std::map<std::string, Pod> pods_;                     // by uid; guarded by mu_
  std::string boot_id_;                                 // guarded by mu_
  std::set<std::string> terminated_;                    // uids; guarded by mu_
  std::set<std::string> never_ready_;                   // guarded by mu_
  std::set<std::pair<std::string, std::string>> told_;  // guarded by mu_
  membership::ViewPtr view_;                            // guarded by mu_
  std::string job_name_, job_uid_;                      // guarded by mu_
  std::jthread thread_;
};

}  // namespace ringmaster::controllers
