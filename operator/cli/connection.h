// Finds the API server and the namespace that a command uses. The first of these that exists
// counts:
//
//   1. --run-dir: a run on this machine
//   2. --kubeconfig or --context: a cluster; also if the command is kubectl's plugin
//   3. $RINGMASTER_RUN_DIR, or the living runs of this user on this machine. If there are several,
//      commands that only read use the newest, and commands that change something fail.
//   4. $KUBECONFIG
//
// A run whose directory belongs to another user is never used.
//
// Thread rule: free functions and values.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
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

// The destination of Connect(). If `run_dir` is empty it is a cluster.
struct Place {
  std::filesystem::path run_dir;
  std::vector<std::filesystem::path> kubeconfigs;
  std::string note;  // for people who may have meant another place; else empty
};

Outcome<Place> FindPlace(const Target& target, const Surroundings& around, Purpose purpose);

// `deadline`: of each call; none: the client's default.
Outcome<inspection::Connection> ConnectTo(
    const Place& place, const Target& target,
    std::optional<std::chrono::milliseconds> deadline = std::nullopt);

// Prints the note to standard error.
Outcome<inspection::Connection> Connect(const Target& target, const Surroundings& around,
                                        Purpose purpose);

}  // namespace ringmaster::cli
