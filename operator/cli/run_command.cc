#include "operator/cli/run_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/ring_key/ring_key.h"
#include "common/sync/mutex.h"
#include "operator/app/operator_app.h"
#include "operator/cli/kept_output.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/manifest.h"
#include "operator/cli/run_metrics.h"
#include "operator/cli/run_session.h"
#include "operator/cli/signals.h"
#include "operator/cli/ui_command.h"
#include "operator/local/local_cluster.h"

namespace ringmaster::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr std::chrono::milliseconds kGrace{3000};
constexpr std::chrono::milliseconds kPlainPeriod{3000};
constexpr std::chrono::milliseconds kPagePeriod{1000};
constexpr size_t kKeptRuns = 10;  // failed ones, whose logs somebody may want yet

Outcome<std::vector<Json>> Jobs(const RunOptions& options) {
  if (options.np == 0) return LoadManifests(options.manifests);
  std::error_code error;
  auto job = JobForCommand(options, fs::current_path(error));
  if (!job) return tl::unexpected(job.error());
  return std::vector<Json>{*job};
}

// Said before an hour of training, not after it.
Outcome<void> CheckSummary(const fs::path& file) {
  if (file.empty()) return {};
  int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0)
    return Fail(ExitCode::kUsage, fmt::format("--summary {}: can't be written: {}", file.string(),
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

// The second Ctrl-C comes on the signal thread while the first is still being obeyed: the process
// ends at once, and the watchdog of the local cluster cleans up as after a SIGKILL.
class Interrupts {
 public:
  Interrupts()
      : thread_([this](int signal, int count) {
          if (count > 1) _exit(static_cast<int>(ExitCode::kInterrupted));
          const sync::MutexLock lock(&mu_);
          signal_ = signal;
          if (session_) session_->Interrupt(signal);
        }) {}

  void Attach(RunSession* session) {
    const sync::MutexLock lock(&mu_);
    session_ = session;
    if (session && signal_) session->Interrupt(signal_);
  }

 private:
  sync::Mutex mu_;
  RunSession* session_ GUARDED_BY(mu_) = nullptr;
  int signal_ GUARDED_BY(mu_) = 0;
  SignalThread thread_;  // last: uses the others
};

// Cluster and operator, ended in the order that leaves nothing to be created again.
struct Stack {
  std::unique_ptr<RunMetrics> metrics = std::make_unique<RunMetrics>();  // first: all others use it
  std::unique_ptr<local::LocalCluster> cluster;
  std::shared_ptr<kube::KubeApi> api;
  std::unique_ptr<app::OperatorApp> app;
  std::string sidecar_token;

  static Outcome<Stack> Start(const RunOptions& options, const fs::path& bin_dir,
                              const fs::path& run_dir) {
    Stack stack;
    auto cluster =
        local::LocalCluster::Start({.run_dir = run_dir, .bin_dir = bin_dir, .port = options.port});
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
    auto app = app::OperatorApp::Start(stack.api,
                                       {.listen = "unix:" + (run_dir / "operator.sock").string(),
                                        .ring_key_file = key.string(),
                                        .metrics = stack.metrics->of_controllers()});
    if (!app) return tl::unexpected(FromKube(app.error()));
    stack.app = std::move(*app);
    if (!options.metrics_listen.empty()) {
      auto listens = stack.metrics->Listen(options.metrics_listen, stack.app.get());
      if (!listens) return tl::unexpected(listens.error());
    }
    return stack;
  }

  void Stop() {
    metrics->Stop();
    if (app) app->Stop();
    if (cluster) cluster->Stop(kGrace);
    app.reset();
    api.reset();
    cluster.reset();
  }
};

// The operator's log is for who looks for a fault, not for who looks at the terminal.
void LogToFile(const fs::path& run_dir) {
  std::error_code error;
  fs::create_directories(run_dir / "logs", error);
  try {
    auto logger = spdlog::basic_logger_mt("operator", (run_dir / "logs/operator.log").string());
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(logger);
  } catch (const spdlog::spdlog_ex&) {
    spdlog::set_level(spdlog::level::off);  // the directory was written to a moment ago
  }
}

Outcome<void> WriteSummary(const fs::path& file, const Json& summary) {
  if (file.empty()) return {};
  std::ofstream stream(file);
  stream << summary.dump(2) << "\n";
  stream.close();
  if (stream) return {};
  return Fail(ExitCode::kMachineLacks,
              fmt::format("--summary {}: can't be written", file.string()));
}

Outcome<void> ToOutcome(SessionEnd end, const std::vector<std::string>& why) {
  std::string text;
  for (const std::string& line : why) text += (text.empty() ? "" : "\n") + line;
  switch (end) {
    case SessionEnd::kSucceeded:
      return {};
    case SessionEnd::kInterrupted:
      return Fail(ExitCode::kInterrupted, "interrupted: the job was ended");
    case SessionEnd::kFailed:
    case SessionEnd::kTimeout:
      break;
  }
  return Fail(ExitCode::kJobFailed, text);
}

Outcome<void> RunOn(Stack* stack, const RunOptions& options, const std::vector<Json>& jobs,
                    Interrupts* interrupts, const fs::path& run_dir) {
  bool plain = options.plain || !isatty(STDOUT_FILENO);
  auto display = plain ? MakePlainDisplay(stdout, kPlainPeriod) : MakeTerminalDisplay(stdout);
  auto kill_pod = [stack](const std::string& ns, const std::string& pod) {
    (void)stack->cluster->KillPod(ns, pod);  // it may have ended by itself
  };
  RunSession session(
      stack->api, display.get(),
      {.timeout = options.timeout,
       .sidecar_token = stack->sidecar_token,
       .logs = run_dir / "logs",
       .output = options.np > 0 ? SessionOptions::Output::kAll : SessionOptions::Output::kRankZero,
       .kill_pod = kill_pod});
  interrupts->Attach(&session);
  display->Line(fmt::format("run directory {}", run_dir.string()));
  auto created = session.Create(jobs);
  if (!created) {
    interrupts->Attach(nullptr);
    return created;
  }
  Page page;
  if (!options.metrics_listen.empty())
    display->Line(fmt::format("metrics on port {}", stack->metrics->port()));
  if (options.ui) {
    auto opened = Page::Open({stack->api, run_dir, ""}, 0, kPagePeriod);
    display->Line(opened ? "page " + opened->address() : opened.error().message);
    if (opened) page = std::move(*opened);
  }
  SessionEnd end = session.Follow();
  page.Close();
  interrupts->Attach(nullptr);
  std::vector<std::string> why;
  if (end == SessionEnd::kFailed || end == SessionEnd::kTimeout) why = session.FailureLines();
  stack->Stop();
  for (const std::string& line : session.SummaryLines(end)) display->Line(line);
  if (auto wrote = WriteSummary(options.summary, session.Summary(end)); !wrote) return wrote;
  return ToOutcome(end, why);
}

}  // namespace

Outcome<void> RunJobs(const RunOptions& options, const RunPaths& paths, const std::string& run_id) {
  auto jobs = Jobs(options);
  if (!jobs) return tl::unexpected(jobs.error());
  if (auto ok = CheckSummary(options.summary); !ok) return ok;
  if (auto ok = CheckBinaries(paths.bin_dir); !ok) return ok;
  if (auto ok = PrepareOutput(options.output_dir, &*jobs); !ok) return ok;
  auto run_dir = RunDirectory::Create(options.run_dir, paths, run_id);
  if (!run_dir) return tl::unexpected(run_dir.error());

  Outcome<void> outcome;
  {
    Interrupts interrupts;
    LogToFile(run_dir->path());
    auto stack = Stack::Start(options, paths.bin_dir, run_dir->path());
    outcome = stack ? RunOn(&*stack, options, *jobs, &interrupts, run_dir->path())
                    : tl::unexpected(stack.error());
    if (stack) stack->Stop();
  }
  RunDirectory::RemoveOld(paths, kKeptRuns);
  const bool failed = !outcome && outcome.error().code == ExitCode::kJobFailed;
  RunDirectory::Clean(run_dir->path(), run_dir->ours(), options.keep || failed);
  if (failed && !options.output_dir.empty())
    outcome.error().message += "\nOutput of each rank: " + options.output_dir.string();
  if (failed) outcome.error().message += "\nAll logs: " + (run_dir->path() / "logs").string();
  return outcome;
}

}  // namespace ringmaster::cli
