#include "operator/cli/run_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/process/file_limit.h"
#include "common/ring_key/ring_key.h"
#include "common/sync/mutex.h"
#include "operator/app/operator_app.h"
#include "operator/cli/host_follower.h"
#include "operator/cli/kept_output.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/local_mode.h"
#include "operator/cli/machines.h"
#include "operator/cli/manifest.h"
#include "operator/cli/run_environment.h"
#include "operator/cli/run_log.h"
#include "operator/cli/run_metrics.h"
#include "operator/cli/run_session.h"
#include "operator/cli/signals.h"
#include "operator/cli/ui_command.h"
#include "operator/kube/base64.h"
#include "operator/kube/file.h"
#include "operator/local/local_cluster.h"

extern char** environ;

namespace ringmaster::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr std::chrono::milliseconds kGrace{3000};
constexpr std::chrono::milliseconds kPlainPeriod{3000};
constexpr std::chrono::milliseconds kPagePeriod{1000};
constexpr int kPatienceForSlots = 600;  // seconds, like a job's time to start
// Free in the run directory: without the first no run begins, without the second it counts as full.
constexpr std::uintmax_t kRoomToBegin = 16u << 20, kRoomToGoOn = 1u << 20;
constexpr size_t kKeptRuns = 10;  // runs that did not succeed, whose logs may still be wanted

Outcome<std::vector<Json>> Jobs(const RunOptions& options) {
  std::error_code error;
  if (options.np == 0) {
    const auto folders = ParseClaimFolders(options.volumes, fs::current_path(error));
    if (!folders) return tl::unexpected(folders.error());
    auto jobs = LoadManifests(options.manifests);
    if (!jobs) return jobs;
    if (auto given = GiveFolders(*folders, &*jobs); !given) return tl::unexpected(given.error());
    return jobs;
  }
  auto job = JobForCommand(options, fs::current_path(error));
  if (!job) return tl::unexpected(job.error());
  return std::vector<Json>{*job};
}

// Reports the problem before an hour of training instead of afterwards.
Outcome<void> CheckWritable(const char* option, const fs::path& file) {
  if (file.empty()) return {};
  int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0)
    return Fail(ExitCode::kUsage, fmt::format("{} {}: can't be written: {}", option, file.string(),
                                              std::strerror(errno)));
  close(fd);
  return {};
}

Outcome<void> CheckBinaries(const fs::path& bin_dir) {
  for (const char* name : {"ringmaster-sidecar", "ringmaster-launcher"}) {
    if (access((bin_dir / name).c_str(), X_OK) == 0) continue;
    return Fail(ExitCode::kMachineLacks,
                fmt::format("{} is not beside the ringmaster command in {}: build it with "
                            "`cmake --build build/release`",
                            name, bin_dir.string()));
  }
  return {};
}

// Runs on the signal thread, so it must not use a stream that another thread may have locked.
[[noreturn]] void EndAtOnce(const fs::path& run_dir) {
  dprintf(STDERR_FILENO, "%sringmaster: interrupted again: ended at once\n%s\n",
          isatty(STDERR_FILENO) ? "\n" : "", WhereLogsAre(run_dir).c_str());
  _exit(static_cast<int>(ExitCode::kInterrupted));
}

// A second Ctrl-C arrives on the signal thread while the first is being handled. The process then
// ends at once, and the watchdog of the local cluster cleans up as after a SIGKILL.
class Interrupts {
 public:
  explicit Interrupts(const fs::path& run_dir)
      : thread_([this, run_dir](int signal, int count) {
          // Of a terminal that closes, one SIGHUP comes from the kernel and another from the shell.
          if (count > 1 && signal == SIGHUP) return;
          if (count > 1) EndAtOnce(run_dir);
          stop_.request_stop();
          const sync::MutexLock lock(&mu_);
          signal_ = signal;
          if (session_) session_->Interrupt(signal);
        }) {}

  void Attach(RunSession* session) {
    const sync::MutexLock lock(&mu_);
    session_ = session;
    if (session && signal_) session->Interrupt(signal_);
  }

  // Requested by the first signal, so that everything before the session ends soon.
  std::stop_token stop() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  sync::Mutex mu_;
  RunSession* session_ GUARDED_BY(mu_) = nullptr;
  int signal_ GUARDED_BY(mu_) = 0;
  SignalThread thread_;  // last member: its thread uses the others
};

// Cluster and operator, stopped in an order in which nothing is created again.
struct Stack {
  // First member: all others use it.
  std::unique_ptr<RunMetrics> metrics = std::make_unique<RunMetrics>();
  std::unique_ptr<local::LocalCluster> cluster;
  std::shared_ptr<kube::KubeApi> api;
  std::unique_ptr<app::OperatorApp> app;
  std::string sidecar_token;
  std::vector<std::string> nodes_left;  // after Stop: nodes on other machines that may still run

  // `address` is that of this machine for the others; empty: there are no others.
  static Outcome<Stack> Start(const RunOptions& options, const fs::path& bin_dir,
                              const fs::path& run_dir, const std::string& address) {
    Stack stack;
    local::LocalClusterOptions local{.run_dir = run_dir, .bin_dir = bin_dir, .port = options.port};
    if (!address.empty()) {
      local.address = address;
      local.nodes = 0;
    }
    auto cluster = local::LocalCluster::Start(local);
    if (!cluster) return tl::unexpected(FromKube(cluster.error()));
    stack.cluster = std::move(*cluster);
    auto api = stack.metrics->Connect(stack.cluster->kubeconfig());
    if (!api) return tl::unexpected(api.error());
    stack.api = std::move(*api);
    const fs::path key = run_dir / ring_key::kFileName;
    const std::string ring_key = ring_key::MakeRandom();
    if (auto wrote = ring_key::WriteFile(key, ring_key); !wrote) {
      return Fail(ExitCode::kMachineLacks, wrote.error());
    }
    stack.sidecar_token = ring_key::MakeToken(ring_key);
    app::OperatorOptions operator_options =
        !address.empty()
            ? OperatorForMachines(address, ring_key)
            : app::OperatorOptions{.listen = "unix:" + (run_dir / "operator.sock").string(),
                                   .ring_key_file = key.string()};
    operator_options.metrics = stack.metrics->of_controllers();
    auto app = app::OperatorApp::Start(stack.api, operator_options);
    if (!app) return tl::unexpected(FromKube(app.error()));
    stack.app = std::move(*app);
    if (!address.empty()) {
      if (auto left = stack.LeaveEnvironment(); !left) return tl::unexpected(left.error());
    }
    if (!options.metrics_listen.empty()) {
      auto listens = stack.metrics->Listen(options.metrics_listen, stack.app.get());
      if (!listens) return tl::unexpected(listens.error());
    }
    return stack;
  }

  // As on a cluster: mutual TLS, with a certificate for each job.
  static app::OperatorOptions OperatorForMachines(const std::string& address,
                                                  const std::string& ring_key) {
    return {.listen = address + ":0",
            .ring_key = ring_key,
            .host_network = true,
            .operator_namespace = "default",
            .network_policy = false};
  }

  // Creates the Secret with the environment for nodes on other machines.
  Outcome<void> LeaveEnvironment() {
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    auto made = api->Create(kube::Secrets(), "default", EnvironmentSecret(environment));
    if (!made) return tl::unexpected(FromKube(made.error()));
    return {};
  }

  void Stop() {
    metrics->Stop();
    // What still trains leaves after its step, if that ends in time.
    if (app) app->Dismiss();
    if (app) app->Stop();
    if (cluster) {
      cluster->Stop(kGrace);
      nodes_left = cluster->NodesLeft();
    }
    app.reset();
    api.reset();
    cluster.reset();
  }
};

Outcome<void> WriteSummary(const fs::path& file, const Json& summary) {
  if (file.empty()) return {};
  std::ofstream stream(file);
  stream << summary.dump(2) << "\n";
  stream.close();
  if (stream) return {};
  return Fail(ExitCode::kMachineLacks,
              fmt::format("--summary {}: can't be written", file.string()));
}

// What an earlier run has left where this one, which begins now, will write.
void RemoveEarlier(const RunOptions& options, const std::vector<Json>& jobs) {
  RemoveEarlierOutput(jobs);
  std::error_code error;
  if (fs::is_regular_file(options.summary, error)) std::ofstream(options.summary).close();
}

Outcome<void> ToOutcome(SessionEnd end, const std::vector<std::string>& why) {
  std::string text;
  for (const std::string& line : why) text += (text.empty() ? "" : "\n") + line;
  switch (end) {
    case SessionEnd::kSucceeded:
      return {};
    case SessionEnd::kInterrupted:
      return Fail(ExitCode::kInterrupted, "interrupted: the job was ended");
    case SessionEnd::kDirectoryGone:
      return Fail(ExitCode::kJobFailed,
                  "the run's directory was removed while the run went on, and nothing can start in "
                  "it any more: the job was ended");
    case SessionEnd::kFailed:
    case SessionEnd::kTimeout:
      break;
  }
  return Fail(ExitCode::kJobFailed, text);
}

MachineOptions ToMachineOptions(const RunOptions& options, const fs::path& bin_dir,
                                const fs::path& run_dir) {
  std::error_code error;
  return {.ssh = options.ssh,
          .bin_dir = bin_dir,
          .work_dir = fs::current_path(error),
          .run_dir = run_dir,
          .address = options.address,
          .abandon_after = options.abandon_after,
          .abandon_after_here = options.abandon_after};
}

// The machines for the workers, if it is not only this one: those that the user has named, or those
// that a script names.
class Elsewhere {
 public:
  Elsewhere(const RunOptions& options, const MachineOptions& machine, Display* display,
            const std::stop_token& stop)
      : say_([display](const std::string& line) { display->Line(line); }) {
    if (!options.hosts.empty()) {
      machines_ = std::make_unique<Machines>(machine, options.hosts, PodsOf(options), stop);
    } else if (!options.host_script.empty()) {
      follower_ = std::make_unique<HostFollower>(
          HostFollowerOptions{
              .machine = machine,
              .script = options.host_script,
              .slots_per_host = std::max(1, options.slots_per_host),
              .np = options.np,
              .min_np = options.min_np,
              .max_np = options.max_np,
              .patience = std::chrono::seconds(options.init_timeout.value_or(kPatienceForSlots))},
          say_, stop);
    }
  }

  bool any() const { return machines_ || follower_; }

  // The address by which they reach this machine; empty if there are none.
  Outcome<std::string> Prepare() {
    if (follower_) return follower_->AwaitAddress();
    if (!machines_) return "";
    auto ready = machines_->Prepare(say_);
    if (!ready) return tl::unexpected(ready.error());
    return machines_->address();
  }

  // Makes the machines nodes of the cluster. If they change, it waits for enough of them and sets
  // the size of the job accordingly.
  Outcome<void> Join(const Stack& stack, std::vector<Json>* jobs) {
    if (machines_) {
      auto started = machines_->StartNodes(stack.cluster->kubeconfig());
      if (started) machines_->Keep(stack.api, stack.cluster->kubeconfig(), say_);
      return started;
    }
    if (!follower_) return {};
    follower_->Serve(stack.api, stack.cluster->kubeconfig());
    const auto workers = follower_->AwaitWorkers();
    if (!workers) return tl::unexpected(workers.error());
    jobs->front()["spec"]["worker"]["replicas"] = *workers;
    return {};
  }

  // From now on the job, which has been created, grows and shrinks with the machines.
  void Follow(const Json& job) {
    if (!follower_) return;
    const Json& metadata = job["metadata"];
    follower_->Follow(metadata["namespace"], metadata["name"], job["spec"]["worker"]["replicas"]);
  }

  // The job is over, so machines no longer join or leave.
  void StopFollowing() {
    if (machines_) machines_->Stop();
    if (follower_) follower_->Stop();
  }

  std::string EndByHand(const std::string& node) const {
    return follower_ ? follower_->EndByHand(node) : machines_->EndByHand(node);
  }

 private:
  static std::vector<int> PodsOf(const RunOptions& options) {
    std::vector<int> pods;
    for (const Host& host : options.hosts) pods.push_back(host.slots);
    if (options.np == 0) return pods;
    return LayOut(options.hosts, options.np, options.min_np > 0 || options.max_np > 0).pods_of_host;
  }

  const std::function<void(const std::string&)> say_;
  std::unique_ptr<Machines> machines_;
  std::unique_ptr<HostFollower> follower_;
};

// Creates the Secret that the job's workers mount.
Outcome<void> Carry(kube::KubeApi* api, const fs::path& file) {
  if (file.empty()) return {};
  const auto bytes = kube::ReadFile(file);
  if (!bytes) {
    return Fail(ExitCode::kUsage, fmt::format("--carry {}: can't be read: {}", file.string(),
                                              bytes.error().message()));
  }
  auto made = api->Create(kube::Secrets(), "default",
                          {{"apiVersion", "v1"},
                           {"kind", "Secret"},
                           {"metadata", {{"name", kCarriedSecret}, {"namespace", "default"}}},
                           {"type", "Opaque"},
                           {"data", {{kCarriedEntry, kube::EncodeBase64(*bytes)}}}});
  if (!made) return tl::unexpected(FromKube(made.error()));
  return {};
}

void TellIgnored(const Json& job, Display* display) {
  std::string fields;
  for (const std::string& field : IgnoredFields(job))
    fields += (fields.empty() ? "" : ", ") + field;
  if (!fields.empty()) display->Line("without effect on this machine: " + fields);
}

// Reports each node once.
void TellNodesLeft(Stack* stack, const Elsewhere& elsewhere, Display* display) {
  for (const std::string& node : std::exchange(stack->nodes_left, {})) {
    const std::string by_hand = elsewhere.EndByHand(node);
    display->Line(fmt::format("node {} has not said that it ended{}{}", node,
                              by_hand.empty() ? "" : "; to end it: ", by_hand));
  }
}

Outcome<void> RunOn(Stack* stack, const RunOptions& options, const std::vector<Json>& jobs,
                    Interrupts* interrupts, const fs::path& run_dir, Display* display,
                    Elsewhere* elsewhere, Outcome<void>* room) {
  RunSession session(stack->api, display,
                     {.timeout = options.timeout,
                      .sidecar_token = stack->sidecar_token,
                      .logs = run_dir / "logs",
                      .directory_is_there = [&run_dir] { return IsThere(run_dir); },
                      .other_machines = elsewhere->any(),
                      .output = options.np > 0 ? SessionOptions::Output::kAll
                                               : SessionOptions::Output::kRankZero});
  interrupts->Attach(&session);
  RemoveEarlier(options, jobs);
  auto created = session.Create(jobs);
  if (!created) {
    interrupts->Attach(nullptr);
    return created;
  }
  elsewhere->Follow(jobs.front());
  Page page;
  if (!options.metrics_listen.empty())
    display->Line(fmt::format("metrics on port {}", stack->metrics->port()));
  if (options.ui) {
    auto opened = Page::Open({stack->api, run_dir, ""}, 0, kPagePeriod);
    display->Line(opened ? "page " + opened->address() : opened.error().message);
    if (opened) page = std::move(*opened);
  }
  SessionEnd end = session.Follow();
  *room = CheckSpace(run_dir, kRoomToGoOn);  // before the end of the pods makes some
  page.Close();
  interrupts->Attach(nullptr);
  elsewhere->StopFollowing();
  std::vector<std::string> why;
  if (end == SessionEnd::kFailed || end == SessionEnd::kTimeout) why = session.FailureLines();
  stack->Stop();
  TellNodesLeft(stack, *elsewhere, display);
  for (const std::string& line : session.SummaryLines(end)) display->Line(line);
  auto outcome = ToOutcome(end, why);
  auto wrote = WriteSummary(options.summary, session.Summary(end));
  if (outcome) return wrote;
  if (!wrote) outcome.error().message += "\n" + wrote.error().message;
  return outcome;
}

Outcome<void> RunInDirectory(const RunOptions& options, const fs::path& bin_dir,
                             std::vector<Json> jobs, Interrupts* interrupts,
                             const fs::path& run_dir, Outcome<void>* room) {
  const bool plain = options.plain || !isatty(STDOUT_FILENO);
  const auto display =
      MakeSharedDisplay(plain ? MakePlainDisplay(stdout, kPlainPeriod, interrupts->stop())
                              : MakeTerminalDisplay(stdout, interrupts->stop()));
  Elsewhere elsewhere(options, ToMachineOptions(options, bin_dir, run_dir), display.get(),
                      interrupts->stop());
  const auto address = elsewhere.Prepare();
  if (!address) return tl::unexpected(address.error());
  auto stack = Stack::Start(options, bin_dir, run_dir, *address);
  if (!stack) return tl::unexpected(stack.error());
  // Shown only when the watchdog runs, which cleans up however this process ends.
  display->Line(fmt::format("run directory {}", run_dir.string()));
  for (const Json& job : jobs) TellIgnored(job, display.get());
  auto outcome = Carry(stack->api.get(), options.carried);
  if (outcome) outcome = elsewhere.Join(*stack, &jobs);
  if (outcome)
    outcome = RunOn(&*stack, options, jobs, interrupts, run_dir, display.get(), &elsewhere, room);
  elsewhere.StopFollowing();
  stack->Stop();
  TellNodesLeft(&*stack, elsewhere, display.get());
  return outcome;
}

}  // namespace

Outcome<void> RunJobs(const RunOptions& options, const RunPaths& paths, const std::string& run_id) {
  auto jobs = Jobs(options);
  if (!jobs) return tl::unexpected(jobs.error());
  if (auto ok = CheckWritable("--summary", options.summary); !ok) return ok;
  if (auto ok = CheckWritable("--csv", options.csv); !ok) return ok;
  if (auto ok = CheckBinaries(paths.bin_dir); !ok) return ok;
  auto run_dir = RunDirectory::Create(options.run_dir, paths, run_id);
  if (!run_dir) return tl::unexpected(run_dir.error());
  auto ready = CheckSpace(run_dir->path(), kRoomToBegin);
  if (ready) ready = PrepareOutput(options.output_dir, &*jobs);
  if (!ready) {
    RunDirectory::Clean(run_dir->path(), run_dir->ours(), false);
    return ready;
  }
  process::RaiseFileLimit();  // each pod takes some seven files

  // A full disk: whatever the job has failed with may have come of it, and logs may lack their end.
  Outcome<void> outcome, room;
  {
    Interrupts interrupts(run_dir->path());
    LogToFile(run_dir->path(), "operator");
    outcome = RunInDirectory(options, paths.bin_dir, *jobs, &interrupts, run_dir->path(), &room);
  }
  RunDirectory::RemoveOld(paths, kKeptRuns);
  // A user who interrupts a job, or whose time limit is over, wants to know the job's state.
  const bool told = !outcome && (outcome.error().code == ExitCode::kJobFailed ||
                                 outcome.error().code == ExitCode::kInterrupted);
  const std::string logs = WhereLogsAre(run_dir->path());
  RunDirectory::Clean(run_dir->path(), run_dir->ours(), options.keep || told);
  if (told && !options.output_dir.empty())
    outcome.error().message += "\nOutput of each rank: " + options.output_dir.string();
  if (told) outcome.error().message += "\n" + logs;
  if (!room && !outcome && outcome.error().code == ExitCode::kJobFailed)
    return Fail(ExitCode::kMachineLacks, outcome.error().message + "\n" + room.error().message);
  return outcome;
}

}  // namespace ringmaster::cli
