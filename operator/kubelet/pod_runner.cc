#include "operator/kubelet/pod_runner.h"

#include <algorithm>

#include "common/fields/fields.h"

namespace ringmaster::kubelet {

PodRunner::PodRunner(Json pod, const RunnerOptions& options, RunnerHost& host)
    : context_{options, host, std::move(pod), std::nullopt} {
  const Json& spec = context_.pod["spec"];
  for (const Json& c : fields::List(spec, "initContainers")) {
    const bool sidecar = fields::Text(c, "restartPolicy") == "Always";
    containers_.emplace_back(c, sidecar ? ContainerKind::kSidecar : ContainerKind::kInit,
                             &context_);
  }
  for (const Json& c : fields::List(spec, "containers")) {
    containers_.emplace_back(c, ContainerKind::kMain, &context_);
  }
}

void PodRunner::Update(Json pod, Clock::time_point now) {
  context_.pod = std::move(pod);
  const Json& meta = context_.pod["metadata"];
  if (meta.contains("deletionTimestamp")) {
    Terminate(std::chrono::seconds(meta.value("deletionGracePeriodSeconds", 0)), now);
  }
}

void PodRunner::Terminate(std::chrono::milliseconds grace, Clock::time_point now) {
  if (!terminating_ || now + grace < kill_at_) kill_at_ = now + grace;
  terminating_ = true;
}

void PodRunner::ShutDown(std::chrono::milliseconds grace, Clock::time_point now) {
  if (!terminating_ && !killed_ && !MainsDone()) {
    shut_down_ = true;
    reason_ = "Terminated";
    message_ = "the node of the pod has ended";
  }
  Terminate(grace, now);
}

void PodRunner::Kill(const std::string& reason, const std::string& message, Clock::time_point) {
  killed_ = true;
  reason_ = reason;
  message_ = message;
  // All at once: a sidecar must not see its workers die and tell others.
  for (ContainerRunner& c : containers_) {
    if (c.running()) c.KillGroup();
  }
  for (ContainerRunner& c : containers_) {
    if (c.running()) c.Kill();
  }
}

bool PodRunner::AllStopped() const {
  return std::none_of(containers_.begin(), containers_.end(),
                      [](const ContainerRunner& c) { return c.running(); });
}

bool PodRunner::MainsDone() const {
  return std::all_of(containers_.begin(), containers_.end(), [](const ContainerRunner& c) {
    return c.state().kind != ContainerKind::kMain || c.state().done;
  });
}

PodView PodRunner::View() const {
  PodView view;
  view.restart_policy = context_.restart_policy();
  view.terminating = terminating_;
  view.reason = reason_;
  view.message = message_;
  view.failed = killed_ || shut_down_;
  for (const ContainerRunner& c : containers_) {
    const ContainerState& state = c.state();
    view.containers.push_back(state);
    view.failed |= state.kind == ContainerKind::kInit && state.done && state.exit_code != 0;
  }
  return view;
}

std::optional<PodRunner::Log> PodRunner::LogOf(const std::string& name) const {
  for (const ContainerRunner& c : containers_) {
    if (c.state().name == name || (name.empty() && c.state().kind == ContainerKind::kMain)) {
      return c.Log(terminating_);
    }
  }
  return std::nullopt;
}

void PodRunner::Step(Clock::time_point now) {
  context_.next.reset();
  if (killed_) return;
  bool init_failed = View().failed;
  if (terminating_) {
    StepTerminating(now);
  } else if (MainsDone() || init_failed) {
    if (!finishing_) {
      finishing_ = true;
      kill_at_ = now + std::chrono::seconds(fields::Integer(context_.pod["spec"],
                                                            "terminationGracePeriodSeconds", 30));
    }
    StepTerminating(now);
  } else {
    StepRunning(now);
  }
}

void PodRunner::StepRunning(Clock::time_point now) {
  for (ContainerRunner& c : containers_) {
    if (!c.Advance(now)) return;
  }
}

void PodRunner::OnExit(pid_t pid, int wait_status, Clock::time_point now) {
  const bool goes_on = !killed_ && !terminating_ && !finishing_;
  for (ContainerRunner& c : containers_) c.OnExit(pid, wait_status, goes_on, now);
}

void PodRunner::OnProbe(const std::string& container, int start, bool passed,
                        Clock::time_point now) {
  for (ContainerRunner& c : containers_) {
    if (c.state().name == container) c.OnProbe(start, passed, now);
  }
}

// Main containers first, then sidecars from the last to the first; all at once when the grace
// period is over.
void PodRunner::StepTerminating(Clock::time_point now) {
  bool over = now >= kill_at_;
  bool mains = true;
  for (auto c = containers_.rbegin(); c != containers_.rend(); ++c) {
    if (!c->running()) {
      c->StopWaiting();
      continue;
    }
    if (over) {
      c->Kill();
      continue;
    }
    context_.Due(kill_at_);
    const bool sidecar = c->state().kind == ContainerKind::kSidecar;
    if (sidecar && !mains) break;
    c->SendTerm();
    if (sidecar) break;  // the next sidecar when this one is gone
    mains = false;
  }
}

}  // namespace ringmaster::kubelet
