// Follows the hosts of a job that a discovery script names while the job runs. A new host is
// inspected, gets the programs and becomes a node of the run's cluster. Workers leave a host that
// is no longer named at the end of a step. The job is scaled to the number of slots. A host that
// fails is tried again after growing pauses, and delays no other host.
//
// Owner and thread: the run; it has one thread of its own, and one for each host in progress. Call
// all methods from the owner's thread.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "common/sync/mutex.h"
#include "operator/cli/awaited_hosts.h"
#include "operator/cli/host_script.h"
#include "operator/cli/host_table.h"
#include "operator/cli/machine.h"
#include "operator/cli/outcome.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

struct HostFollowerOptions {
  MachineOptions machine;
  std::filesystem::path script;
  int slots_per_host = 1;  // for hosts that the script names without a number
  int np = 1;              // slots that the job needs to start
  int min_np = 1, max_np = 1;
  std::chrono::seconds patience{600};  // how long to wait for these slots
};

class HostFollower {
 public:
  using Say = std::function<void(const std::string&)>;

  // `say` prints a line for people, from any thread. When `stop` is requested, all calls return
  // soon.
  HostFollower(const HostFollowerOptions& options, Say say, const std::stop_token& stop);
  ~HostFollower();

  // Waits for a usable host. Returns the address by which the hosts reach this machine.
  Outcome<std::string> AwaitAddress();
  // From now on hosts become nodes of this cluster.
  void Serve(std::shared_ptr<kube::KubeApi> api, const std::filesystem::path& kubeconfig);
  // Waits for the slots that the job needs. Returns the number of workers to begin with.
  Outcome<int> AwaitWorkers();
  // From now on this job, which has `workers` workers, is scaled.
  void Follow(const std::string& ns, const std::string& job, int workers);
  // Ends the threads. Running nodes continue.
  void Stop();

  // After Stop: the command that ends a node by hand; empty if the node never ran.
  std::string EndByHand(const std::string& node) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Result {
    std::string host;
    Machine machine;
    Outcome<void> outcome;
  };
  struct Cluster {
    std::shared_ptr<kube::KubeApi> api;
    std::filesystem::path kubeconfig;
    std::string ns, job;  // empty: not created yet
    int workers = 0;
  };

  void Run(const std::stop_token& stop);
  void AskScript();
  void TakeResults();
  void BeginSteps(const Cluster& cluster);
  Outcome<void> Take(const HostTable::Step& step, const std::filesystem::path& kubeconfig,
                     Machine* machine);
  void FindAddress();
  void Tend(const Cluster& cluster);
  void Scale(const Cluster& cluster, const RunNodes& seen);
  void Report();
  Cluster cluster() const;

  const HostFollowerOptions options_;
  const Say say_;
  const HostScript script_;
  std::stop_source stop_;
  const std::stop_callback<std::function<void()>> on_stop_;
  MachineSetup setup_;
  AwaitedHosts awaited_;
  mutable sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  std::deque<Result> results_ GUARDED_BY(mu_);
  Cluster cluster_ GUARDED_BY(mu_);
  // Used by the thread only:
  HostTable table_;
  // The script's newest failure; none: the script has not been called.
  std::optional<std::string> script_said_;
  std::map<std::string, std::jthread> work_;  // by host
  std::jthread thread_;                       // last member: its thread uses the others
};

}  // namespace ringmaster::cli
