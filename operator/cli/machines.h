// The machines of `run --hosts`: all of them are made nodes of the run's cluster, or none
// (machine.h says what that takes).
//
// Thread rule: one thread; the machines are asked side by side on others, which end before a call
// returns.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/cli/hosts.h"
#include "operator/cli/machine.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

class Machines {
 public:
  // `pods`: how many each may run at a time; a host with 0 is left out. When `stop` is requested,
  // a call that is under way ends soon, with kInterrupted.
  Machines(const MachineOptions& options, const std::vector<Host>& hosts,
           const std::vector<int>& pods, std::stop_token stop);

  // Every machine is there, of our kind, has the working directory, and the programs by now. The
  // failure names each that isn't, with what ssh has said. `say`: a line for people.
  Outcome<void> Prepare(const std::function<void(const std::string&)>& say);
  // By which the others reach this machine. After Prepare.
  const std::string& address() const { return address_; }

  // Starts `ringmaster node` on each. The failure names those that can't.
  Outcome<void> StartNodes(const std::filesystem::path& kubeconfig);
  // The command that ends a node by hand; empty: it never ran.
  std::string EndByHand(const std::string& node) const;

 private:
  // Calls `work` for all machines at once; the failures, all of them, a line each.
  Outcome<void> OnEach(const std::function<Outcome<void>(Machine*)>& work);

  const std::string wanted_address_;
  MachineSetup setup_;
  std::vector<Machine> machines_;  // those that are needed
  std::string address_;
};

}  // namespace ringmaster::cli
