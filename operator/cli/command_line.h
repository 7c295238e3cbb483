// The words of the command line as values. Parsing touches nothing: no file, no environment, no
// network.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Which API server a command speaks to. Both empty: the newest run that is alive on this machine.
struct Target {
  std::filesystem::path run_dir;
  std::filesystem::path kubeconfig;
  std::string ns = "default";
};

struct RunOptions {
  std::vector<std::filesystem::path> manifests;  // files and folders; empty with `command`
  int np = 0;                                    // > 0: one pod of so many slots runs `command`
  int min_np = 0;                                // 0: np
  int max_np = 0;
  int standby = 0;
  std::vector<std::string> command;
  std::filesystem::path run_dir;  // empty: a new one, removed at the end
  int port = 0;                   // of the API server; 0: chosen free
  std::filesystem::path summary;  // empty: none
  bool plain = false;
  bool keep = false;
  std::chrono::seconds timeout{0};  // 0: none
};

enum class OutputFormat { kTable, kWide, kJson, kYaml };

struct GetOptions {
  Target target;
  std::string job;  // empty: all jobs
  OutputFormat format = OutputFormat::kTable;
};

struct LogsOptions {
  Target target;
  std::string name;  // of a pod or a job
  std::string container;
  bool follow = false;
};

struct ScaleOptions {
  Target target;
  std::string job;
  int replicas = 0;
};

struct DrainOptions {
  Target target;
  std::string pod;
};

struct KillOptions {
  Target target;
  std::string pod;
  std::optional<int> worker;  // slot; none: the whole pod
};

struct DeleteOptions {
  Target target;
  std::string job;
};

struct VersionOptions {};

using Command = std::variant<RunOptions, GetOptions, LogsOptions, ScaleOptions, DrainOptions,
                             KillOptions, DeleteOptions, VersionOptions>;

// Help that was asked for is a Failure with kDone: its message goes to stdout.
Outcome<Command> ParseCommandLine(std::vector<std::string> words);

}  // namespace ringmaster::cli
