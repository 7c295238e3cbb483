// One machine of a run on several: looked at, given the programs where it lacks them, and made a
// node of the run's cluster, all by ssh. Nothing of a run stays in a connection: it ends when the
// node runs.
//
// Thread rule: the steps of one machine follow each other; those of several may be taken on threads
// side by side.
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
  std::filesystem::path bin_dir;   // of this program
  std::filesystem::path work_dir;  // where commands run, on every machine
  std::filesystem::path run_dir;   // of this machine
  std::string address;             // of this machine, for the others; empty: as ssh shows it
  std::chrono::seconds abandon_after{3600};
  std::chrono::seconds abandon_after_here{3600};  // the same of a node on this machine
};

struct Machine {
  Host host;
  std::string node;                // its name
  int pods = 0;                    // at a time
  bool here = false;               // no ssh
  std::string address;             // of the machine, for the others
  std::string seen_from;           // this machine's address, as the other sees it
  std::filesystem::path programs;  // the folder that bin/ is in
  bool has_programs = false;
  int pid = 0;  // of the node process
};

// `index` makes the node's name unique among all of a run.
Machine MachineOf(const Host& host, int pods, int index);

class MachineSetup {
 public:
  // What is under way when `stop` is requested is broken off, and fails.
  MachineSetup(const MachineOptions& options, std::stop_token stop);
  ~MachineSetup();

  // The machine is there, of our kind, and has the working directory. A failure says what ssh has
  // said, here and below, and doesn't name the host.
  Outcome<void> Look(Machine* machine);
  // It has the programs by now.
  Outcome<void> Install(Machine* machine);
  // Starts `ringmaster node` there.
  Outcome<void> StartNode(Machine* machine, const std::filesystem::path& kubeconfig);
  // Starts it once more where it has died: what it has left is taken over.
  enum class Revival { kStarted, kRanAllTheTime };
  Outcome<Revival> StartNodeAgain(Machine* machine, const std::filesystem::path& kubeconfig);
  // The command that ends its node by hand.
  std::string EndByHand(const Machine& machine) const;

  const std::stop_token& stop() const { return stop_; }

 private:
  struct Programs {
    std::vector<ProgramFile> files;
    std::string key;
    std::filesystem::path archive;  // empty: not yet packed
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

// By which the others reach this machine: `wanted`, if that is one of its addresses; else as the
// first of `machines` that has been looked at sees it. Those that are this machine get it as their
// own.
Outcome<std::string> ChooseAddress(const std::string& wanted,
                                   const std::vector<Machine*>& machines);

// An address of this machine by which others may reach it: that of the way to the rest of the
// world, else of any interface; 127.0.0.1 where there is none.
std::string OwnAddress();

// localhost, the machine's own name, or a name of one of its addresses.
bool IsThisMachine(const std::string& host);

}  // namespace ringmaster::cli
