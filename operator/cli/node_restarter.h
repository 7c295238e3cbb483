// Keeps the node processes of `run --hosts` running during the run: it watches the nodes of the
// run's API server, and restarts those that have died (node_revival.h says when).
//
// Owner and thread: Machines; it has one thread of its own, and one for each machine in progress.
// It is constructed and destroyed on the owner's thread, which must not use the machines in
// between.
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

class NodeRestarter {
 public:
  using Say = std::function<void(const std::string&)>;

  // The node process of each of `machines` is running. When the stop of `setup` is requested, the
  // threads end soon.
  NodeRestarter(MachineSetup* setup, std::vector<Machine>* machines,
                std::shared_ptr<kube::KubeApi> api, const std::filesystem::path& kubeconfig,
                Say say);
  // The stop must have been requested before.
  ~NodeRestarter();

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
  // Used by the thread only:
  std::map<std::string, NodeRevival> revivals_;  // by node
  std::map<std::string, std::jthread> work_;     // by node
  std::jthread thread_;                          // last member: its thread uses the others
};

}  // namespace ringmaster::cli
