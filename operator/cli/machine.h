// One machine of a run on several: it is inspected, gets the programs if it lacks them, and becomes
// a node of the run's cluster, all by ssh. The ssh connections end when the node runs.
//
// Thread rule: the steps of one machine follow each other; those of several machines may run on
// threads in parallel.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/cli/hosts.h"
#include "operator/cli/outcome.h"
#include "operator/cli/program_files.h"
#include "operator/cli/ssh.h"

namespace ringmaster::cli {

struct MachineOptions {
  SshOptions ssh;
  std::filesystem::path bin_dir;   // folder of this program
  std::filesystem::path work_dir;  // where commands run, on every machine
  std::filesystem::path run_dir;   // on this machine
  std::string address;  // address of this machine for the others; empty: the one that ssh shows
  std::chrono::seconds abandon_after{3600};
  std::chrono::seconds abandon_after_here{3600};  // the same for a node on this machine
};

struct Machine {
  Host host;
  std::string node;                // name of its node
  int pods = 0;                    // the most pods at a time
  bool here = false;               // it is this machine: no ssh
  bool same_network = false;       // ssh leads to this machine, under another name or user
  std::string address;             // address of the machine for the others
  std::string seen_from;           // this machine's address as the other sees it
  std::filesystem::path programs;  // the folder that contains bin/
  bool has_programs = false;
  int pid = 0;  // process id of its node process
};

// `index` makes the node's name unique in the run.
Machine MachineOf(const Host& host, int pods, int index);

class MachineSetup {
 public:
  // When `stop` is requested, the step in progress is aborted and fails.
  MachineSetup(const MachineOptions& options, std::stop_token stop);
  ~MachineSetup();

  // Checks that the machine is reachable, of our kind, and has the working directory. This and the
  // other failures quote ssh and don't name the host.
  Outcome<void> Look(Machine* machine);
  // Installs the programs unless the machine has them.
  Outcome<void> Install(Machine* machine);
  // Starts `ringmaster node` on the machine.
  Outcome<void> StartNode(Machine* machine, const std::filesystem::path& kubeconfig);
  // Starts the node process again if it has died; it takes over what the former one has left.
  enum class Revival { kStarted, kRanAllTheTime };
  Outcome<Revival> StartNodeAgain(Machine* machine, const std::filesystem::path& kubeconfig);
  // The command that ends the node by hand.
  std::string EndByHand(const Machine& machine) const;

  const std::stop_token& stop() const { return stop_; }

 private:
  struct Programs {
    std::vector<ProgramFile> files;
    std::string key;
    std::filesystem::path archive;  // empty: not packed yet
  };

  Outcome<SshAnswer> Ask(const Machine& machine, const std::string& script,
                         const std::filesystem::path& input, std::chrono::milliseconds patience);
  Outcome<SshAnswer> AskForNode(const Machine& machine, const std::string& more,
                                const std::filesystem::path& kubeconfig);
  Outcome<std::string> Key();
  Outcome<std::filesystem::path> Archive();

  const MachineOptions options_;
  const std::stop_token stop_;
  sync::Mutex mu_;
  std::optional<Programs> programs_ GUARDED_BY(mu_);
};

// An address of this machine by which others may reach it: that of the default route, else of any
// interface; 127.0.0.1 if there is none.
std::string OwnAddress();

// An IPv4 address of one of this machine's interfaces, or of the loopback network.
bool IsOwnAddress(const std::string& text);

// `host` is localhost, the machine's own name, or a name of one of its addresses.
bool IsThisMachine(const std::string& host);

}  // namespace ringmaster::cli
