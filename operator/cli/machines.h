// The machines of `run --hosts`: all of them are made nodes of the run's cluster, or none
// (machine.h says what that takes). One whose node process dies later is made a node again.
//
// Thread rule: one thread; the machines are asked side by side on others, which end before a call
// returns, but for those between Keep and Stop.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/cli/hosts.h"
#include "operator/cli/machine.h"
#include "operator/cli/node_keeper.h"
#include "operator/cli/outcome.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

class Machines {
 public:
  // `pods`: how many each may run at a time; a host with 0 is left out. When `stop` is requested,
  // a call that is under way ends soon, with kInterrupted.
  Machines(const MachineOptions& options, const std::vector<Host>& hosts,
           const std::vector<int>& pods, const std::stop_token& stop);

  // Every machine is there, of our kind, has the working directory, and the programs by now. The
  // failure names each that isn't, with what ssh has said. `say`: a line for people.
  Outcome<void> Prepare(const std::function<void(const std::string&)>& say);
  // By which the others reach this machine. After Prepare.
  const std::string& address() const { return address_; }

  // Starts `ringmaster node` on each. The failure names those that can't.
  Outcome<void> StartNodes(const std::filesystem::path& kubeconfig);
  // From now on a node process that dies is started again. `say`: from any thread.
  void Keep(std::shared_ptr<kube::KubeApi> api, const std::filesystem::path& kubeconfig,
            std::function<void(const std::string&)> say);
  // Nothing is started any more. Nodes that run go on.
  void Stop();
  // After Stop. The command that ends a node by hand; empty: it never ran.
  std::string EndByHand(const std::string& node) const;

 private:
  // Calls `work` for all machines at once; the failures, all of them, a line each.
  Outcome<void> OnEach(const std::function<Outcome<void>(Machine*)>& work);

  const std::string wanted_address_;
  std::stop_source stop_;
  const std::stop_callback<std::function<void()>> on_stop_;
  MachineSetup setup_;
  std::vector<Machine> machines_;  // those that are needed
  std::string address_;
  std::unique_ptr<NodeKeeper> keeper_;  // last: uses the others
};

}  // namespace ringmaster::cli
