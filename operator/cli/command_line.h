// The command line as values. Parsing uses no files, environment or network.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/cli/hosts.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Which API server a command connects to; connection.h says which one it is by default.
struct Target {
  std::filesystem::path run_dir;
  std::filesystem::path kubeconfig;
  std::string context;
  std::string ns;  // empty: that of the context, else "default"
};

struct RunOptions {
  std::vector<std::filesystem::path> manifests;  // files and folders; empty if `command` is set
  int np = 0;      // more than 0: one pod with this many slots runs `command`
  int min_np = 0;  // 0: np
  int max_np = 0;
  int standby = 0;
  // For the job that is made for `command`; without a value the defaults of a manifest count.
  std::optional<int> init_timeout;
  std::optional<int> backoff_limit;
  std::optional<int> fusion_threshold;
  std::string backend;  // for spec.collectives; empty: the default
  std::vector<std::string> command;
  std::filesystem::path carried;  // a file for every worker of `command`; empty: none
  // Other machines, reached by ssh; empty: only this machine.
  std::vector<Host> hosts;
  // A script that is called repeatedly for the hosts, instead of `hosts`; empty: none.
  std::filesystem::path host_script;
  int slots_per_host = 0;  // for hosts that the script names without a number; 0: one
  SshOptions ssh;
  std::string address;  // address of this machine for the hosts; empty: the one that ssh shows
  std::chrono::seconds abandon_after{3600};
  std::filesystem::path run_dir;  // empty: a new one, removed at the end
  int port = 0;                   // of the API server; 0: any free port
  std::filesystem::path summary;  // empty: none
  // Keeps each worker's output in files of this directory; empty: only in the logs.
  std::filesystem::path output_dir;
  bool plain = false;
  bool keep = false;
  bool ui = false;                  // serves the page during the run
  std::string metrics_listen;       // host:port for the operator's metrics; empty: not served
  std::chrono::seconds timeout{0};  // 0: none
};

enum class OutputFormat { kTable, kWide, kJson, kYaml };

struct GetOptions {
  Target target;
  std::string job;  // empty: all jobs
  OutputFormat format = OutputFormat::kTable;
  bool all_namespaces = false;
  bool watch = false;
};

struct DescribeOptions {
  Target target;
  std::string job;
};

struct WhyOptions {
  Target target;
  std::string job;
};

struct TopOptions {
  Target target;
  std::string job;
  std::chrono::milliseconds interval{2000};  // between two observations
  bool once = false;
};

struct TimelineOptions {
  Target target;
  std::string job;
  int seconds = 10;
  std::string file;  // empty: a name with the job's; -: standard output
};

struct UiOptions {
  Target target;
  bool all_namespaces = false;
  int port = 0;                              // 0: any free port
  std::chrono::milliseconds interval{1000};  // between two observations
};

struct ConvertOptions {
  std::string file;  // "-": standard input
};

struct BenchOptions {
  int np = 2;
  std::vector<std::string> words;  // for ringmaster-bench
};

struct LogsOptions {
  Target target;
  std::string name;  // of a pod or a job
  std::string container;
  bool follow = false;
  std::optional<int> tail;  // only the last lines of each pod
  std::optional<int> rank;  // only lines with this worker number
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

struct ApplyOptions {
  Target target;
  std::vector<std::filesystem::path> files;  // "-": standard input
};

struct NodeCommandOptions {
  std::filesystem::path kubeconfig;  // kubeconfig of the run's API server; "-": standard input
  std::string name;                  // name of the node
  std::string address;               // address of this machine for the other machines
  std::filesystem::path work_dir;    // empty: a new one, removed at the end
  int pods = 1000;                   // the most pods at a time
  std::chrono::seconds abandon_after{3600};
  bool again = false;  // an earlier process of this node has died: takes over what it has left
  bool detach = false;
};

struct VersionOptions {};

struct CompletionOptions {
  std::string script;  // for the given shell
};

using Command = std::variant<RunOptions, GetOptions, DescribeOptions, WhyOptions, TopOptions,
                             TimelineOptions, UiOptions, BenchOptions, ConvertOptions, LogsOptions,
                             ScaleOptions, DrainOptions, KillOptions, DeleteOptions, ApplyOptions,
                             NodeCommandOptions, CompletionOptions, VersionOptions>;

// A request for help is a Failure with kDone; its message goes to stdout. `program` is the
// command's name in messages, "ringmaster" or "kubectl ringmaster".
Outcome<Command> ParseCommandLine(std::vector<std::string> words,
                                  const std::string& program = "ringmaster");

}  // namespace ringmaster::cli
