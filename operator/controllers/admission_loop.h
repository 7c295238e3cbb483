// The line of jobs that wait for capacity (scheduler/admission.h). The caches of pods and nodes
// feed it, and a thread of its own decides for all waiting jobs when something has changed.
//
// Thread rule: every method is safe from any thread, except Start and Stop, which are called from
// one. No method calls the API server, so the lock is never held for long.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/controllers/leaving_pods.h"
#include "operator/kube/kube_api.h"
#include "operator/scheduler/admission.h"

namespace ringmaster::controllers {

class AdmissionLoop {
 public:
  using Clock = std::function<scheduler::Moment()>;
  // `changed` is called when a job (namespace/name) may start other pods than before.
  explicit AdmissionLoop(std::function<void(const std::string& job)> changed,
                         Clock clock = std::chrono::system_clock::now)
      : changed_(std::move(changed)), clock_(std::move(clock)) {}
  // Sets which jobs call for nodes. Call it before Start().
  void SetNodeCallRules(scheduler::NodeCallRules rules);
  ~AdmissionLoop() { Stop(); }

  // Sets the jobs that exist already. Call it before Start(). A new operator has an empty line, so
  // it decides nothing before all these jobs have asked or withdrawn, or kMostPatience has passed:
  // otherwise the first job to ask would overtake older or more important ones.
  void Expect(std::set<std::string> jobs);
  void Start();
  void Stop();

  // Handlers of the caches.
  void OnPod(const kube::Json& pod, bool deleted);
  void OnNode(const kube::Json& node, bool deleted);

  // See scheduler::Admission.
  scheduler::GangFit Ask(scheduler::AdmissionRequest request,
                         const std::vector<std::string>& started);
  void Withdraw(const std::string& job, const std::vector<std::string>& started = {});
  void SetHolding(scheduler::Holding holding);
  void RemoveHolding(const std::string& job);
  void SetCalling(const std::string& job, bool calls, bool alone = false);
  std::vector<scheduler::PodDemand> DemandsOn(const std::string& job);

 private:
  static constexpr std::chrono::seconds kMostPatience{5};

  void Run(std::stop_token stop);
  void NotifyIfDue() REQUIRES(mu_);
  bool HeardAll() REQUIRES(mu_);
  // Blocks until a pass is due.
  void AwaitChange(const std::stop_token& stop) REQUIRES(mu_);

  const std::function<void(const std::string&)> changed_;
  const Clock clock_;
  sync::Mutex mu_;
  sync::StoppableCondVar due_;
  scheduler::Admission admission_ GUARDED_BY(mu_);
  LeavingPods leaving_ GUARDED_BY(mu_);
  std::set<std::string> expected_ GUARDED_BY(mu_);
  std::chrono::steady_clock::time_point expected_until_ GUARDED_BY(mu_);
  std::jthread thread_;
};

}  // namespace ringmaster::controllers
