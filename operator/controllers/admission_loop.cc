#include "operator/controllers/admission_loop.h"

#include <utility>

#include "common/fields/fields.h"
#include "common/sync/pause.h"
#include "operator/controllers/pod_identity.h"
#include "operator/controllers/slim_objects.h"

namespace ringmaster::controllers {
namespace {

// Capacity changes in bursts, so one pass decides about all changes of a short time.
constexpr std::chrono::milliseconds kBetweenPasses{100};

}  // namespace

void AdmissionLoop::Expect(std::set<std::string> jobs) {
  const sync::MutexLock lock(&mu_);
  expected_ = std::move(jobs);
  expected_until_ = std::chrono::steady_clock::now() + kMostPatience;
}

void AdmissionLoop::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

void AdmissionLoop::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void AdmissionLoop::OnPod(const kube::Json& pod, bool deleted) {
  const sync::MutexLock lock(&mu_);
  if (deleted) {
    const std::string uid = fields::TextAt(pod, "/metadata/uid");
    leaving_.Remove(uid);
    admission_.capacity().RemovePod(uid);
  } else {
    admission_.capacity().SetPod(pod, IsWorkerPod(pod) ? JobKeyOf(pod) : "",
                                 leaving_.By(pod, clock_()));
  }
  NotifyIfDue();
}

void AdmissionLoop::OnNode(const kube::Json& node, bool deleted) {
  const sync::MutexLock lock(&mu_);
  if (deleted) {
    admission_.capacity().RemoveNode(fields::TextAt(node, "/metadata/name"));
  } else {
    admission_.capacity().SetNode(node);
  }
  NotifyIfDue();
}

scheduler::GangFit AdmissionLoop::Ask(scheduler::AdmissionRequest request,
                                      const std::vector<std::string>& started) {
  const sync::MutexLock lock(&mu_);
  expected_.erase(request.job);
  const bool at_once = HeardAll();
  scheduler::GangFit fit = admission_.Ask(std::move(request), started, at_once);
  NotifyIfDue();
  return fit;
}

void AdmissionLoop::Withdraw(const std::string& job, const std::vector<std::string>& started) {
  const sync::MutexLock lock(&mu_);
  expected_.erase(job);
  admission_.Withdraw(job, started);
  NotifyIfDue();
}

void AdmissionLoop::SetHolding(scheduler::Holding holding) {
  const sync::MutexLock lock(&mu_);
  admission_.SetHolding(std::move(holding));
  NotifyIfDue();
}

void AdmissionLoop::RemoveHolding(const std::string& job) {
  const sync::MutexLock lock(&mu_);
  admission_.RemoveHolding(job);
  NotifyIfDue();
}

void AdmissionLoop::SetNodeCallRules(scheduler::NodeCallRules rules) {
  const sync::MutexLock lock(&mu_);
  admission_.SetNodeCallRules(rules);
}

void AdmissionLoop::SetCalling(const std::string& job, bool calls, bool alone) {
  const sync::MutexLock lock(&mu_);
  admission_.SetCalling(job, calls, alone);
  NotifyIfDue();
}

std::vector<scheduler::PodDemand> AdmissionLoop::DemandsOn(const std::string& job) {
  const sync::MutexLock lock(&mu_);
  return admission_.DemandsOn(job);
}

void AdmissionLoop::NotifyIfDue() {
  if (admission_.IsPassDue() && HeardAll()) due_.NotifyOne();
}

bool AdmissionLoop::HeardAll() {
  if (std::chrono::steady_clock::now() >= expected_until_) expected_.clear();
  return expected_.empty();
}

void AdmissionLoop::AwaitChange(const std::stop_token& stop) {
  while (!admission_.IsPassDue() && !stop.stop_requested()) {
    const auto at = admission_.look_again();
    if (!at) {
      due_.Wait(&mu_, stop);
    } else if (const auto left = *at - clock_(); left.count() <= 0) {
      admission_.LookAgain();
    } else {
      (void)due_.WaitUntil(&mu_, stop, std::chrono::steady_clock::now() + left);
    }
  }
}

void AdmissionLoop::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::vector<std::string> changed;
    {
      const sync::MutexLock lock(&mu_);
      while (!HeardAll() && !stop.stop_requested())
        (void)due_.WaitUntil(&mu_, stop, expected_until_);
      AwaitChange(stop);
      if (stop.stop_requested()) return;
      changed = admission_.Pass(clock_());
    }
    for (const std::string& job : changed) changed_(job);
    sync::Pause(stop, kBetweenPasses);
  }
}

}  // namespace ringmaster::controllers
