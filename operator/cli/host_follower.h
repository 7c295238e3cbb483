// The hosts of a job while it runs, as a discovery script names them: a new one is looked at, gets
// the programs and becomes a node of the run's cluster; from one that is no longer named the
// workers leave at the end of a step; the job is scaled to the slots. A host that fails is tried
// again after longer and longer pauses, and holds nobody up.
//
// Owner and thread: the run; one thread of its own, and one for each host that is being asked. All
// methods from the owner's thread.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/cli/host_script.h"
#include "operator/cli/hosts.h"
#include "operator/cli/machine.h"
#include "operator/cli/outcome.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

struct HostFollowerOptions {
  MachineOptions machine;
  std::filesystem::path script;
  int slots_per_host = 1;  // of a host that the script names without a number
  int np = 1;              // slots that the job needs to start
  int min_np = 1, max_np = 1;
  std::chrono::seconds patience{600};  // until they are there
};

class HostFollower {
 public:
  using Say = std::function<void(const std::string&)>;

  // `say`: a line for people, from any thread. When `stop` is requested, all calls return soon.
  HostFollower(const HostFollowerOptions& options, Say say, const std::stop_token& stop);
  ~HostFollower();

  // Waits for a host that can be used. Returns the address by which the hosts reach this machine.
  Outcome<std::string> AwaitAddress();
  // From now on hosts become nodes of this cluster.
  void Serve(std::shared_ptr<kube::KubeApi> api, const std::filesystem::path& kubeconfig);
  // Waits for the slots that the job needs. Returns with how many workers it begins.
  Outcome<int> AwaitWorkers();
  // From now on this job is scaled; it has so many workers.
  void Follow(const std::string& ns, const std::string& job, int workers);
  // Ends the threads. Nodes that run go on.
  void Stop();

  // After Stop. The command that ends a node by hand; empty: it never ran.
  std::string EndByHand(const std::string& node) const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage { kFailed, kLooking, kSeen, kJoining, kRuns, kLeaves };
  struct Place {
    Machine machine;
    Stage stage = Stage::kFailed;
    int failures = 0;  // one after the other
    Clock::time_point retry_at{}, running_since{};
    std::string said;  // of the newest failure
    std::jthread work;
  };
  struct Result {
    std::string host;
    Machine machine;
    Outcome<void> outcome;
  };
  struct Cluster {
    std::shared_ptr<kube::KubeApi> api;
    std::filesystem::path kubeconfig;
    std::string ns, job;  // empty: not yet made
    int workers = 0;
  };
  // What the API server says of the run's nodes and pods.
  struct Observed {
    std::map<std::string, kube::Json> nodes;
    std::vector<kube::Json> pods;
    std::set<std::string> troubled;  // nodes on which workers fail
  };

  void Run(const std::stop_token& stop);
  void AskScript();
  void TakeResults();
  void TakeResult(Result result);
  void OnFailure(Place* place, const std::string& why);
  void Welcome();
  void StartWork(const std::string& host, Place* place, Stage stage,
                 std::function<Outcome<void>(Machine*)> work);
  void FindAddress();
  static Outcome<Observed> Observe(const Cluster& cluster);
  void EndUnknownNodes(const Cluster& cluster, const Observed& seen);
  void TendNodes(const Cluster& cluster, const Observed& seen);
  bool TendNode(const Cluster& cluster, const Observed& seen, Place* place, bool wanted);
  void LeaveOutTroubled(const Observed& seen);
  void Scale(const Cluster& cluster, const Observed& seen);
  bool DrainSurplus(const Cluster& cluster, const Observed& seen, int wanted);
  bool OperatorKnowsWhoLeaves(const Observed& seen) const;
  bool Offers(const std::string& name, const Place& place) const;
  const Host* Desired(const std::string& name) const;
  int Slots() const;
  int Wanted() const;
  void Publish();
  std::string WhyFew() const REQUIRES(mu_);

  const HostFollowerOptions options_;
  const Say say_;
  const HostScript script_;
  const Clock::time_point deadline_;
  std::stop_source stop_;
  const std::stop_callback<std::function<void()>> on_stop_;
  MachineSetup setup_;
  mutable sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  std::deque<Result> results_ GUARDED_BY(mu_);
  Cluster cluster_ GUARDED_BY(mu_);
  // What the owner waits for:
  std::string address_ GUARDED_BY(mu_);
  int ready_slots_ GUARDED_BY(mu_) = 0;
  std::string first_error_ GUARDED_BY(mu_);  // of the script, when it was asked first
  std::map<std::string, std::string> troubles_ GUARDED_BY(mu_);  // by host
  // Of the thread:
  std::vector<Host> desired_;
  bool asked_ = false;
  std::string script_said_;
  std::map<std::string, Place> places_;  // by the host's name
  std::vector<Machine> gone_;            // nodes that were let go
  std::set<std::string> left_out_;       // hosts on which workers fail
  int next_index_ = 0;
  std::jthread thread_;  // last: uses the others
};

}  // namespace ringmaster::cli
