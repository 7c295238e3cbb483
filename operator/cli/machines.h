// The machines of `run --hosts`: looked at, given the programs where they lack them, and made nodes
// of the run's cluster, all by ssh. Nothing of a run stays in the connections: they end when the
// nodes run.
//
// Thread rule: one thread; the machines are asked side by side on others, which end before a call
// returns.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "operator/cli/hosts.h"
#include "operator/cli/outcome.h"
#include "operator/cli/ssh.h"

namespace ringmaster::cli {

struct MachinesOptions {
  SshOptions ssh;
  std::filesystem::path bin_dir;   // of this program
  std::filesystem::path work_dir;  // where commands run, on every machine
  std::filesystem::path run_dir;   // of this machine
  std::string address;             // of this machine, for the others; empty: as ssh shows it
  std::chrono::seconds abandon_after{3600};
};

class Machines {
 public:
  // `pods`: how many each may run at a time; a host with 0 is left out.
  Machines(const MachinesOptions& options, const std::vector<Host>& hosts,
           const std::vector<int>& pods);

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
  struct Machine {
    Host host;
    std::string node;  // its name
    int pods = 0;
    bool here = false;               // no ssh
    std::string address;             // of the machine, for the others
    std::string seen_from;           // this machine's address, as the other sees it
    std::filesystem::path programs;  // the folder that bin/ is in
    bool has_programs = false;
    int pid = 0;  // of the node process
  };

  // Calls `work` for all machines at once; the failures, all of them, a line each.
  Outcome<void> OnEach(const std::function<Outcome<void>(Machine*)>& work);
  Outcome<SshAnswer> Ask(const Machine& machine, const std::string& script,
                         const std::filesystem::path& input, std::chrono::milliseconds patience);
  Outcome<void> Look(Machine* machine, const std::string& key);
  Outcome<void> Install(Machine* machine, const std::filesystem::path& archive);
  Outcome<void> StartNode(Machine* machine, const std::filesystem::path& kubeconfig);
  Outcome<void> ChooseAddress();

  const MachinesOptions options_;
  std::vector<Machine> machines_;
  std::string address_;
};

// localhost, the machine's own name, or a name of one of its addresses.
bool IsThisMachine(const std::string& host);

}  // namespace ringmaster::cli
