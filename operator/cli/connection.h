// Which API server a command speaks to, and with what name of the namespace. The first that there
// is of:
//
//   1. --run-dir: a run on this machine
//   2. --kubeconfig or --context: a cluster; also where the command is called as kubectl's plugin
//   3. $RINGMASTER_RUN_DIR, and runs that this user has alive on this machine; of several the
//   newest
//      is looked at, and none is changed
//   4. $KUBECONFIG
//
// A run whose directory belongs to somebody else is never spoken to.
//
// Thread rule: free functions and values.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "operator/cli/commands.h"
#include "operator/cli/outcome.h"
#include "operator/cli/run_directory.h"
#include "operator/inspection/connection.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

// What main() reads from the environment.
struct Surroundings {
  RunPaths paths;
  std::string kubeconfig;  // KUBECONFIG: paths separated by ':'
  std::filesystem::path home;
  bool kubectl_plugin = false;
};

enum class Purpose { kLook, kChange };

// Where Connect() goes to. `run_dir` empty: a cluster.
struct Place {
  std::filesystem::path run_dir;
  std::vector<std::filesystem::path> kubeconfigs;
  std::string note;  // for people, where they may have meant another place; else empty
};

Outcome<Place> FindPlace(const Target& target, const Surroundings& around, Purpose purpose);

// Says the note on standard error.
Outcome<inspection::Connection> Connect(const Target& target, const Surroundings& around,
                                        Purpose purpose);

}  // namespace ringmaster::cli
