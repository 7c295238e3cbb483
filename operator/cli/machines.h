// The machines of `run --hosts`: either all of them become nodes of the run's cluster, or none
// (machine.h has the steps). A machine whose node process dies later becomes a node again.
//
// Thread rule: one thread. Work on the machines runs in parallel on other threads, which end before
// a call returns, except between Keep and Stop.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/cli/hosts.h"
#include "operator/cli/machine.h"
#include "operator/cli/node_restarter.h"
#include "operator/cli/outcome.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

class Machines {
 public:
  // `pods` is the most pods of each host at a time; a host with 0 is omitted. When `stop` is
  // requested, a call in progress ends soon, with kInterrupted.
  Machines(const MachineOptions& options, const std::vector<Host>& hosts,
           const std::vector<int>& pods, const std::stop_token& stop);

  // Checks that every machine is reachable, of our kind, and has the working directory, and
  // installs the programs where they are missing. The failure names each bad machine and quotes
  // ssh. `say` prints a line for people.
  Outcome<void> Prepare(const std::function<void(const std::string&)>& say);
  // The address by which the others reach this machine. Valid after Prepare.
  const std::string& address() const { return address_; }

  // Starts `ringmaster node` on each machine. The failure names those where that failed.
  Outcome<void> StartNodes(const std::filesystem::path& kubeconfig);
  // From now on a node process that dies is started again. `say` is called from any thread.
  void Keep(std::shared_ptr<kube::KubeApi> api, const std::filesystem::path& kubeconfig,
            std::function<void(const std::string&)> say);
  // Starts nothing any more. Running nodes continue.
  void Stop();
  // After Stop: the command that ends a node by hand; empty if the node never ran.
  std::string EndByHand(const std::string& node) const;

 private:
  // Calls `work` for all machines at once; the failure has a line for each machine that failed.
  Outcome<void> OnEach(const std::function<Outcome<void>(Machine*)>& work);

  const std::string wanted_address_;
  std::stop_source stop_;
  const std::stop_callback<std::function<void()>> on_stop_;
  MachineSetup setup_;
  std::vector<Machine> machines_;  // the machines that are needed
  std::string address_;
  std::unique_ptr<NodeRestarter> restarter_;  // last member: its threads use the others
};

}  // namespace ringmaster::cli
