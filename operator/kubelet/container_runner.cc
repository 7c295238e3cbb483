#include "operator/kubelet/container_runner.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/api/time.h"
#include "operator/kubelet/log_folder.h"
#include "operator/kubelet/process.h"

namespace ringmaster::kubelet {
namespace {

using Phase = ContainerState::Phase;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Both look at getppid() and end in order when we are gone; others would only be orphans.
int ParentDeathSignal(const std::string& program) {
  std::string name = std::filesystem::path(program).filename();
  return name == "ringmaster-launcher" || name == "ringmaster-sidecar" ? SIGTERM : SIGKILL;
}

// Entries of the environment by which the processes of a container, or of its probe, are found.
std::string ContainerMark(const PodContext& pod, const std::string& container) {
  return "RINGMASTER_CONTAINER=" + pod.uid() + "/" + container;
}
std::string ProbeMark(const PodContext& pod, const std::string& container) {
  return "RINGMASTER_PROBE=" + pod.uid() + "/" + container;
}

std::string Variable(const std::vector<std::string>& env, const std::string& name) {
  for (const std::string& entry : env) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return "";
}

// What a container was started with is what its probes run with: nothing is read anew for them.
ContainerSetup ProbeSetup(ContainerSetup setup, const PodContext& pod,
                          const std::string& container) {
  const std::string mark = ContainerMark(pod, container);
  std::replace(setup.env.begin(), setup.env.end(), mark, ProbeMark(pod, container));
  return setup;
}

std::filesystem::path LogFile(const PodContext& pod, const std::string& container) {
  return pod.options.run_dir / "logs" / LogFolder(pod.ns(), pod.name()) / (container + ".log");
}

ContainerState FirstState(const Json& spec, ContainerKind kind) {
  ContainerState state;
  state.kind = kind;
  state.name = fields::Text(spec, "name");
  state.image = fields::Text(spec, "image");
  state.reason = "PodInitializing";
  return state;
}

ContainerProbes ProbesOf(const Json& spec, ContainerKind kind) {
  if (kind == ContainerKind::kInit) return {Json(), Json()};
  return {fields::Member(spec, "startupProbe"), fields::Member(spec, "readinessProbe")};
}

bool RestartsAfter(const ContainerState& state, const std::string& policy) {
  switch (state.kind) {
    case ContainerKind::kSidecar:
      return true;
    case ContainerKind::kInit:
      return state.exit_code != 0 && policy != "Never";
    case ContainerKind::kMain:
      return policy == "Always" || (policy == "OnFailure" && state.exit_code != 0);
  }
  return false;
}

// Where a probe over a socket goes. Our sidecar takes a free port here; the operator writes its
// address to the pod when it registers.
std::optional<std::string> ProbeAddress(const PodContext& pod, const Json& container,
                                        const Json& port) {
  if (IsSidecarImage(fields::Text(container, "image"))) {
    const Json& notes = fields::Member(pod.pod["metadata"], "annotations");
    std::string address = fields::Text(notes, api::kHttpAnnotation);
    return address.empty() ? std::nullopt : std::optional(address);
  }
  if (port.is_number_integer()) return pod.options.address + ":" + std::to_string(port.get<int>());
  for (const Json& declared : fields::List(container, "ports")) {
    if (port.is_string() && fields::Text(declared, "name") == port.get<std::string>()) {
      return pod.options.address + ":" + std::to_string(fields::Integer(declared, "containerPort"));
    }
  }
  return std::nullopt;
}

milliseconds Timeout(const Json& probe) {
  return seconds(std::max<int64_t>(1, fields::Integer(probe, "timeoutSeconds", 1)));
}

}  // namespace

ContainerRunner::ContainerRunner(const Json& spec, ContainerKind kind, PodContext* pod)
    : pod_(pod), spec_(spec), state_(FirstState(spec, kind)), probes_(ProbesOf(spec, kind)) {}

bool ContainerRunner::Advance(Clock::time_point now) {
  if (pid_ == 0 && !state_.done) {
    if (now < not_before_) {
      pod_->Due(not_before_);
    } else {
      Start(now);
    }
  }
  if (pid_ > 0) StepProbes(now);
  switch (state_.kind) {
    case ContainerKind::kInit:
      return state_.done && state_.exit_code == 0;
    case ContainerKind::kSidecar:
      return state_.started || state_.restarts > 0;
    case ContainerKind::kMain:
      return true;
  }
  return true;
}

tl::expected<ContainerSetup, SetupError> ContainerRunner::SetUp() const {
  return SetUpContainer(
      {pod_->pod,
       spec_,
       pod_->options.run_dir / "pods" / pod_->uid(),
       pod_->options.bin_dir,
       pod_->options.address,
       pod_->options.machine_env,
       {pod_->options.run_mark, ContainerMark(*pod_, state_.name), "RINGMASTER_POD=" + pod_->uid()},
       [this](const kube::Resource& resource, const std::string& name) {
         return pod_->host.Read(resource, pod_->pod["metadata"]["namespace"], name);
       }});
}

void ContainerRunner::Start(Clock::time_point now) {
  auto setup = SetUp();
  if (!setup) return CannotStart(setup.error(), now);
  probe_setup_ = ProbeSetup(*setup, *pod_, state_.name);
  std::filesystem::path log = LogFile(*pod_, state_.name);
  std::error_code error;
  std::filesystem::create_directories(log.parent_path(), error);
  if (starts_ > 0) previous_offset_ = log_offset_;
  log_offset_ = std::filesystem::exists(log, error) ? std::filesystem::file_size(log, error) : 0;
  int death_signal = ParentDeathSignal(setup->argv[0]);
  auto pid =
      Spawn({std::move(setup->argv), std::move(setup->env), setup->working_dir, log, death_signal});
  if (!pid) return CannotStart({"ContainerCannotRun", pid.error()}, now);
  pid_ = *pid;
  ++starts_;
  state_.restarts = starts_ - 1;
  began_ = now;
  term_sent_ = false;
  state_.phase = Phase::kRunning;
  state_.reason = state_.message = "";
  state_.started_at = api::FormatTime(std::chrono::system_clock::now());
  state_.id = "local://" + std::to_string(*pid);
  probes_.Begin(now);
  ShowProbes();
  pod_->host.WatchProcess(*pid, pod_->uid());
}

void ContainerRunner::CannotStart(const SetupError& error, Clock::time_point now) {
  if (error.reason == "CreateContainerConfigError") {
    // What is missing may come.
    state_.phase = Phase::kWaiting;
    state_.reason = error.reason;
    state_.message = error.message;
    not_before_ = now + seconds(1);
    pod_->Due(not_before_);
    return;
  }
  ++starts_;
  state_.restarts = starts_ - 1;
  began_ = now;
  state_.started_at = api::FormatTime(std::chrono::system_clock::now());
  state_.id.clear();
  Ended(error.reason == "ContainerCannotRun" ? 127 : 128, true, now);
  if (state_.phase == Phase::kTerminated) {
    state_.reason = error.reason;
    state_.message = error.message;
  } else {
    state_.last_state["terminated"]["reason"] = error.reason;
    state_.last_state["terminated"]["message"] = error.message;
    state_.message = error.message + "; " + state_.message;
  }
}

void ContainerRunner::Ended(int exit_code, bool pod_goes_on, Clock::time_point now) {
  pid_ = 0;
  state_.phase = Phase::kTerminated;
  state_.exit_code = exit_code;
  state_.reason = exit_code == 0 ? "Completed" : "Error";
  state_.message.clear();
  state_.finished_at = api::FormatTime(std::chrono::system_clock::now());
  state_.started = false;
  state_.ready = state_.kind == ContainerKind::kInit && exit_code == 0;
  if (exec_probe_.pid > 0) kill(-exec_probe_.pid, SIGKILL);
  if (!pod_goes_on || !RestartsAfter(state_, pod_->restart_policy())) {
    state_.done = true;
    return;
  }
  Json terminated = {{"exitCode", exit_code},
                     {"reason", state_.reason},
                     {"startedAt", state_.started_at},
                     {"finishedAt", state_.finished_at},
                     {"containerID", state_.id}};
  state_.last_state = {{"terminated", terminated}};
  crashes_ = now - began_ >= pod_->options.stable_after ? 1 : crashes_ + 1;
  milliseconds delay{0};  // the first restart is immediate
  if (crashes_ > 1) {
    int doublings = std::min(crashes_ - 2, 20);
    delay = std::min(pod_->options.longest_backoff, pod_->options.first_backoff * (1 << doublings));
  }
  not_before_ = now + delay;
  state_.phase = Phase::kWaiting;
  state_.reason = "CrashLoopBackOff";
  state_.message = "back-off " + std::to_string(delay.count()) +
                   "ms restarting failed container=" + state_.name + " pod=" + pod_->name();
  pod_->Due(not_before_);
}

void ContainerRunner::OnExit(pid_t pid, int wait_status, bool pod_goes_on, Clock::time_point now) {
  if (exec_probe_.pid == pid) {
    KillAll(0, ProbeMark(*pod_, state_.name));
    exec_probe_.pid = 0;
    bool passed = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    if (pid_ > 0) CountProbe(exec_probe_.kind, passed, now);
  } else if (pid_ == pid) {
    // What the process leaves behind belongs to the container and goes with it.
    KillAll(0, ContainerMark(*pod_, state_.name));
    Ended(WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
          pod_goes_on, now);
  }
}

void ContainerRunner::SendTerm() {
  if (term_sent_) return;
  term_sent_ = true;
  kill(pid_, SIGTERM);
}

void ContainerRunner::Kill() { KillAll(pid_, ContainerMark(*pod_, state_.name)); }

void ContainerRunner::KillGroup() { kill(-pid_, SIGKILL); }

void ContainerRunner::StopWaiting() {
  if (state_.done || state_.phase != Phase::kWaiting) return;
  state_.done = true;
  if (starts_ == 0) return;
  // In back-off: what it ended with is its end.
  state_.phase = Phase::kTerminated;
  state_.reason = state_.last_state["terminated"].value("reason", "Error");
  state_.message.clear();
}

ContainerLog ContainerRunner::Log(bool pod_ends) const {
  bool more = !pod_ends && !state_.done;
  return {LogFile(*pod_, state_.name), log_offset_, pid_ > 0 || (more && starts_ > 0), starts_ > 0,
          previous_offset_};
}

// ---- Probes

void ContainerRunner::StepProbes(Clock::time_point now) {
  if (exec_probe_.pid > 0) {
    if (now >= exec_probe_.deadline) {
      kill(-exec_probe_.pid, SIGKILL);
    } else {
      pod_->Due(exec_probe_.deadline);
    }
    return;
  }
  const auto due = probes_.due();
  if (!due) return;
  if (now < *due) return pod_->Due(*due);
  RunProbe(now);
}

void ContainerRunner::RunProbe(Clock::time_point now) {
  const ContainerProbes::Kind kind = probes_.current();
  const Json& probe = probes_.Run(now);
  if (probe.contains("exec")) {
    if (!StartExecProbe(probe)) return CountProbe(kind, false, now);
    exec_probe_.kind = kind;
    exec_probe_.deadline = now + Timeout(probe);
    pod_->Due(exec_probe_.deadline);
    return;
  }
  bool http = probe.contains("httpGet");
  if (!http && !probe.contains("tcpSocket")) return CountProbe(kind, true, now);
  const Json& action = probe[http ? "httpGet" : "tcpSocket"];
  auto address = ProbeAddress(*pod_, spec_, fields::Member(action, "port"));
  if (!address) return CountProbe(kind, false, now);
  probes_.Await();
  std::string path = fields::Text(action, "path");
  if (path.empty()) path = "/";
  pod_->host.ProbeHttp(pod_->uid(), state_.name, starts_, *address, http ? path : "",
                       Timeout(probe));
}

bool ContainerRunner::StartExecProbe(const Json& probe) {
  const Json& command = fields::List(probe["exec"], "command");
  std::vector<std::string> argv;
  for (const Json& word : command) argv.push_back(word.is_string() ? word.get<std::string>() : "");
  const auto program = argv.empty() ? std::nullopt
                                    : FindProgram(argv[0], Variable(probe_setup_.env, "PATH"),
                                                  probe_setup_.working_dir);
  if (!program) return false;
  argv[0] = program->string();
  auto pid = Spawn({argv, probe_setup_.env, probe_setup_.working_dir, "/dev/null", SIGKILL});
  if (!pid) return false;
  exec_probe_.pid = *pid;
  pod_->host.WatchProcess(*pid, pod_->uid());
  return true;
}

void ContainerRunner::OnProbe(int start, bool passed, Clock::time_point now) {
  if (starts_ != start || pid_ == 0) return;
  probes_.Answered();
  CountProbe(probes_.current(), passed, now);
}

void ContainerRunner::CountProbe(ContainerProbes::Kind kind, bool passed, Clock::time_point now) {
  const bool was_started = probes_.started();
  pod_->Due(probes_.NextOf(kind));
  if (!probes_.Count(kind, passed)) Kill();
  if (!was_started && probes_.started()) pod_->Due(now);
  ShowProbes();
}

void ContainerRunner::ShowProbes() {
  const bool probed = state_.kind != ContainerKind::kInit;
  state_.started = probed && probes_.started();
  state_.ready = probed && probes_.ready();
}

}  // namespace ringmaster::kubelet
