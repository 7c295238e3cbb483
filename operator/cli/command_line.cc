#include "operator/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "operator/cli/command_options.h"
#include "operator/cli/command_words.h"
#include "operator/cli/completion.h"
#include "operator/cli/suggestion.h"
#include "operator/cli/tilde.h"

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

bool IsOption(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// The words of `bench` that ringmaster-bench takes as well.
std::vector<std::string> WithoutNp(const std::vector<std::string>& words) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!IsNp(words[i]))
      rest.push_back(words[i]);
    else if (words[i].find('=') == std::string::npos)
      ++i;  // the number
  }
  return rest;
}

// In the values of options that take a path, up to "--".
void ExpandTildes(const CLI::App& command, const std::string& home,
                  std::vector<std::string>* words) {
  for (size_t i = 1; i < words->size() && (*words)[i] != "--"; ++i) {
    std::string& word = (*words)[i];
    const CLI::Option* option = IsOption(word) ? FindOption(command, word) : nullptr;
    if (option == nullptr || !TakesFile(*option)) continue;
    const size_t sign = word.find('=');
    if (sign != std::string::npos)
      word = word.substr(0, sign + 1) + ExpandTilde(word.substr(sign + 1), home);
    else if (++i < words->size())
      (*words)[i] = ExpandTilde((*words)[i], home);
  }
}

// `-n=team` as `-nteam`, up to "--".
void JoinShortOptions(std::vector<std::string>* words) {
  for (size_t i = 1; i < words->size() && (*words)[i] != "--"; ++i) {
    std::string& word = (*words)[i];
    if (word.size() > 2 && word[0] == '-' && word[1] != '-' && word[2] == '=') word.erase(2, 1);
  }
}

// Whether a word before the command is one of Target's options, which kubectl takes there as well.
// Of one without its value in the same word `apart` becomes true.
bool IsOfTarget(const std::string& word, bool* apart) {
  const std::string name = word.substr(0, word.find('='));
  *apart = name == word;
  for (const char* known : {"--namespace", "--run-dir", "--context", "--kubeconfig"})
    if (name == known) return true;
  *apart = word == "-n";
  return word.starts_with("-n") && !IsNp(word);
}

// `-n team get` as `get -n team`.
void PutCommandFirst(std::vector<std::string>* words) {
  size_t command = 0;
  bool apart = false;
  while (command < words->size() && IsOfTarget((*words)[command], &apart)) command += apart ? 2 : 1;
  if (command >= words->size() || (*words)[command].starts_with('-')) return;
  const auto first = words->begin();
  const auto at = first + static_cast<std::ptrdiff_t>(command);
  std::rotate(first, at, at + 1);
}

bool IsManifestName(const std::string& word) {
  const auto extension = std::filesystem::path(word).extension();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

bool IsHosts(const std::string& word) {
  return word.starts_with("-H") || word == "--hosts" || word.starts_with("--hosts=");
}

bool IsScript(const std::string& word) { return std::filesystem::path(word).extension() == ".py"; }

// Whether the word begins a command, and can be no manifest.
bool IsProgram(const std::string& word) {
  for (const char* known : {"python", "python3", "torchrun", "bash", "sh"})
    if (word == known) return true;
  const auto extension = std::filesystem::path(word).extension();
  return IsScript(word) || extension == ".sh" || extension == ".out";
}

// `words` are a command without -np: `run train.py`, `run python3 train.py`.
tl::unexpected<Failure> NoManifest(const std::vector<std::string>& words,
                                   const std::string& program) {
  const auto script = std::find_if(words.begin(), words.end(), IsScript);
  const std::string what =
      script == words.end() ? words.front() + " is a program" : *script + " is a script";
  std::string command = script == words.begin() ? "python3" : "";
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
  return Fail(ExitCode::kUsage, fmt::format("{} and no manifest; say how many workers shall run "
                                            "it: `{} run -np N {}`",
                                            what, program, command));
}

// `run -np 4 python3 train.py --lr 0.1`: everything from the first word that is no option belongs
// to the command, including options that `run` has as well.
Outcome<void> SeparateCommand(const CLI::App& run, const std::string& program,
                              std::vector<std::string>* words) {
  bool np = false, hosts = false;
  for (size_t i = 1; i < words->size(); ++i) {
    std::string& word = (*words)[i];
    const bool end = word == "--";
    if (end || word.empty() || word[0] != '-') {
      const auto first = words->begin() + static_cast<std::ptrdiff_t>(end ? i + 1 : i);
      if (!np && !hosts && first != words->end() && IsProgram(*first))
        return NoManifest({first, words->end()}, program);
      if (!end && (np || (hosts && !IsManifestName(word)))) words->insert(first, "--");
      return {};
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
  return {};
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
    if (std::any_of(p->run_words.begin(), p->run_words.end(), IsScript))
      return NoManifest(p->run_words, program);
    run.manifests.assign(p->run_words.begin(), p->run_words.end());
    return run;
  }
  if (!run.volumes.empty())
    return Fail(ExitCode::kUsage,
                "--volume goes with a manifest; a command sees the folders of this machine as they "
                "are");
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

// What people type who know other tools; null: nothing.
const char* CommandOfOthers(const std::string& word) {
  static const std::map<std::string, const char*> kMeant = {
      {"cancel", "delete"}, {"stop", "delete"}, {"rm", "delete"},  {"remove", "delete"},
      {"ps", "get"},        {"ls", "get"},      {"list", "get"},   {"jobs", "get"},
      {"start", "run"},     {"exec", "run"},    {"launch", "run"}, {"submit", "apply"},
      {"create", "apply"}};
  const auto meant = kMeant.find(word);
  return meant == kMeant.end() ? nullptr : meant->second;
}

// This check runs before CLI11, which would report too many arguments.
Outcome<void> CheckCommandName(const CLI::App& root, const std::vector<std::string>& words) {
  if (words.empty() || words[0].empty() || words[0][0] == '-') return {};
  const auto names = CommandNames(root);
  if (std::find(names.begin(), names.end(), words[0]) != names.end()) return {};
  const char* meant = CommandOfOthers(words[0]);
  return Fail(ExitCode::kUsage,
              fmt::format("there is no command \"{}\"{}\nTry: {} --help", words[0],
                          meant != nullptr ? fmt::format("; did you mean {}?", meant)
                                           : DidYouMean(words[0], names),
                          root.get_name()));
}

// `help run` as `run --help`.
void AskForHelp(std::vector<std::string>* words) {
  words->erase(words->begin());
  words->resize(std::min<size_t>(words->size(), 1));
  words->push_back("--help");
}

// Of a single letter that is unknown: the one option that begins with it. Other letters are no
// mistakes in writing it.
std::string MeantByLetter(char letter, const std::vector<std::string>& names) {
  std::vector<std::string> meant;
  for (const std::string& name : names)
    if (name.size() > 2 && name[2] == std::tolower(letter)) meant.push_back(name);
  return meant.size() == 1 ? "; did you mean " + meant.front() + "?" : "";
}

// Of an option that `run` doesn't have, and that stands beside what shall be run: it may be the
// program's.
std::string OptionOfProgram(const CLI::App& command, const std::string& name) {
  if (command.get_name() != "run" || command.count("what") == 0 || command.count("--np") > 0)
    return "";
  return fmt::format("; is it your program's? Then: run -np N PROGRAM {}", name);
}

// Describes the words that the command doesn't accept.
std::string Unexpected(const CLI::App& command, const std::vector<std::string>& rest) {
  for (const std::string& word : rest) {
    if (!IsOption(word)) continue;
    const std::string name = word.substr(0, word.find('='));
    const auto names = OptionNames(command);
    if (std::find(names.begin(), names.end(), name) != names.end())
      return fmt::format("put {} behind {}", name, command.get_name());
    const std::string meant =
        name.size() == 2 ? MeantByLetter(name[1], names) : DidYouMean(name, names);
    return fmt::format("{} has no option {}{}", command.get_name(), name,
                       meant.empty() ? OptionOfProgram(command, name) : meant);
  }
  return fmt::format("{}: \"{}\" is one argument too many", command.get_name(), rest.front());
}

// Of a missing argument: what shows the names that there are.
std::string WhereNamesAre(const CLI::App& command, const std::string& error,
                          const std::string& program) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    if (!option->get_positional() || error.find(option->get_name()) != 0) continue;
    if (type == "JOB" || type == "POD|JOB")
      return fmt::format("; `{} get` shows which there are", program);
    if (type == "POD") return fmt::format("; `{} get JOB` shows which there are", program);
  }
  return "";
}

template <class Kind>
bool Is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

// CLI11's error about an option that stands without its value, or too often, in other words.
std::string WrongCount(const std::string& said) {
  const std::string option = said.substr(0, said.find(": "));
  if (said.ends_with(" missing")) return option + " needs a value";
  if (said.find("At Most 1 required") != std::string::npos) return option + " can be given once";
  return said;
}

tl::unexpected<Failure> WrongWords(const CLI::App& root, const CLI::ParseError& error,
                                   const std::string& program) {
  const auto chosen = root.get_subcommands();
  const CLI::App& command = chosen.empty() ? root : *chosen[0];
  const std::string name = chosen.empty() ? "" : command.get_name();
  const auto rest = root.remaining(true);
  const bool lacks = Is<CLI::RequiredError>(error);
  const std::string said =
      Is<CLI::ArgumentMismatch>(error) ? WrongCount(error.what()) : error.what();
  std::string what = (name.empty() ? "" : name + ": ") + said;
  if (lacks) what += WhereNamesAre(command, error.what(), program);
  // What is too much may be why something is missing.
  if ((Is<CLI::ExtrasError>(error) && !rest.empty()) ||
      (lacks && std::any_of(rest.begin(), rest.end(), IsOption)))
    what = Unexpected(command, rest);
  return Fail(ExitCode::kUsage,
              fmt::format("{}\nTry: {} {}--help", what, program, name.empty() ? "" : name + " "));
}

template <class Value>
std::optional<Value> IfGiven(Value value) {
  return value < 0 ? std::nullopt : std::optional(value);
}

Outcome<Command> Chosen(const std::string& name, Parsed* p, const std::string& program) {
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
  if (name == "ui" && p->ui.all_namespaces && !p->ui.target.ns.empty())
    return Fail(ExitCode::kUsage, "-A and -n: give one of them");
  if (name == "ui") return WithTarget(p->ui);
  if (name == "bench") {
    if (const std::string wrong = bench::WhatIsWrong(p->measured); !wrong.empty())
      return Fail(ExitCode::kUsage, "bench: " + wrong);
    p->bench.csv = p->measured.csv;
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
    return Command(CompletionOptions{CompletionScript(p->shell, AllCommandWords())});
  return Command(VersionOptions{});
}

}  // namespace

Outcome<Command> ParseCommandLine(std::vector<std::string> words, const std::string& program,
                                  const std::string& home) {
  Parsed p;
  CLI::App root{"", program};
  root.require_subcommand(0, 1);
  bool version_flag = false;
  root.add_flag("--version", version_flag, "print the version");
  AddCommands(&root, program, &p);

  PutCommandFirst(&words);
  if (!words.empty() && words.front() == "help") AskForHelp(&words);
  if (auto known = CheckCommandName(root, words); !known) return tl::unexpected(known.error());
  const std::string first = words.empty() ? "" : words.front();
  if (first == "run") {
    auto separated = SeparateCommand(*root.get_subcommand("run"), program, &words);
    if (!separated) return tl::unexpected(separated.error());
  }
  if (first == "bench") {
    for (std::string& word : words)
      if (IsNp(word)) Lengthen(&word);
  }
  JoinShortOptions(&words);
  if (!first.empty() && !IsOption(first)) ExpandTildes(*root.get_subcommand(first), home, &words);
  if (first == "bench") p.bench.words = WithoutNp({words.begin() + 1, words.end()});
  std::reverse(words.begin(), words.end());  // CLI11 expects a vector in reverse order
  try {
    root.parse(words);
  } catch (const CLI::CallForHelp&) {
    return Fail(ExitCode::kDone, root.help());  // of the chosen command, if there is one
  } catch (const CLI::ParseError& error) {
    return WrongWords(root, error, program);
  }
  auto chosen = root.get_subcommands();
  if (!chosen.empty()) return Chosen(chosen[0]->get_name(), &p, program);
  if (version_flag) return Command(VersionOptions{});
  return Fail(ExitCode::kUsage, "which command?\n\n" + root.help());
}

}  // namespace ringmaster::cli
