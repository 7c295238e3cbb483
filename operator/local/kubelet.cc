#include "operator/local/kubelet.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "operator/kube/resources.h"
#include "operator/local/process.h"
#include "operator/local/socket_probe.h"

namespace ringmaster::local {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kOrphanStaysDead{200};
constexpr milliseconds kLongestWait{
    1000};  // also how often orphans of running containers are reaped

}  // namespace

Kubelet::Kubelet(RunnerOptions options, std::shared_ptr<Store> store)
    : options_(std::move(options)), store_(std::move(store)) {}

Kubelet::~Kubelet() {
  Stop(milliseconds(0));
  if (wake_fd_ >= 0) close(wake_fd_);
}

void Kubelet::Start() {
  // Orphans of containers come to us, so that nothing escapes to init.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  accepting_ = true;
  loop_ = std::thread([this] { Loop(); });
  watcher_ = std::jthread([this](std::stop_token stop) { WatchPods(stop); });
  prober_ = std::jthread([this] { RunProbes(); });
}

void Kubelet::Stop(milliseconds grace) {
  if (!loop_.joinable()) return;
  Post([this, grace] {
    stopping_ = true;
    for (auto& [uid, runner] : runners_) runner->Terminate(grace, Clock::now());
  });
  loop_.join();
  {
    std::lock_guard lock(mu_);
    probes_closed_ = true;
    probe_wanted_.notify_all();
  }
  watcher_.request_stop();
  store_->WakeAll();
  watcher_ = {};
  prober_ = {};
  KillAll(0, options_.run_mark);
}

void Kubelet::Post(std::function<void()> task) {
  {
    std::lock_guard lock(mu_);
    if (!accepting_) return;
    tasks_.push_back(std::move(task));
  }
  uint64_t one = 1;
  (void)!write(wake_fd_, &one, sizeof one);
}

template <class F>
auto Kubelet::Ask(F question) -> decltype(question()) {
  auto promise = std::make_shared<std::promise<decltype(question())>>();
  auto answer = promise->get_future();
  Post([promise, question] { promise->set_value(question()); });
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
      if (*event) Post([this, e = std::move(**event)] { OnPod(e); });
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
    std::deque<std::function<void()>> tasks;
    {
      std::lock_guard lock(mu_);
      tasks.swap(tasks_);
    }
    for (auto& task : tasks) task();
    ReapChildren();
    ReapOrphans();
    StepAll();
    bool idle = std::all_of(runners_.begin(), runners_.end(),
                            [](const auto& r) { return r.second->AllStopped(); });
    if (stopping_ && idle && children_.empty()) {
      std::lock_guard lock(mu_);
      accepting_ = false;
      return;
    }
    Wait();
  }
}

void Kubelet::Wait() {
  auto until = Clock::now() + kLongestWait;
  for (auto& [uid, runner] : runners_) {
    if (runner->next()) until = std::min(until, *runner->next());
  }
  if (dead_orphan_ != 0) until = std::min(until, dead_orphan_since_ + kOrphanStaysDead);
  std::vector<pollfd> fds{{wake_fd_, POLLIN, 0}};
  for (const auto& [pid, child] : children_) fds.push_back({child.pidfd, POLLIN, 0});
  auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(0, left.count())));
  uint64_t count;
  (void)!read(wake_fd_, &count, sizeof count);
}

void Kubelet::ReapChildren() {
  for (auto it = children_.begin(); it != children_.end();) {
    auto [pid, child] = *it;
    ReapGroup(pid);
    siginfo_t info{};
    bool ended = waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
    if (!ended) {
      ++it;
      continue;
    }
    // The group dies before its number can be given to somebody else.
    kill(-pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    close(child.pidfd);
    it = children_.erase(it);
    auto runner = runners_.find(child.uid);
    if (runner != runners_.end()) runner->second->OnExit(pid, status, Clock::now());
  }
}

// Processes of a pod whose parents were killed with it become our children (we are a subreaper),
// and zombies when they end. Whoever started a child that the kubelet did not waits for it at once,
// so one that stays dead is an orphan.
void Kubelet::ReapOrphans() {
  siginfo_t info{};
  const bool any = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
  const pid_t dead = any && !children_.contains(info.si_pid) ? info.si_pid : 0;
  if (dead != 0 && dead == dead_orphan_ && Clock::now() - dead_orphan_since_ >= kOrphanStaysDead) {
    waitpid(dead, nullptr, WNOHANG);
    dead_orphan_ = 0;
  } else if (dead != dead_orphan_) {
    dead_orphan_ = dead;
    dead_orphan_since_ = Clock::now();
  }
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
    Json status = MakeStatus(runner.View(), (*live)["status"], Now());
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

void Kubelet::WatchProcess(pid_t pid, const std::string& pod_uid) {
  children_[pid] = {static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), pod_uid};
}

Json Kubelet::Read(const kube::Resource& resource, const std::string& ns, const std::string& name) {
  auto object = store_->Get(resource, ns, name);
  return object ? *object : Json();
}

void Kubelet::ProbeHttp(const std::string& pod_uid, const std::string& container, int start,
                        const std::string& host_port, const std::string& path,
                        milliseconds timeout) {
  std::lock_guard lock(mu_);
  probes_.push_back({pod_uid, container, start, host_port, path, timeout});
  probe_wanted_.notify_one();
}

void Kubelet::RunProbes() {
  while (true) {
    std::unique_lock lock(mu_);
    probe_wanted_.wait(lock, [this] { return probes_closed_ || !probes_.empty(); });
    if (probes_closed_) return;
    HttpProbe probe = std::move(probes_.front());
    probes_.pop_front();
    lock.unlock();
    bool passed = ProbeSocket(probe.host_port, probe.path, probe.timeout);
    Post([this, probe, passed] {
      auto it = runners_.find(probe.uid);
      if (it != runners_.end())
        it->second->OnProbe(probe.container, probe.start, passed, Clock::now());
    });
  }
}

std::string Kubelet::Now() {
  std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace ringmaster::local
