#include "operator/local/kubelet.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include "operator/kube/resources.h"
#include "operator/local/process.h"
#include "operator/local/timestamp.h"

namespace ringmaster::local {
namespace {

using std::chrono::milliseconds;

// Also how often orphans of running containers are reaped.
constexpr milliseconds kLongestWait{1000};

}  // namespace

Kubelet::Kubelet(RunnerOptions options, std::shared_ptr<Store> store)
    : options_(std::move(options)), store_(std::move(store)) {}

Kubelet::~Kubelet() { Stop(milliseconds(0)); }

void Kubelet::Start() {
  // Orphans of containers come to us, so that nothing escapes to init.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  loop_ = std::thread([this] { Loop(); });
  watcher_ = std::jthread([this](std::stop_token stop) { WatchPods(stop); });
  prober_.Start([this](const SocketProbe& probe, bool passed) {
    tasks_.Post([this, probe, passed] {
      auto it = runners_.find(probe.pod_uid);
      if (it != runners_.end())
        it->second->OnProbe(probe.container, probe.start, passed, Clock::now());
    });
  });
}

void Kubelet::Stop(milliseconds grace) {
  if (!loop_.joinable()) return;
  tasks_.Post([this, grace] {
    stopping_ = true;
    for (auto& [uid, runner] : runners_) runner->Terminate(grace, Clock::now());
  });
  loop_.join();
  watcher_.request_stop();
  store_->WakeAll();
  watcher_ = {};
  prober_.Stop();
  KillAll(0, options_.run_mark);
}

template <class F>
auto Kubelet::Ask(F question) -> decltype(question()) {
  auto promise = std::make_shared<std::promise<decltype(question())>>();
  auto answer = promise->get_future();
  tasks_.Post([promise, question] { promise->set_value(question()); });
  // The loop answers within milliseconds; when it has ended, nobody does.
  if (answer.wait_for(std::chrono::seconds(10)) != std::future_status::ready) return {};
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

PodRunner* Kubelet::Find(const std::string& ns, const std::string& pod) {
  for (auto& [uid, runner] : runners_) {
    const Json& meta = runner->pod()["metadata"];
    if (meta["name"] == pod && meta["namespace"] == ns && !gone_[uid]) return runner.get();
  }
  return nullptr;
}

void Kubelet::WatchPods(std::stop_token stop) {
  std::string version;
  while (!stop.stop_requested()) {
    auto cursor = store_->Watch(kube::Pods(), "", {"", "", version});
    if (!cursor) {
      version.clear();  // too far behind: begin again with what is there
      continue;
    }
    while (!stop.stop_requested()) {
      auto event = cursor->Next(milliseconds(200));
      if (!event) {
        version.clear();
        break;
      }
      if (*event) tasks_.Post([this, e = std::move(**event)] { OnPod(e); });
    }
  }
}

void Kubelet::OnPod(const kube::WatchEvent& event) {
  const Json& pod = event.object;
  std::string uid = pod["metadata"]["uid"];
  auto it = runners_.find(uid);
  if (event.type == kube::WatchEvent::Type::kDeleted) {
    if (it == runners_.end()) return;
    gone_[uid] = true;
    if (!it->second->AllStopped()) {
      it->second->Kill("Deleted", "the pod was deleted without grace", Clock::now());
    }
    return;
  }
  if (it != runners_.end()) {
    it->second->Update(pod, Clock::now());
    return;
  }
  std::string phase = pod["status"].value("phase", "");
  if (stopping_ || pod["spec"].value("nodeName", "").empty() || phase == "Succeeded" ||
      phase == "Failed") {
    return;
  }
  auto runner = std::make_unique<PodRunner>(pod, options_, static_cast<RunnerHost&>(*this));
  if (pod["metadata"].contains("deletionTimestamp")) runner->Update(pod, Clock::now());
  runners_[uid] = std::move(runner);
}

void Kubelet::Loop() {
  pthread_setname_np(pthread_self(), "kubelet");
  while (true) {
    for (auto& task : tasks_.Take()) task();
    for (const ChildProcesses::Exit& exit : children_.ReapExited()) {
      auto runner = runners_.find(exit.pod_uid);
      if (runner != runners_.end()) {
        runner->second->OnExit(exit.pid, exit.wait_status, Clock::now());
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
    runner->Step(Clock::now());
    Sync(*runner);
    if (gone_[uid] && runner->AllStopped()) done.push_back(uid);
  }
  for (const std::string& uid : done) Forget(uid);
}

void Kubelet::Forget(const std::string& uid) {
  runners_.erase(uid);
  gone_.erase(uid);
  std::error_code error;
  std::filesystem::remove_all(options_.run_dir / "pods" / uid, error);
}

// Writes the status if it changed; removes the object of a pod that was asked to go and has gone.
void Kubelet::Sync(PodRunner& runner) {
  const Json& meta = runner.pod()["metadata"];
  std::string ns = meta["namespace"], name = meta["name"], uid = runner.uid();
  if (gone_[uid]) return;
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto live = store_->Get(kube::Pods(), ns, name);
    if (!live || (*live)["metadata"]["uid"] != uid) return;
    Json status =
        MakeStatus(runner.View(), (*live)["status"], Timestamp(std::chrono::system_clock::now()));
    if (status == (*live)["status"]) break;
    (*live)["status"] = std::move(status);
    if (store_->Update(kube::Pods(), ns, name, *live, "status")) break;
  }
  if (meta.contains("deletionTimestamp") && runner.AllStopped()) {
    kube::DeleteOptions options;
    options.grace_period_seconds = 0;
    options.uid = uid;
    (void)store_->Delete(kube::Pods(), ns, name, options);
  }
}

void Kubelet::WatchProcess(pid_t pid, const std::string& pod_uid) { children_.Add(pid, pod_uid); }

Json Kubelet::Read(const kube::Resource& resource, const std::string& ns, const std::string& name) {
  auto object = store_->Get(resource, ns, name);
  return object ? *object : Json();
}

void Kubelet::ProbeHttp(const std::string& pod_uid, const std::string& container, int start,
                        const std::string& host_port, const std::string& path,
                        milliseconds timeout) {
  prober_.Probe({pod_uid, container, start, host_port, path, timeout});
}

}  // namespace ringmaster::local
