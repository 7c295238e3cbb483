#include "operator/kubelet/kubelet.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <future>

#include "operator/api/labels.h"
#include "operator/api/time.h"
#include "operator/kube/resources.h"
#include "operator/kubelet/process.h"

namespace ringmaster::kubelet {
namespace {

using std::chrono::milliseconds;

// Also how often orphans of running containers are reaped.
constexpr milliseconds kLongestWait{1000};
// Between two looks for an API server that is away.
constexpr milliseconds kLongestBackoff{2000};
// How long the last states of the pods may take to be told.
constexpr milliseconds kLastReports{3000};
// The loop answers within milliseconds, but for when it waits for an API server itself.
constexpr milliseconds kLongestAnswer{10'000};

// Why a pod failed at which the kubelet itself has met an error that it doesn't know.
constexpr char kDefect[] = "KubeletError";

std::string DefectText(const std::exception& e) {
  return std::string("the kubelet has met an unexpected error at this pod: ") + e.what();
}

// `node` empty: every node's.
bool IsOnNode(const Json& pod, const std::string& node) {
  const std::string own = pod.contains("spec") ? pod["spec"].value("nodeName", "") : "";
  return !own.empty() && (node.empty() || own == node);
}

}  // namespace

Kubelet::Kubelet(RunnerOptions options, std::shared_ptr<kube::KubeApi> api)
    : options_(std::move(options)),
      api_(std::move(api)),
      reporter_(api_, options_.address, options_.server_is_here),
      pods_(api_, kube::Pods(), {.max_relist_backoff = kLongestBackoff},
            [this](const Json& pod, bool deleted) {
              tasks_.Post([this, pod, deleted] { OnPod(pod, deleted); });
            }) {}

template <class F>
void Kubelet::WorkFor(PodRunner& runner, F work) {
  try {
    work();
  } catch (const std::exception& e) {
    runner.Kill(kDefect, DefectText(e), Clock::now());
  }
}

Kubelet::~Kubelet() { Stop(milliseconds(0)); }

void Kubelet::Start() {
  // Orphans of containers come to us, so that nothing escapes to init.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  reporter_.Start();
  loop_ = std::thread([this] { Loop(); });
  pods_.Start();
  prober_.Start([this](const SocketProbe& probe, bool passed) {
    tasks_.Post([this, probe, passed] {
      auto it = runners_.find(probe.pod_uid);
      if (it == runners_.end()) return;
      WorkFor(*it->second,
              [&] { it->second->OnProbe(probe.container, probe.start, passed, Clock::now()); });
    });
  });
}

void Kubelet::Stop(milliseconds grace) {
  if (!loop_.joinable()) return;
  tasks_.Post([this, grace] {
    stopping_ = true;
    for (auto& [uid, runner] : runners_) runner->ShutDown(grace, Clock::now());
  });
  loop_.join();
  pods_.Stop();
  prober_.Stop();
  reporter_.Stop(kLastReports);
  KillAll(0, options_.run_mark);
}

template <class F>
auto Kubelet::Ask(F question, decltype(question()) otherwise) -> decltype(question()) {
  auto promise = std::make_shared<std::promise<decltype(question())>>();
  auto answer = promise->get_future();
  // When the loop has ended, nothing changes any more.
  if (!tasks_.Post([promise, question] { promise->set_value(question()); })) return question();
  if (answer.wait_for(kLongestAnswer) != std::future_status::ready) return otherwise;
  return answer.get();
}

bool Kubelet::KillPod(const std::string& ns, const std::string& pod) {
  return Ask([this, ns, pod] {
    PodRunner* runner = Find(ns, pod);
    if (runner == nullptr || runner->AllStopped()) return false;
    runner->Kill("Killed", "all processes of the pod were killed at once", Clock::now());
    return true;
  });
}

std::optional<PodRunner::Log> Kubelet::LogOf(const std::string& ns, const std::string& pod,
                                             const std::string& container) {
  return Ask([this, ns, pod, container] {
    PodRunner* runner = Find(ns, pod);
    return runner ? runner->LogOf(container) : std::nullopt;
  });
}

std::vector<PodLogFile> Kubelet::Logs() {
  return Ask([this] {
    std::vector<PodLogFile> logs;
    for (const auto& [uid, runner] : runners_) {
      const Json& meta = runner->pod()["metadata"];
      for (const ContainerState& state : runner->View().containers) {
        const auto log = runner->LogOf(state.name);
        if (!log || !log->started) continue;
        logs.push_back({meta["namespace"], meta["name"], uid, state.name, *log});
      }
    }
    return logs;
  });
}

bool Kubelet::IsBusy() {
  return Ask(
      [this] {
        return std::any_of(runners_.begin(), runners_.end(),
                           [](const auto& r) { return !r.second->AllStopped(); });
      },
      true);
}

PodRunner* Kubelet::Find(const std::string& ns, const std::string& pod) {
  for (auto& [uid, runner] : runners_) {
    const Json& meta = runner->pod()["metadata"];
    if (meta["name"] == pod && meta["namespace"] == ns && !gone_.contains(uid)) return runner.get();
  }
  return nullptr;
}

void Kubelet::OnPod(const Json& pod, bool deleted) {
  const auto it = runners_.find(pod["metadata"]["uid"]);
  if (it != runners_.end()) return WorkFor(*it->second, [&] { TakePod(pod, deleted); });
  try {
    TakePod(pod, deleted);
  } catch (const std::exception& e) {
    const Json& meta = pod["metadata"];
    reporter_.Report({meta["namespace"], meta["name"], meta["uid"]},
                     {.reason = kDefect, .message = DefectText(e), .failed = true}, false);
  }
}

void Kubelet::TakePod(const Json& pod, bool deleted) {
  const std::string uid = pod["metadata"]["uid"];
  const auto it = runners_.find(uid);
  if (deleted) {
    if (it == runners_.end()) return;
    gone_.insert(uid);
    reporter_.Forget(uid);
    if (!it->second->AllStopped()) {
      it->second->Kill("Deleted", "the pod was deleted without grace", Clock::now());
    }
    return;
  }
  if (it != runners_.end()) {
    it->second->Update(pod, Clock::now());
    KillIfMarked(*it->second);
    return;
  }
  const std::string phase = pod["status"].value("phase", "");
  if (stopping_ || !IsOnNode(pod, options_.node) || phase == "Succeeded" || phase == "Failed")
    return;
  auto runner = std::make_unique<PodRunner>(pod, options_, static_cast<RunnerHost&>(*this));
  if (pod["metadata"].contains("deletionTimestamp")) runner->Update(pod, Clock::now());
  runners_[uid] = std::move(runner);
}

// What `ringmaster kill` writes: the pod's uid, or that and a process of the pod.
void Kubelet::KillIfMarked(PodRunner& runner) {
  const Json notes = runner.pod()["metadata"].value("annotations", Json::object());
  const std::string mark = notes.value(api::kLocalKillAnnotation, "");
  if (runner.AllStopped() || !mark.starts_with(runner.uid())) return;
  if (const std::string process = mark.substr(runner.uid().size()); !process.empty()) {
    for (const pid_t pid : ProcessesWithEntry("RINGMASTER_POD=" + runner.uid())) {
      if (process == "/" + std::to_string(pid)) kill(pid, SIGKILL);
    }
    return;
  }
  runner.Kill("Killed", "all processes of the pod were killed at once", Clock::now());
}

void Kubelet::Loop() {
  pthread_setname_np(pthread_self(), "kubelet");
  while (true) {
    for (auto& task : tasks_.Take()) task();
    for (const ChildProcesses::Exit& exit : children_.ReapExited()) {
      auto runner = runners_.find(exit.pod_uid);
      if (runner != runners_.end()) {
        WorkFor(*runner->second,
                [&] { runner->second->OnExit(exit.pid, exit.wait_status, Clock::now()); });
      }
    }
    children_.ReapOrphans(Clock::now());
    StepAll();
    bool idle = std::all_of(runners_.begin(), runners_.end(),
                            [](const auto& r) { return r.second->AllStopped(); });
    if (stopping_ && idle && children_.empty() && tasks_.Close()) return;
    Wait();
  }
}

void Kubelet::Wait() {
  auto until = Clock::now() + kLongestWait;
  for (auto& [uid, runner] : runners_) {
    if (runner->next()) until = std::min(until, *runner->next());
  }
  if (auto check = children_.next_orphan_check()) until = std::min(until, *check);
  std::vector<pollfd> fds{{tasks_.fd(), POLLIN, 0}};
  children_.AppendTo(fds);
  auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(0, left.count())));
}

void Kubelet::StepAll() {
  std::vector<std::string> done;
  for (auto& [uid, runner] : runners_) {
    WorkFor(*runner, [&runner = *runner, this] {
      runner.Step(Clock::now());
      Sync(runner);
    });
    if (gone_.contains(uid) && runner->AllStopped()) done.push_back(uid);
  }
  for (const std::string& uid : done) Forget(uid);
}

void Kubelet::Forget(const std::string& uid) {
  runners_.erase(uid);
  gone_.erase(uid);
  std::error_code error;
  std::filesystem::remove_all(options_.run_dir / "pods" / uid, error);
}

// Tells the pod's state if it has changed; the object of a pod that was asked to go and has gone
// goes, too.
void Kubelet::Sync(PodRunner& runner) {
  if (gone_.contains(runner.uid())) return;
  const Json& meta = runner.pod()["metadata"];
  reporter_.Report({meta["namespace"], meta["name"], runner.uid()}, runner.View(),
                   meta.contains("deletionTimestamp") && runner.AllStopped());
}

void Kubelet::WatchProcess(pid_t pid, const std::string& pod_uid) { children_.Add(pid, pod_uid); }

// A container that starts again while the API server is away gets what the one before it got.
Json Kubelet::Read(const kube::Resource& resource, const std::string& ns, const std::string& name) {
  Json& last = read_[resource.plural + "/" + ns + "/" + name];
  auto object = api_->Get(resource, ns, name);
  if (object) {
    last = std::move(*object);
  } else if (object.error().code == kube::ErrorCode::kNotFound) {
    last = Json();
  }
  return last;
}

void Kubelet::ProbeHttp(const std::string& pod_uid, const std::string& container, int start,
                        const std::string& host_port, const std::string& path,
                        milliseconds timeout) {
  prober_.Probe({pod_uid, container, start, host_port, path, timeout});
}

}  // namespace ringmaster::kubelet
