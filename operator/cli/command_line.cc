#include "operator/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace ringmaster::cli {
namespace {

constexpr char kAbout[] = R"(Elastic training: run a HorovodJob, look at it, scale it, break it.

Try it on this machine, in two terminals:
  ringmaster run examples/digits/job.yaml        # the same manifest as on a cluster
  ringmaster kill digits-worker-2 --worker 0     # a worker dies; the others go on
  ringmaster drain digits-worker-1               # a pod leaves by plan and is replaced
  ringmaster scale digits --replicas 6           # two more join while it trains)";

constexpr char kFooter[] = R"(`ringmaster COMMAND --help` shows options and an example.

Exit status: 0 done, 1 the job failed, 2 bad usage or manifest, 3 the machine lacks something,
130 interrupted.)";

constexpr char kRunFooter[] = R"(Examples:
  ringmaster run job.yaml                          one job
  ringmaster run jobs/ --summary out.json          every *.yaml of a folder
  ringmaster run -np 4 python3 train.py --lr 0.1   one pod of four workers, no manifest
  ringmaster run -np 4 --standby 1 python3 train.py

Ctrl-C ends the job and cleans up; a second Ctrl-C ends at once.)";

void AddTarget(CLI::App* app, Target* target) {
  app->add_option("--run", target->run_dir, "run directory of a `ringmaster run` on this machine")
      ->type_name("DIR");
  app->add_option("--kubeconfig", target->kubeconfig, "a cluster's kubeconfig")->type_name("FILE");
  app->add_option("-n,--namespace", target->ns, "namespace (default: default)")->type_name("NS");
}

// The names under which CLI11 fills the options; one struct, so that references stay valid.
struct Parsed {
  RunOptions run;
  GetOptions get;
  LogsOptions logs;
  ScaleOptions scale;
  DrainOptions drain;
  KillOptions kill;
  DeleteOptions del;
  std::vector<std::string> run_words;
  std::string format = "table";
  int kill_slot = -1;
  double timeout = 0;
};

CLI::App* AddRun(CLI::App* root, Parsed* p) {
  CLI::App* app = root->add_subcommand("run", "run jobs on this machine and show how they go");
  app->footer(kRunFooter);
  app->add_option("what", p->run_words, "manifests or folders; with -np: the command")
      ->type_name("JOB.yaml|DIR|COMMAND");
  app->add_option("--np", p->run.np, "-np N: run COMMAND as N workers in one pod")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app->add_option("--min-np", p->run.min_np, "go on while N workers live (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app->add_option("--max-np", p->run.max_np, "never more than N workers (default: -np)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app->add_option("--standby", p->run.standby, "keep N processes ready to replace a dead worker")
      ->type_name("N")
      ->check(CLI::Range(0, 1));
  app->add_option("--run-dir", p->run.run_dir,
                  "where logs, sockets and kubeconfig go; its logs are kept")
      ->type_name("DIR");
  app->add_option("--port", p->run.port, "port of the API server (default: a free one)")
      ->type_name("PORT")
      ->check(CLI::Range(0, 65535));
  app->add_option("--summary", p->run.summary, "write the summary as JSON")->type_name("FILE");
  app->add_option("--timeout", p->timeout, "end the run as failed after so many seconds")
      ->type_name("SECONDS")
      ->check(CLI::Range(1.0, 1e9));
  app->add_flag("--plain", p->run.plain, "plain lines, also on a terminal");
  app->add_flag("--keep", p->run.keep, "keep the run directory with its logs");
  return app;
}

CLI::App* AddGet(CLI::App* root, Parsed* p) {
  CLI::App* app = root->add_subcommand("get", "show jobs, their pods and workers")->alias("status");
  app->footer(
      "Examples:\n  ringmaster get\n  ringmaster get digits -o wide\n  ringmaster status digits "
      "-o json | jq .status.epoch");
  app->add_option("job", p->get.job, "a job; none: all of the namespace")->type_name("JOB");
  app->add_option("-o,--output", p->format, "json, yaml, wide or table (default)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"json", "yaml", "wide", "table"}).description(""));
  AddTarget(app, &p->get.target);
  return app;
}

CLI::App* AddLogs(CLI::App* root, Parsed* p) {
  CLI::App* app = root->add_subcommand("logs", "what a pod, or every pod of a job, has printed");
  app->footer(
      "Examples:\n  ringmaster logs digits-worker-0\n  ringmaster logs -f digits\n  ringmaster "
      "logs digits-worker-0 -c ringmaster-sidecar");
  app->add_option("name", p->logs.name, "a pod or a job")->required()->type_name("POD|JOB");
  app->add_option("-c,--container", p->logs.container, "default: the training container")
      ->type_name("NAME");
  app->add_flag("-f,--follow", p->logs.follow, "go on until the containers end");
  AddTarget(app, &p->logs.target);
  return app;
}

CLI::App* AddScale(CLI::App* root, Parsed* p) {
  CLI::App* app = root->add_subcommand("scale", "change how many pods a job has, while it trains");
  app->footer("Example:\n  ringmaster scale digits --replicas 6");
  app->add_option("job", p->scale.job, "the job")->required()->type_name("JOB");
  app->add_option("--replicas", p->scale.replicas, "pods")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(0, 100000));
  AddTarget(app, &p->scale.target);
  return app;
}

CLI::App* AddDrain(CLI::App* root, Parsed* p) {
  CLI::App* app =
      root->add_subcommand("drain", "let a pod finish its step and leave; it is replaced");
  app->footer("Example:\n  ringmaster drain digits-worker-1");
  app->add_option("pod", p->drain.pod, "the pod")->required()->type_name("POD");
  AddTarget(app, &p->drain.target);
  return app;
}

CLI::App* AddKill(CLI::App* root, Parsed* p) {
  CLI::App* app = root->add_subcommand("kill", "kill a pod, or one of its workers, without a word");
  app->footer(
      "For trying out what a loss costs; pods of a run on this machine only. Examples:\n"
      "  ringmaster kill digits-worker-2 --worker 0    SIGKILL to one training process\n"
      "  ringmaster kill digits-worker-2               all processes of the pod, as if the machine "
      "were lost");
  app->add_option("pod", p->kill.pod, "the pod")->required()->type_name("POD");
  app->add_option("--worker", p->kill_slot, "only the worker in this slot")
      ->type_name("SLOT")
      ->check(CLI::Range(0, 1023));
  AddTarget(app, &p->kill.target);
  return app;
}

CLI::App* AddDelete(CLI::App* root, Parsed* p) {
  CLI::App* app = root->add_subcommand("delete", "end a job and remove it with its pods");
  app->footer("Example:\n  ringmaster delete digits");
  app->add_option("job", p->del.job, "the job")->required()->type_name("JOB");
  AddTarget(app, &p->del.target);
  return app;
}

bool IsNp(const std::string& word) {
  return word == "-np" || word == "--np" || word.rfind("-np=", 0) == 0 ||
         word.rfind("--np=", 0) == 0;
}

// `run -np 4 python3 train.py --lr 0.1`: what follows the first word that is no option belongs to
// the command, options of the same name included. And CLI11 has no short options of two letters.
void SeparateCommand(std::vector<std::string>* words) {
  if (words->empty() || words->front() != "run") return;
  static const std::vector<std::string> kFlags = {"--plain", "--keep", "-h", "--help"};
  bool np = false;
  for (size_t i = 1; i < words->size(); ++i) {
    std::string& word = (*words)[i];
    if (word == "--") return;
    if (word.empty() || word[0] != '-') {
      if (np) words->insert(words->begin() + i, "--");
      return;
    }
    if (IsNp(word)) {
      np = true;
      if (word[1] != '-') word.insert(0, "-");
    }
    bool has_value = word.find('=') == std::string::npos &&
                     std::find(kFlags.begin(), kFlags.end(), word) == kFlags.end();
    if (has_value) ++i;
  }
}

Outcome<RunOptions> CheckRun(Parsed* p) {
  RunOptions& run = p->run;
  run.timeout = std::chrono::seconds(static_cast<int64_t>(p->timeout));
  if (run.np == 0) {
    if (run.min_np || run.max_np || run.standby)
      return Fail(ExitCode::kUsage,
                  "--min-np, --max-np and --standby go with -np N COMMAND; for a manifest set "
                  "spec.elasticPolicy");
    if (p->run_words.empty())
      return Fail(ExitCode::kUsage,
                  "run: what? A manifest (ringmaster run job.yaml) or a command (ringmaster run "
                  "-np 4 python3 train.py)");
    run.manifests.assign(p->run_words.begin(), p->run_words.end());
    return run;
  }
  run.command = p->run_words;
  if (run.command.empty())
    return Fail(ExitCode::kUsage,
                "run -np: the command is missing, for example: ringmaster run "
                "-np 4 python3 train.py");
  if (run.min_np > run.np)
    return Fail(ExitCode::kUsage,
                fmt::format("--min-np {} is more than -np {}", run.min_np, run.np));
  if (run.max_np && run.max_np < run.np)
    return Fail(ExitCode::kUsage,
                fmt::format("--max-np {} is less than -np {}", run.max_np, run.np));
  return run;
}

OutputFormat Format(const std::string& word) {
  if (word == "json") return OutputFormat::kJson;
  if (word == "yaml") return OutputFormat::kYaml;
  return word == "wide" ? OutputFormat::kWide : OutputFormat::kTable;
}

Outcome<void> CheckTarget(const Target& target) {
  if (!target.run_dir.empty() && !target.kubeconfig.empty())
    return Fail(ExitCode::kUsage, "--run and --kubeconfig name two places: give one of them");
  return {};
}

template <class Options>
Outcome<Command> WithTarget(const Options& options) {
  if (auto ok = CheckTarget(options.target); !ok) return tl::unexpected(ok.error());
  return Command(options);
}

}  // namespace

Outcome<Command> ParseCommandLine(std::vector<std::string> words) {
  Parsed p;
  CLI::App root{kAbout, "ringmaster"};
  root.require_subcommand(0, 1);
  root.footer(kFooter);
  bool version_flag = false;
  root.add_flag("--version", version_flag, "print the version");
  CLI::App* run = AddRun(&root, &p);
  CLI::App* get = AddGet(&root, &p);
  CLI::App* logs = AddLogs(&root, &p);
  CLI::App* scale = AddScale(&root, &p);
  CLI::App* drain = AddDrain(&root, &p);
  CLI::App* kill = AddKill(&root, &p);
  CLI::App* del = AddDelete(&root, &p);
  CLI::App* version = root.add_subcommand("version", "print the version");

  SeparateCommand(&words);
  std::reverse(words.begin(), words.end());  // what CLI11 wants of a vector
  try {
    root.parse(words);
  } catch (const CLI::CallForHelp&) {
    auto chosen = root.get_subcommands();
    return Fail(ExitCode::kDone, chosen.empty() ? root.help() : chosen[0]->help());
  } catch (const CLI::ParseError& error) {
    auto chosen = root.get_subcommands();
    std::string where = chosen.empty() ? "" : chosen[0]->get_name() + " ";
    return Fail(ExitCode::kUsage, fmt::format("{}\nTry: ringmaster {}--help", error.what(), where));
  }
  if (*run) {
    auto checked = CheckRun(&p);
    if (!checked) return tl::unexpected(checked.error());
    return Command(*checked);
  }
  if (*get) {
    p.get.format = Format(p.format);
    return WithTarget(p.get);
  }
  if (*logs) return WithTarget(p.logs);
  if (*scale) return WithTarget(p.scale);
  if (*drain) return WithTarget(p.drain);
  if (*del) return WithTarget(p.del);
  if (*kill) {
    if (p.kill_slot >= 0) p.kill.worker = p.kill_slot;
    return WithTarget(p.kill);
  }
  if (*version || version_flag) return Command(VersionOptions{});
  return Fail(ExitCode::kUsage, root.help());
}

}  // namespace ringmaster::cli
