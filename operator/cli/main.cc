// The `ringmaster` command. It alone reads the environment.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "operator/cli/apply_command.h"
#include "operator/cli/command_line.h"
#include "operator/cli/complete_command.h"
#include "operator/cli/completion.h"
#include "operator/cli/connection.h"
#include "operator/cli/control_commands.h"
#include "operator/cli/convert_command.h"
#include "operator/cli/explain_commands.h"
#include "operator/cli/flush.h"
#include "operator/cli/get_command.h"
#include "operator/cli/logs_command.h"
#include "operator/cli/node_command.h"
#include "operator/cli/run_command.h"
#include "operator/cli/timeline_command.h"
#include "operator/cli/top_command.h"
#include "operator/cli/ui_command.h"

namespace {

using namespace ringmaster::cli;

constexpr char kCompleterOfKubectl[] = "kubectl_complete-ringmaster";

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// `program` is argv[0].
Surroundings SurroundingsFromEnvironment(const std::string& program) {
  std::error_code error;
  const std::filesystem::path name = std::filesystem::path(program).filename();
  return {
      .paths = {.run_dir = Variable("RINGMASTER_RUN_DIR"),
                .runs = Variable("RINGMASTER_RUNS"),
                .runtime_dir = Variable("XDG_RUNTIME_DIR"),
                .bin_dir = std::filesystem::read_symlink("/proc/self/exe", error).parent_path()},
      .kubeconfig = Variable("KUBECONFIG"),
      .home = Variable("HOME"),
      .kubectl_plugin = name == "kubectl-ringmaster" || name == kCompleterOfKubectl};
}

// Short, because it is part of paths of unix sockets, and unique among the runs of a machine.
std::string NewRunId() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  return fmt::format("{:x}-{}", seconds & 0xffffff, getpid());
}

struct Dispatch {
  const Surroundings& around;

  Outcome<void> operator()(const RunOptions& options) const {
    return RunJobs(options, around.paths, NewRunId());
  }
  Outcome<void> operator()(const GetOptions& options) const { return Get(options, around); }
  Outcome<void> operator()(const DescribeOptions& options) const {
    return Describe(options, around);
  }
  Outcome<void> operator()(const WhyOptions& options) const { return Why(options, around); }
  Outcome<void> operator()(const TopOptions& options) const { return Top(options, around); }
  Outcome<void> operator()(const TimelineOptions& options) const {
    return Timeline(options, around);
  }
  Outcome<void> operator()(const UiOptions& options) const { return Ui(options, around); }
  Outcome<void> operator()(const BenchOptions& options) const {
    RunOptions run;
    run.np = options.np;
    run.csv = options.csv;
    run.command = {(around.paths.bin_dir / "ringmaster-bench").string()};
    run.command.insert(run.command.end(), options.words.begin(), options.words.end());
    return RunJobs(run, around.paths, NewRunId());
  }
  Outcome<void> operator()(const ConvertOptions& options) const { return Convert(options); }
  Outcome<void> operator()(const LogsOptions& options) const { return Logs(options, around); }
  Outcome<void> operator()(const ScaleOptions& options) const { return Scale(options, around); }
  Outcome<void> operator()(const DrainOptions& options) const { return Drain(options, around); }
  Outcome<void> operator()(const KillOptions& options) const { return Kill(options, around); }
  Outcome<void> operator()(const DeleteOptions& options) const { return Delete(options, around); }
  Outcome<void> operator()(const ApplyOptions& options) const { return Apply(options, around); }
  Outcome<void> operator()(const NodeCommandOptions& options) const {
    return RunNode(options, around.paths.bin_dir, NewRunId());
  }
  Outcome<void> operator()(const CompletionOptions& options) const {
    std::fputs(options.script.c_str(), stdout);
    return {};
  }
  Outcome<void> operator()(const VersionOptions&) const {
    std::printf("ringmaster %s\n", RINGMASTER_VERSION);
    return {};
  }
};

int Report(const Failure& failure) {
  bool asked = failure.code == ExitCode::kDone;
  std::string text = failure.message;
  if (text.empty() || text.back() != '\n') text += "\n";
  if (!asked) text = "ringmaster: " + text;
  std::fwrite(text.data(), 1, text.size(), asked ? stdout : stderr);  // may have a NUL in it
  return static_cast<int>(failure.code);
}

// The exit status of a command that has ended so.
int StatusOf(const Outcome<void>& outcome) {
  const bool failed = !outcome && outcome.error().code != ExitCode::kDone;
  const int status = outcome ? static_cast<int>(ExitCode::kDone) : Report(outcome.error());
  const Outcome<void> written = FlushAll(stdout);
  return failed || written ? status : Report(written.error());
}

}  // namespace

int main(int argc, char** argv) {
  // A handler and not SIG_IGN, because child processes must get the default action.
  signal(SIGPIPE, [](int) {});
  const std::filesystem::path called = argc > 0 ? argv[0] : "";
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const Surroundings around = SurroundingsFromEnvironment(called);
  const bool hidden = !words.empty() && words.front() == kCompleteCommand;
  if (hidden || called.filename() == kCompleterOfKubectl) {
    Complete({words.begin() + (hidden ? 1 : 0), words.end()}, around);
    return static_cast<int>(ExitCode::kDone);
  }
  const char* program = around.kubectl_plugin ? "kubectl ringmaster" : "ringmaster";
  auto command = ParseCommandLine(words, program, around.home);
  if (!command) return StatusOf(tl::unexpected(command.error()));
  return StatusOf(std::visit(Dispatch{around}, *command));
}
