#include "operator/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "operator/cli/command_options.h"
#include "operator/cli/completion.h"
#include "operator/cli/suggestion.h"

namespace ringmaster::cli {
namespace {

constexpr int kMostLocalWorkers = 1024;

bool IsNp(const std::string& word) {
  return word == "-np" || word == "--np" || word.rfind("-np=", 0) == 0 ||
         word.rfind("--np=", 0) == 0;
}

// CLI11 has no short options with two letters.
void Lengthen(std::string* np) {
  if ((*np)[1] != '-') np->insert(0, "-");
}

const CLI::Option* FindOption(const CLI::App& app, const std::string& word) {
  return app.get_option_no_throw(word.substr(0, word.find('=')));
}

bool IsManifestName(const std::string& word) {
  const auto extension = std::filesystem::path(word).extension();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

bool IsHosts(const std::string& word) {
  return word == "-H" || word == "--hosts" || word.starts_with("--hosts=");
}

// `run -np 4 python3 train.py --lr 0.1`: everything from the first word that is no option belongs
// to the command, including options that `run` has as well.
void SeparateCommand(const CLI::App& run, std::vector<std::string>* words) {
  bool np = false, hosts = false;
  for (size_t i = 1; i < words->size(); ++i) {
    std::string& word = (*words)[i];
    if (word == "--") return;
    if (word.empty() || word[0] != '-') {
      if (np || (hosts && !IsManifestName(word)))
        words->insert(words->begin() + static_cast<std::ptrdiff_t>(i), "--");
      return;
    }
    if (IsNp(word)) {
      np = true;
      Lengthen(&word);
    }
    hosts = hosts || IsHosts(word);
    const CLI::Option* option = FindOption(run, word);
    const bool takes_value = option != nullptr && option->get_expected_max() > 0;
    if (takes_value && word.find('=') == std::string::npos) ++i;
  }
}

// Reports a command without -np: `run train.py`, `run python3 train.py`.
Outcome<void> CheckManifestNames(const std::vector<std::string>& words,
                                 const std::string& program) {
  const auto is_script = [](const std::string& word) {
    return std::filesystem::path(word).extension() == ".py";
  };
  const auto script = std::find_if(words.begin(), words.end(), is_script);
  if (script == words.end()) return {};
  std::string command = script == words.begin() ? "python3" : "";
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
  return Fail(ExitCode::kUsage,
              fmt::format("{} is a script and no manifest; did you mean `{} run -np 1 {}`?",
                          *script, program, command));
}

// A job with changing hosts is elastic; without bounds it may have as many workers as any job.
Outcome<void> TakeHostScript(const Parsed& p, RunOptions* run) {
  if (!p.hosts.empty())
    return Fail(ExitCode::kUsage, "--hosts and --host-discovery-script: give one of them");
  if (run->np == 0)
    return Fail(ExitCode::kUsage, "--host-discovery-script goes with -np N COMMAND");
  if (run->min_np == 0) run->min_np = 1;
  if (run->max_np == 0) run->max_np = std::max(run->np, kMostLocalWorkers);
  return {};
}

// The hosts determine the number of workers, unless -np does.
Outcome<void> TakeHosts(Parsed* p) {
  RunOptions& run = p->run;
  run.abandon_after = std::chrono::seconds(p->abandon_after);
  if (!run.host_script.empty()) return TakeHostScript(*p, &run);
  if (run.slots_per_host > 0)
    return Fail(ExitCode::kUsage, "--slots-per-host goes with --host-discovery-script");
  if (p->hosts.empty()) {
    const bool ssh = run.ssh.port != 0 || !run.ssh.identity_file.empty() || !run.address.empty();
    return ssh ? Fail(ExitCode::kUsage,
                      "--ssh-port, --ssh-identity-file and --address go with --hosts or "
                      "--host-discovery-script")
               : Outcome<void>();
  }
  auto hosts = ParseHosts(p->hosts);
  if (!hosts) return tl::unexpected(hosts.error());
  run.hosts = std::move(*hosts);
  const int slots = SlotsOf(run.hosts);
  const bool command = !p->run_words.empty() && !IsManifestName(p->run_words.front());
  if (run.np == 0 && command) run.np = slots;
  if (std::max(run.np, run.max_np) > slots)
    return Fail(ExitCode::kUsage,
                fmt::format("{} {}: the hosts have {} slots", run.np > slots ? "-np" : "--max-np",
                            std::max(run.np, run.max_np), slots));
  return {};
}

Outcome<RunOptions> CheckRun(Parsed* p, const std::string& program) {
  RunOptions& run = p->run;
  run.timeout = std::chrono::seconds(static_cast<int64_t>(p->timeout));
  if (auto hosts = TakeHosts(p); !hosts) return tl::unexpected(hosts.error());
  if (run.np == 0) {
    if (run.min_np || run.max_np || run.standby)
      return Fail(ExitCode::kUsage,
                  "--min-np, --max-np and --standby go with -np N COMMAND; for a manifest set "
                  "spec.elasticPolicy");
    if (run.init_timeout || run.backoff_limit || run.fusion_threshold || !run.backend.empty())
      return Fail(ExitCode::kUsage,
                  "--init-timeout, --backoff-limit, --fusion-threshold and --backend go with "
                  "-np N COMMAND; for a manifest set spec.initTimeoutSeconds, "
                  "spec.runPolicy.backoffLimit, spec.collectives.fusionThresholdBytes and "
                  "spec.collectives.backend");
    if (!run.carried.empty())
      return Fail(ExitCode::kUsage, "--carry goes with -np N COMMAND; a manifest mounts a Secret");
    if (p->run_words.empty())
      return Fail(ExitCode::kUsage,
                  fmt::format("run: what? A manifest ({0} run job.yaml) or a command ({0} run "
                              "-np 4 python3 train.py)",
                              program));
    if (auto manifests = CheckManifestNames(p->run_words, program); !manifests)
      return tl::unexpected(manifests.error());
    run.manifests.assign(p->run_words.begin(), p->run_words.end());
    return run;
  }
  run.command = p->run_words;
  if (run.command.empty())
    return Fail(ExitCode::kUsage,
                fmt::format("run -np: the command is missing, for example: {} run "
                            "-np 4 python3 train.py",
                            program));
  if (run.standby > 0 && run.backend == "None")
    return Fail(
        ExitCode::kUsage,
        "--standby has no meaning with --backend none: a standby waits in init(), which the "
        "command does not call");
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
  const char* cluster = !target.kubeconfig.empty() ? "--kubeconfig"
                        : !target.context.empty()  ? "--context"
                                                   : nullptr;
  if (!target.run_dir.empty() && cluster != nullptr)
    return Fail(ExitCode::kUsage,
                fmt::format("--run-dir and {} name two places: give one of them", cluster));
  return {};
}

template <class Options>
Outcome<Command> WithTarget(const Options& options) {
  if (auto ok = CheckTarget(options.target); !ok) return tl::unexpected(ok.error());
  return Command(options);
}

Outcome<Command> CheckGet(Parsed* p) {
  GetOptions& get = p->get;
  get.format = Format(p->format);
  if (get.all_namespaces && !get.job.empty())
    return Fail(ExitCode::kUsage, "-A shows all jobs: give the job a namespace with -n instead");
  if (get.all_namespaces && !get.target.ns.empty())
    return Fail(ExitCode::kUsage, "-A and -n: give one of them");
  if (get.watch && get.format == OutputFormat::kWide)
    return Fail(ExitCode::kUsage, "-w shows jobs, not pods: without -o wide");
  return WithTarget(get);
}

std::vector<std::string> CommandNames(const CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* command : root.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
    for (const std::string& alias : command->get_aliases()) names.push_back(alias);
  }
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// This check runs before CLI11, which would report too many arguments.
Outcome<void> CheckCommandName(const CLI::App& root, const std::vector<std::string>& words) {
  if (words.empty() || words[0].empty() || words[0][0] == '-') return {};
  const auto names = CommandNames(root);
  if (std::find(names.begin(), names.end(), words[0]) != names.end()) return {};
  return Fail(ExitCode::kUsage,
              fmt::format("there is no command \"{}\"{}\nTry: {} --help", words[0],
                          DidYouMean(words[0], names), root.get_name()));
}

// Describes the words that the command doesn't accept.
std::string Unexpected(const CLI::App& command, const std::vector<std::string>& rest) {
  for (const std::string& word : rest) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("{} has no option {}{}", command.get_name(), name,
                       DidYouMean(name, OptionNames(command)));
  }
  return fmt::format("{}: \"{}\" is one argument too many", command.get_name(), rest.front());
}

std::vector<CommandWords> WordsOf(const CLI::App& root) {
  std::vector<CommandWords> all;
  for (const CLI::App* command : root.get_subcommands(nullptr)) {
    CommandWords words{command->get_name(), command->get_description(), {}, {}, false};
    for (const CLI::Option* option : command->get_options()) {
      const std::string type = option->get_type_name();
      const bool file =
          type.find("FILE") != std::string::npos || type.find("DIR") != std::string::npos;
      if (option->get_positional()) words.files = words.files || file;
      for (const std::string& name : option->get_lnames()) words.options.push_back("--" + name);
      for (const std::string& name : option->get_snames()) words.options.push_back("-" + name);
      if (!file) continue;
      for (const std::string& name : option->get_lnames()) words.with_file.push_back("--" + name);
    }
    all.push_back(std::move(words));
  }
  return all;
}

template <class Value>
std::optional<Value> IfGiven(Value value) {
  return value < 0 ? std::nullopt : std::optional(value);
}

Outcome<Command> Chosen(const CLI::App& root, const std::string& name, Parsed* p,
                        const std::string& program) {
  if (name == "run") {
    auto checked = CheckRun(p, program);
    if (!checked) return tl::unexpected(checked.error());
    return Command(*checked);
  }
  p->logs.tail = IfGiven(p->logs_tail);
  p->logs.rank = IfGiven(p->logs_rank);
  p->kill.worker = IfGiven(p->kill_slot);
  if (name == "get") return CheckGet(p);
  if (name == "describe") return WithTarget(p->describe);
  if (name == "why") return WithTarget(p->why);
  p->top.interval = std::chrono::milliseconds(static_cast<int64_t>(p->top_interval * 1000));
  p->ui.interval = std::chrono::milliseconds(static_cast<int64_t>(p->ui_interval * 1000));
  if (name == "ui") return WithTarget(p->ui);
  if (name == "bench") {
    p->bench.words = root.get_subcommand("bench")->remaining();
    return Command(p->bench);
  }
  if (name == "convert") return Command(p->convert);
  if (name == "top") return WithTarget(p->top);
  if (name == "timeline") return WithTarget(p->timeline);
  if (name == "logs") return WithTarget(p->logs);
  if (name == "scale") return WithTarget(p->scale);
  if (name == "drain") return WithTarget(p->drain);
  if (name == "delete") return WithTarget(p->del);
  if (name == "apply") return WithTarget(p->apply);
  if (name == "kill") return WithTarget(p->kill);
  p->node.abandon_after = std::chrono::seconds(p->abandon_after);
  if (name == "node") return Command(p->node);
  if (name == "completion")
    return Command(CompletionOptions{CompletionScript(p->shell, WordsOf(root))});
  return Command(VersionOptions{});
}

}  // namespace

Outcome<Command> ParseCommandLine(std::vector<std::string> words, const std::string& program) {
  Parsed p;
  CLI::App root{"", program};
  root.require_subcommand(0, 1);
  bool version_flag = false;
  root.add_flag("--version", version_flag, "print the version");
  AddCommands(&root, program, &p);

  if (auto known = CheckCommandName(root, words); !known) return tl::unexpected(known.error());
  const std::string first = words.empty() ? "" : words.front();
  if (first == "run") SeparateCommand(*root.get_subcommand("run"), &words);
  if (first == "bench") {
    for (std::string& word : words)
      if (IsNp(word)) Lengthen(&word);
  }
  std::reverse(words.begin(), words.end());  // CLI11 expects a vector in reverse order
  try {
    root.parse(words);
  } catch (const CLI::CallForHelp&) {
    return Fail(ExitCode::kDone, root.help());  // of the chosen command, if there is one
  } catch (const CLI::ParseError& error) {
    auto chosen = root.get_subcommands();
    const auto rest = root.remaining(true);
    const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !rest.empty();
    std::string what = extra            ? Unexpected(chosen.empty() ? root : *chosen[0], rest)
                       : chosen.empty() ? error.what()
                                        : chosen[0]->get_name() + ": " + error.what();
    return Fail(ExitCode::kUsage, fmt::format("{}\nTry: {} {}--help", what, program,
                                              chosen.empty() ? "" : chosen[0]->get_name() + " "));
  }
  auto chosen = root.get_subcommands();
  if (!chosen.empty()) return Chosen(root, chosen[0]->get_name(), &p, program);
  if (version_flag) return Command(VersionOptions{});
  return Fail(ExitCode::kUsage, "which command?\n\n" + root.help());
}

}  // namespace ringmaster::cli
