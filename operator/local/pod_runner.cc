#include "operator/local/pod_runner.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "common/fields/fields.h"
#include "operator/local/process.h"
#include "operator/local/timestamp.h"

namespace ringmaster::local {
namespace {

using Phase = ContainerState::Phase;
using std::chrono::milliseconds;

// Both look at getppid() and end in order when we are gone; others would only be orphans.
int ParentDeathSignal(const std::string& program) {
  std::string name = std::filesystem::path(program).filename();
  return name == "ringmaster-launcher" || name == "ringmaster-sidecar" ? SIGTERM : SIGKILL;
}

}  // namespace

PodRunner::PodRunner(Json pod, const RunnerOptions& options, RunnerHost& host)
    : options_(options), host_(host), pod_(std::move(pod)) {
  auto add = [&](const Json& spec, ContainerKind kind) {
    Container c;
    c.spec = spec;
    c.state.kind = kind;
    c.state.name = spec.value("name", "");
    c.state.image = spec.value("image", "");
    c.state.reason = "PodInitializing";
    if (kind != ContainerKind::kInit) {
      c.startup.spec = spec.value("startupProbe", Json());
      c.readiness.spec = spec.value("readinessProbe", Json());
    }
    containers_.push_back(std::move(c));
  };
  const Json& spec = pod_["spec"];
  for (const Json& c : fields::List(spec, "initContainers")) {
    add(c,
        c.value("restartPolicy", "") == "Always" ? ContainerKind::kSidecar : ContainerKind::kInit);
  }
  for (const Json& c : fields::List(spec, "containers")) add(c, ContainerKind::kMain);
}

std::string PodRunner::Mark(const Container& c) const {
  return "RINGMASTER_CONTAINER=" + uid() + "/" + c.state.name;
}

std::filesystem::path PodRunner::LogFile(const Container& c) const {
  return options_.run_dir / "logs" / pod_["metadata"]["name"].get<std::string>() /
         (c.state.name + ".log");
}

void PodRunner::Update(Json pod, Clock::time_point now) {
  pod_ = std::move(pod);
  const Json& meta = pod_["metadata"];
  if (meta.contains("deletionTimestamp")) {
    Terminate(std::chrono::seconds(meta.value("deletionGracePeriodSeconds", 0)), now);
  }
}

void PodRunner::Terminate(milliseconds grace, Clock::time_point now) {
  if (!view_terminating_ || now + grace < kill_at_) kill_at_ = now + grace;
  view_terminating_ = true;
}

void PodRunner::Kill(const std::string& reason, const std::string& message, Clock::time_point) {
  killed_ = true;
  reason_ = reason;
  message_ = message;
  // Everybody at once: a sidecar must not see its workers die and tell others.
  for (Container& c : containers_) {
    if (c.pid > 0) kill(-c.pid, SIGKILL);
  }
  for (Container& c : containers_) {
    if (c.pid > 0) KillContainer(c);
  }
}

void PodRunner::Due(Clock::time_point when) {
  if (!next_ || when < *next_) next_ = when;
}

bool PodRunner::AllStopped() const {
  return std::all_of(containers_.begin(), containers_.end(),
                     [](const Container& c) { return c.pid == 0; });
}

bool PodRunner::MainsDone() const {
  return std::all_of(containers_.begin(), containers_.end(), [](const Container& c) {
    return c.state.kind != ContainerKind::kMain || c.state.done;
  });
}

PodView PodRunner::View() const {
  PodView view;
  view.restart_policy = pod_["spec"].value("restartPolicy", "Always");
  view.terminating = view_terminating_;
  view.reason = reason_;
  view.message = message_;
  view.failed = killed_;
  for (const Container& c : containers_) {
    view.containers.push_back(c.state);
    view.failed |= c.state.kind == ContainerKind::kInit && c.state.done && c.state.exit_code != 0;
  }
  return view;
}

std::optional<PodRunner::Log> PodRunner::LogOf(const std::string& name) const {
  for (const Container& c : containers_) {
    if (c.state.name == name || (name.empty() && c.state.kind == ContainerKind::kMain)) {
      bool more = !view_terminating_ && !c.state.done;
      return Log{LogFile(c), c.log_offset, c.pid > 0 || (more && c.starts > 0), c.starts > 0};
    }
  }
  return std::nullopt;
}

void PodRunner::Step(Clock::time_point now) {
  next_.reset();
  if (killed_) return;
  bool init_failed = View().failed;
  if (view_terminating_) {
    StepTerminating(now);
  } else if (MainsDone() || init_failed) {
    if (!finishing_) {
      finishing_ = true;
      kill_at_ =
          now + std::chrono::seconds(pod_["spec"].value("terminationGracePeriodSeconds", 30));
    }
    StepTerminating(now);
  } else {
    StepRunning(now);
  }
}

void PodRunner::StepRunning(Clock::time_point now) {
  for (Container& c : containers_) {
    if (!Advance(c, now)) return;
  }
}

bool PodRunner::Advance(Container& c, Clock::time_point now) {
  if (c.pid == 0 && !c.state.done) {
    if (now < c.not_before) {
      Due(c.not_before);
    } else {
      Start(c, now);
    }
  }
  if (c.pid > 0) StepProbes(c, now);
  switch (c.state.kind) {
    case ContainerKind::kInit:
      return c.state.done && c.state.exit_code == 0;
    case ContainerKind::kSidecar:
      return c.state.started || c.state.restarts > 0;
    case ContainerKind::kMain:
      return true;
  }
  return true;
}

void PodRunner::Start(Container& c, Clock::time_point now) {
  SetupContext context{pod_,
                       c.spec,
                       options_.run_dir / "pods" / uid(),
                       options_.bin_dir,
                       options_.machine_env,
                       {options_.run_mark, Mark(c), "RINGMASTER_POD=" + uid()},
                       [&](const kube::Resource& resource, const std::string& name) {
                         return host_.Read(resource, pod_["metadata"]["namespace"], name);
                       }};
  auto setup = SetUpContainer(context);
  if (!setup) return CannotStart(c, setup.error(), now);
  std::filesystem::path log = LogFile(c);
  std::error_code error;
  std::filesystem::create_directories(log.parent_path(), error);
  c.log_offset = std::filesystem::exists(log, error) ? std::filesystem::file_size(log, error) : 0;
  int death_signal = ParentDeathSignal(setup->argv[0]);
  auto pid =
      Spawn({std::move(setup->argv), std::move(setup->env), setup->working_dir, log, death_signal});
  if (!pid) return CannotStart(c, {"ContainerCannotRun", pid.error()}, now);
  c.pid = *pid;
  ++c.starts;
  c.state.restarts = c.starts - 1;
  c.began = now;
  c.term_sent = false;
  c.state.phase = Phase::kRunning;
  c.state.reason = c.state.message = "";
  c.state.started_at = Timestamp(std::chrono::system_clock::now());
  c.state.id = "local://" + std::to_string(*pid);
  ResetProbes(c, now);
  host_.WatchProcess(*pid, uid());
}

void PodRunner::CannotStart(Container& c, const SetupError& error, Clock::time_point now) {
  if (error.reason == "CreateContainerConfigError") {
    // What is missing may come.
    c.state.phase = Phase::kWaiting;
    c.state.reason = error.reason;
    c.state.message = error.message;
    c.not_before = now + std::chrono::seconds(1);
    Due(c.not_before);
    return;
  }
  ++c.starts;
  c.state.restarts = c.starts - 1;
  c.began = now;
  c.state.started_at = Timestamp(std::chrono::system_clock::now());
  c.state.id.clear();
  Ended(c, error.reason == "ContainerCannotRun" ? 127 : 128, now);
  if (c.state.phase == Phase::kTerminated) {
    c.state.reason = error.reason;
    c.state.message = error.message;
  } else {
    c.state.last_state["terminated"]["reason"] = error.reason;
    c.state.last_state["terminated"]["message"] = error.message;
    c.state.message = error.message + "; " + c.state.message;
  }
}

bool PodRunner::Restarts(const Container& c) const {
  if (killed_ || view_terminating_ || finishing_) return false;
  if (c.state.kind == ContainerKind::kSidecar) return true;
  std::string policy = pod_["spec"].value("restartPolicy", "Always");
  if (c.state.kind == ContainerKind::kInit) return c.state.exit_code != 0 && policy != "Never";
  return policy == "Always" || (policy == "OnFailure" && c.state.exit_code != 0);
}

void PodRunner::Ended(Container& c, int exit_code, Clock::time_point now) {
  c.pid = 0;
  c.state.phase = Phase::kTerminated;
  c.state.exit_code = exit_code;
  c.state.reason = exit_code == 0 ? "Completed" : "Error";
  c.state.message.clear();
  c.state.finished_at = Timestamp(std::chrono::system_clock::now());
  c.state.started = false;
  c.state.ready = c.state.kind == ContainerKind::kInit && exit_code == 0;
  if (c.probe_pid > 0) kill(-c.probe_pid, SIGKILL);
  if (!Restarts(c)) {
    c.state.done = true;
    return;
  }
  Json terminated = {{"exitCode", exit_code},
                     {"reason", c.state.reason},
                     {"startedAt", c.state.started_at},
                     {"finishedAt", c.state.finished_at},
                     {"containerID", c.state.id}};
  c.state.last_state = {{"terminated", terminated}};
  c.crashes = now - c.began >= options_.stable_after ? 1 : c.crashes + 1;
  milliseconds delay{0};  // the first restart is immediate
  if (c.crashes > 1) {
    int doublings = std::min(c.crashes - 2, 20);
    delay = std::min(options_.longest_backoff, options_.first_backoff * (1 << doublings));
  }
  c.not_before = now + delay;
  c.state.phase = Phase::kWaiting;
  c.state.reason = "CrashLoopBackOff";
  c.state.message = "back-off " + std::to_string(delay.count()) +
                    "ms restarting failed container=" + c.state.name +
                    " pod=" + pod_["metadata"]["name"].get<std::string>();
  Due(c.not_before);
}

void PodRunner::OnExit(pid_t pid, int wait_status, Clock::time_point now) {
  for (Container& c : containers_) {
    if (c.probe_pid == pid) {
      KillAll(0, "RINGMASTER_PROBE=" + uid() + "/" + c.state.name);
      c.probe_pid = 0;
      bool passed = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
      if (c.pid > 0) ProbeResult(c, c.probe_is_startup, passed, now);
    } else if (c.pid == pid) {
      // What the process leaves behind belongs to the container and goes with it.
      KillAll(0, Mark(c));
      Ended(c, WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
            now);
    }
  }
}

void PodRunner::SendTerm(Container& c) {
  if (c.term_sent) return;
  c.term_sent = true;
  kill(c.pid, SIGTERM);
}

void PodRunner::KillContainer(Container& c) { KillAll(c.pid, Mark(c)); }

// Main containers first, then sidecars from the last to the first; all at once when the grace
// period is over.
void PodRunner::StepTerminating(Clock::time_point now) {
  bool over = now >= kill_at_;
  bool mains = true;
  for (auto it = containers_.rbegin(); it != containers_.rend(); ++it) {
    Container& c = *it;
    if (c.pid == 0) {
      if (!c.state.done && c.state.phase == Phase::kWaiting) {
        c.state.done = true;
        if (c.starts > 0) {  // in back-off: what it ended with is its end
          c.state.phase = Phase::kTerminated;
          c.state.reason = c.state.last_state["terminated"].value("reason", "Error");
          c.state.message.clear();
        }
      }
      continue;
    }
    if (over) {
      KillContainer(c);
      continue;
    }
    Due(kill_at_);
    if (c.state.kind == ContainerKind::kSidecar) {
      if (!mains) break;
      SendTerm(c);
      break;  // the next sidecar when this one is gone
    }
    SendTerm(c);
    mains = false;
  }
}

}  // namespace ringmaster::local
