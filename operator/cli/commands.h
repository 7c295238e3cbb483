// The commands of `ringmaster` as values, each with its options and their defaults.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/cli/hosts.h"

namespace ringmaster::cli {

// Which API server a command speaks to; connection.h says what is taken where nothing is named.
struct Target {
  std::filesystem::path run_dir;
  std::filesystem::path kubeconfig;
  std::string context;
  std::string ns;  // empty: of the context, else "default"
};

struct RunOptions {
  std::vector<std::filesystem::path> manifests;  // files and folders; empty with `command`
  int np = 0;                                    // > 0: one pod of so many slots runs `command`
  int min_np = 0;                                // 0: np
  int max_np = 0;
  int standby = 0;
  // Of the job that is made for `command`; none: as a manifest that doesn't name it.
  std::optional<int> init_timeout;
  std::optional<int> backoff_limit;
  std::optional<int> fusion_threshold;
  std::string backend;  // of spec.collectives; empty: the default
  std::vector<std::string> command;
  std::filesystem::path carried;     // a file for every worker of the command; empty: none
  std::vector<std::string> volumes;  // CLAIM=DIR, each
  // Other machines, by ssh; none: this one alone.
  std::vector<Host> hosts;
  // Asked for the hosts again and again, instead of `hosts`; empty: none.
  std::filesystem::path host_script;
  int slots_per_host = 0;  // of a host that it names without a number; 0: one
  SshOptions ssh;
  std::string address;  // by which the hosts reach this machine; empty: as ssh shows it
  std::chrono::seconds abandon_after{3600};
  std::filesystem::path run_dir;  // empty: a new one, removed at the end
  int port = 0;                   // of the API server; 0: chosen free
  std::filesystem::path summary;  // empty: none
  std::filesystem::path csv;      // which the command will write; empty: none
  // Each worker's output is kept in files below it; empty: in the logs alone.
  std::filesystem::path output_dir;
  bool plain = false;
  bool keep = false;
  bool ui = false;                  // serve the page while it runs
  std::string metrics_listen;       // host:port of the operator's metrics; empty: not served
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
  std::chrono::milliseconds interval{2000};  // between two looks
  bool once = false;
};

struct TimelineOptions {
  Target target;
  std::string job;
  int seconds = 10;
  std::string file;  // empty: named after the job; -: standard output
};

struct UiOptions {
  Target target;
  bool all_namespaces = false;
  int port = 0;                              // 0: chosen free
  std::chrono::milliseconds interval{1000};  // between two looks
};

struct ConvertOptions {
  std::string file;  // "-": standard input
};

struct BenchOptions {
  int np = 2;
  std::vector<std::string> words;  // for ringmaster-bench
  std::filesystem::path csv;       // which that will write; empty: none
};

struct LogsOptions {
  Target target;
  std::string name;  // of a pod or a job
  std::string container;
  bool follow = false;
  std::optional<int> tail;  // of each pod, only the last lines
  std::optional<int> rank;  // the number in front of the lines that are wanted
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
  bool force_conflicts = false;              // take over fields that others have set
};

struct NodeCommandOptions {
  std::filesystem::path kubeconfig;  // of the run's API server; "-": standard input
  std::string name;                  // of the node
  std::string address;               // by which other machines reach this one
  std::filesystem::path work_dir;    // empty: a new one, removed at the end
  int pods = 1000;                   // at a time
  std::chrono::seconds abandon_after{3600};
  bool again = false;  // a process of the name has died: what it has left is taken over
  bool detach = false;
};

struct VersionOptions {};

struct CompletionOptions {
  std::string script;  // for the shell that was named
};

using Command = std::variant<RunOptions, GetOptions, DescribeOptions, WhyOptions, TopOptions,
                             TimelineOptions, UiOptions, BenchOptions, ConvertOptions, LogsOptions,
                             ScaleOptions, DrainOptions, KillOptions, DeleteOptions, ApplyOptions,
                             NodeCommandOptions, CompletionOptions, VersionOptions>;

}  // namespace ringmaster::cli
