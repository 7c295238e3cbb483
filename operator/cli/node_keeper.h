// Keeps the node processes of `run --hosts` running while the run lasts: looks at the nodes that
// the run's API server knows, and starts those again that have died (node_revival.h says when).
//
// Owner and thread: Machines; one thread of its own, and one for each machine that is being asked.
// Constructed and destroyed on the owner's thread, which leaves the machines alone in between.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/cli/machine.h"
#include "operator/cli/node_revival.h"
#include "operator/cli/run_nodes.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

class NodeKeeper {
 public:
  using Say = std::function<void(const std::string&)>;

  // The node process of each of `machines` runs. When the stop of `setup` is requested, the threads
  // end soon.
  NodeKeeper(MachineSetup* setup, std::vector<Machine>* machines,
             std::shared_ptr<kube::KubeApi> api, const std::filesystem::path& kubeconfig, Say say);
  // The stop was requested before.
  ~NodeKeeper();

 private:
  struct Result {
    std::string node;
    NodeRevival::Attempt attempt;
  };

  void Run(const std::stop_token& stop);
  void TakeResults();
  void Tend(const RunNodes& seen);
  void Begin(Machine* machine);
  NodeRevival::Attempt Try(Machine* machine);
  void Report();

  MachineSetup* const setup_;
  std::vector<Machine>* const machines_;
  const std::shared_ptr<kube::KubeApi> api_;
  const std::filesystem::path kubeconfig_;
  const Say say_;
  sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  std::deque<Result> results_ GUARDED_BY(mu_);
  // Of the thread:
  std::map<std::string, NodeRevival> revivals_;  // by node
  std::map<std::string, std::jthread> work_;     // by node
  std::jthread thread_;                          // last: uses the others
};

}  // namespace ringmaster::cli
