// Startup and readiness probes of PodRunner.
#include <signal.h>

#include "operator/api/labels.h"
#include "operator/local/pod_runner.h"
#include "operator/local/process.h"

namespace ringmaster::local {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

milliseconds Period(const Json& probe) {
  return std::max(seconds(1), seconds(probe.value("periodSeconds", 10)));
}

}  // namespace

void PodRunner::ResetProbes(Container& c, Clock::time_point now) {
  for (Probe* probe : {&c.startup, &c.readiness}) {
    probe->in_flight = false;
    probe->successes = probe->failures = 0;
    if (probe->spec.is_object())
      probe->due = now + seconds(probe->spec.value("initialDelaySeconds", 0));
  }
  c.state.started = c.state.kind != ContainerKind::kInit && !c.startup.spec.is_object();
  c.state.ready = c.state.started && !c.readiness.spec.is_object();
}

void PodRunner::StepProbes(Container& c, Clock::time_point now) {
  if (c.probe_pid > 0) {
    if (now >= c.probe_deadline) {
      kill(-c.probe_pid, SIGKILL);
    } else {
      Due(c.probe_deadline);
    }
    return;
  }
  Probe& probe = c.state.started ? c.readiness : c.startup;
  if (!probe.spec.is_object() || probe.in_flight) return;
  if (now < probe.due) {
    Due(probe.due);
    return;
  }
  RunProbe(c, probe, now);
}

std::optional<std::string> PodRunner::ProbeAddress(const Container& c, const Json& port) const {
  // Our sidecar takes a free port here; the operator writes its address to the pod when it
  // registers.
  if (IsSidecarImage(c.state.image)) {
    const Json notes = pod_["metadata"].value("annotations", Json::object());
    std::string address = notes.value(api::kHttpAnnotation, "");
    return address.empty() ? std::nullopt : std::optional(address);
  }
  if (port.is_number_integer()) return "127.0.0.1:" + std::to_string(port.get<int>());
  for (const Json& declared : c.spec.value("ports", Json::array())) {
    if (port.is_string() && declared.value("name", "") == port.get<std::string>()) {
      return "127.0.0.1:" + std::to_string(declared.value("containerPort", 0));
    }
  }
  return std::nullopt;
}

void PodRunner::RunProbe(Container& c, Probe& probe, Clock::time_point now) {
  bool startup = &probe == &c.startup;
  probe.due = now + Period(probe.spec);
  milliseconds timeout = seconds(std::max(1, probe.spec.value("timeoutSeconds", 1)));
  if (probe.spec.contains("exec")) {
    Json like = c.spec;
    like["command"] = probe.spec["exec"].value("command", Json::array());
    like.erase("args");
    SetupContext context{pod_,
                         like,
                         options_.run_dir / "pods" / uid(),
                         options_.bin_dir,
                         options_.machine_env,
                         {options_.run_mark, "RINGMASTER_PROBE=" + uid() + "/" + c.state.name,
                          "RINGMASTER_POD=" + uid()},
                         [&](const kube::Resource& resource, const std::string& name) {
                           return host_.Read(resource, pod_["metadata"]["namespace"], name);
                         }};
    auto setup = SetUpContainer(context);
    auto pid = setup ? Spawn({setup->argv, setup->env, setup->working_dir, "/dev/null", SIGKILL})
                     : tl::expected<pid_t, std::string>(tl::unexpected(setup.error().message));
    if (!pid) return ProbeResult(c, startup, false, now);
    c.probe_pid = *pid;
    c.probe_is_startup = startup;
    c.probe_deadline = now + timeout;
    Due(c.probe_deadline);
    host_.WatchProcess(*pid, uid());
    return;
  }
  bool http = probe.spec.contains("httpGet");
  if (!http && !probe.spec.contains("tcpSocket")) return ProbeResult(c, startup, true, now);
  const Json& action = probe.spec[http ? "httpGet" : "tcpSocket"];
  auto address = ProbeAddress(c, action.value("port", Json()));
  if (!address) return ProbeResult(c, startup, false, now);
  probe.in_flight = true;
  host_.ProbeHttp(uid(), c.state.name, c.starts, *address, http ? action.value("path", "/") : "",
                  timeout);
}

void PodRunner::OnProbe(const std::string& container, int start, bool passed,
                        Clock::time_point now) {
  for (Container& c : containers_) {
    if (c.state.name != container || c.starts != start || c.pid == 0) continue;
    bool startup = !c.state.started;
    (startup ? c.startup : c.readiness).in_flight = false;
    ProbeResult(c, startup, passed, now);
  }
}

void PodRunner::ProbeResult(Container& c, bool startup, bool passed, Clock::time_point now) {
  Probe& probe = startup ? c.startup : c.readiness;
  probe.successes = passed ? probe.successes + 1 : 0;
  probe.failures = passed ? 0 : probe.failures + 1;
  Due(probe.due);
  if (passed && probe.successes >= probe.spec.value("successThreshold", 1)) {
    if (startup) {
      c.state.started = true;
      c.state.ready = !c.readiness.spec.is_object();
      Due(now);
    } else {
      c.state.ready = true;
    }
  }
  if (!passed && probe.failures >= probe.spec.value("failureThreshold", 3)) {
    if (startup) {
      KillContainer(c);  // as a kubelet: it never came up
    } else {
      c.state.ready = false;
    }
  }
}

}  // namespace ringmaster::local
