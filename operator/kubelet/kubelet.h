// The kubelet of local mode: runs the pods of one node, or of every node, of the embedded cluster
// as processes of this machine. It knows the cluster by KubeApi alone, so the API server may be in
// this process or on another machine; pods run on while it is away.
//
// Owner and thread: LocalCluster or NodeProcess own it. One loop thread forks, watches and kills
// all processes and owns all runners; the other threads (pod watch, HTTP probes) only post to it.
// Public methods are safe from any thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "operator/kubelet/child_processes.h"
#include "operator/kubelet/pod_reporter.h"
#include "operator/kubelet/pod_runner.h"
#include "operator/kubelet/socket_prober.h"
#include "operator/kubelet/task_queue.h"
#include "operator/runtime/informer.h"

namespace ringmaster::kubelet {

// The log of a container that has started.
struct PodLogFile {
  std::string ns, pod, uid, container;
  ContainerLog log;
};

class Kubelet : private RunnerHost {
 public:
  Kubelet(RunnerOptions options, std::shared_ptr<kube::KubeApi> api);
  ~Kubelet() override;

  void Start();
  // Ends every pod within `grace` and returns when no process is left.
  void Stop(std::chrono::milliseconds grace);

  // SIGKILL to all processes of the pod at once. False: no such pod runs here.
  bool KillPod(const std::string& ns, const std::string& pod);
  std::optional<PodRunner::Log> LogOf(const std::string& ns, const std::string& pod,
                                      const std::string& container);
  // Of all containers of the pods that there are; after Stop, that there were at its end.
  std::vector<PodLogFile> Logs();
  // Whether a process of some pod runs, or may run: the kubelet is too busy to say.
  bool IsBusy();

 private:
  // `otherwise`: the answer where the loop gives none in time.
  template <class F>
  auto Ask(F question, decltype(question()) otherwise = {}) -> decltype(question());
  void Loop();
  void Wait();
  void OnPod(const Json& pod, bool deleted);
  void TakePod(const Json& pod, bool deleted);
  // Does the work of one pod; what it throws fails that pod alone.
  template <class F>
  void WorkFor(PodRunner& runner, F work);
  void KillIfMarked(PodRunner& runner);
  void StepAll();
  void Sync(PodRunner& runner);
  void Forget(const std::string& uid);
  PodRunner* Find(const std::string& ns, const std::string& pod);

  void WatchProcess(pid_t pid, const std::string& pod_uid) override;
  Json Read(const kube::Resource& resource, const std::string& ns,
            const std::string& name) override;
  void ProbeHttp(const std::string& pod_uid, const std::string& container, int start,
                 const std::string& host_port, const std::string& path,
                 std::chrono::milliseconds timeout) override;

  const RunnerOptions options_;
  const std::shared_ptr<kube::KubeApi> api_;

  TaskQueue tasks_;  // any thread posts to the loop
  SocketProber prober_;
  PodReporter reporter_;

  // Loop thread only, while it runs; then nobody changes them.
  ChildProcesses children_;
  std::map<std::string, std::unique_ptr<PodRunner>> runners_;  // by pod uid
  std::set<std::string> gone_;                                 // uids whose object was removed
  std::map<std::string, Json> read_;                           // what Read() has answered last
  bool stopping_ = false;

  runtime::Informer pods_;
  std::thread loop_;
};

}  // namespace ringmaster::kubelet
