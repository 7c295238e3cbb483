#include "operator/cli/convert_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "operator/cli/convert_starter_options.h"

namespace ringmaster::cli::conversion {
namespace {

const std::set<std::string> kSettingsOfTorchrun = {"nnodes", "nproc-per-node", "max-restarts"};
// Of horovodrun, with the name that the setting has.
const std::map<std::string, std::string> kSettingsOfMpi = {{"min-np", "min-np"},
                                                           {"min-num-proc", "min-np"},
                                                           {"max-np", "max-np"},
                                                           {"max-num-proc", "max-np"}};

std::string NameOf(const std::string& word) {
  return std::filesystem::path(word).filename().string();
}

bool IsMpi(const std::string& word) {
  const std::string name = NameOf(word);
  return name == "mpirun" || name == "mpiexec" || name == "horovodrun" || name == "mpiexec.hydra" ||
         name == "orterun";
}

// The number of words of "torchrun", or of "python3 -u -m torch.distributed.run"; 0: neither.
size_t TorchrunWords(const Words& command) {
  if (command.empty()) return 0;
  if (NameOf(command[0]) == "torchrun") return 1;
  if (!NameOf(command[0]).starts_with("python")) return 0;
  size_t at = 1;
  while (at < command.size() && command[at].starts_with('-') && command[at] != "-m") ++at;
  if (at + 1 >= command.size() || command[at] != "-m") return 0;
  const std::string& module = command[at + 1];
  return module == "torch.distributed.run" || module == "torch.distributed.launch" ? at + 2 : 0;
}

// `sh -c "mpirun ... python train.py"`: splits at spaces, unless something in it needs a shell.
Words OfShell(const Words& command) {
  static const std::set<std::string> kShells = {"sh", "bash", "ash", "dash"};
  if (command.size() != 3 || (command[1] != "-c" && command[1] != "-lc")) return command;
  if (kShells.count(NameOf(command[0])) == 0) return command;
  if (command[2].find_first_of("\"'`$&|;<>(){}*?\\\n") != std::string::npos) return command;
  Words words;
  std::string word;
  for (char c : command[2] + " ") {
    if (c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
  const bool starts = !words.empty() && (IsMpi(words[0]) || TorchrunWords(words) > 0);
  return starts ? words : command;
}

struct Option {
  std::string text;  // as it was written: "--nnodes=2"
  std::string name;  // without dashes in front: "nnodes"
  Words values;
  bool known = true;
};

// Reads one option, and moves `at` behind it.
Option ReadOption(const Words& command, const StarterOptions& options, bool underscores,
                  size_t* at) {
  const std::string& word = command[(*at)++];
  Option option;
  const size_t equals = word.find('=');
  option.name = word.substr(0, equals);
  option.name.erase(0, std::min(option.name.find_first_not_of('-'), option.name.size()));
  if (underscores) std::replace(option.name.begin(), option.name.end(), '_', '-');
  option.text = word;
  if (equals != std::string::npos) {
    option.values.push_back(word.substr(equals + 1));
    return option;
  }
  const std::optional<int> count = options.WordsBehind(option.name);
  option.known = count.has_value();
  for (int i = 0; i < count.value_or(0) && *at < command.size(); ++i) {
    option.values.push_back(command[(*at)++]);
    option.text += " " + option.values.back();
  }
  return option;
}

void NoteDropped(const std::string& starter, const Words& dropped, Notes* notes) {
  if (dropped.empty()) return;
  notes->push_back(
      fmt::format("options of {} without a meaning here: {}", starter, fmt::join(dropped, ", ")));
}

// Whether another option stands at `at`. `--` ends the options, and is skipped.
bool AtOption(const Words& command, size_t* at) {
  if (*at >= command.size()) return false;
  if (command[*at] != "--") return command[*at].starts_with('-');
  ++*at;
  return false;
}

// Why the word at `at`, behind the last option, may not be the program; empty if it is.
std::string DoubtOf(const std::string& starter, const Option& last, const Words& command,
                    size_t at) {
  if (last.known || at >= command.size() || command[at - 1] == "--") return "";
  return fmt::format(
      "spec.worker.template.spec.containers[].command: '{}' is no option of {} that is known here: "
      "if a value follows it, '{}' is that value and not the program",
      last.text, starter, command[at]);
}

// Takes a variable for every rank: "NAME=VALUE" of -x, or "NAME" "VALUE" of -genv.
bool TakeVariable(const Option& option, std::vector<std::pair<std::string, std::string>>* env) {
  const Words& values = option.values;
  if ((option.name == "genv" || option.name == "env") && values.size() == 2) {
    env->emplace_back(values[0], values[1]);
    return true;
  }
  if (option.name != "x" || values.empty()) return false;
  const size_t equals = values[0].find('=');
  if (equals != std::string::npos)
    env->emplace_back(values[0].substr(0, equals), values[0].substr(equals + 1));
  return true;  // NAME alone: the launcher's variables are copied anyway
}

Program WithoutMpi(const Words& command, Notes* notes) {
  Program program{.starter = Starter::kMpi, .starter_name = command[0]};
  Words dropped;
  Option option;
  size_t at = 1;
  while (AtOption(command, &at)) {
    option = ReadOption(command, OptionsOfMpi(), false, &at);
    const auto setting = kSettingsOfMpi.find(option.name);
    if (setting != kSettingsOfMpi.end() && !option.values.empty()) {
      program.settings[setting->second] = option.values[0];
    } else if (!TakeVariable(option, &program.env)) {
      dropped.push_back(option.text);
    }
  }
  NoteDropped(command[0], dropped, notes);
  program.command.assign(command.begin() + static_cast<std::ptrdiff_t>(at), command.end());
  program.doubt = DoubtOf(command[0], option, command, at);
  return program;
}

// Puts the interpreter in front of a script, as torchrun does.
Words Interpreter(const Words& starter, const Words& script, bool module, Notes* notes) {
  Words words = {"python3", "-u"};
  if (starter.size() > 1) {
    words.assign(starter.begin(), starter.end() - 2);  // without "-m torch.distributed.run"
    if (std::find(words.begin(), words.end(), "-u") == words.end()) words.push_back("-u");
  } else if (!script.empty()) {
    notes->push_back(fmt::format(
        "'{}' was put in front of '{}', a guess: torchrun takes the Python that it belongs to",
        fmt::join(words, " "), script[0]));
  }
  if (module) words.push_back("-m");
  return words;
}

Program WithoutTorchrun(const Words& command, size_t starter_words, Notes* notes) {
  Program program{.starter = Starter::kTorch, .starter_name = "torchrun"};
  Words dropped;
  bool module = false, interpreted = true;
  Option option;
  size_t at = starter_words;
  while (AtOption(command, &at)) {
    option = ReadOption(command, OptionsOfTorchrun(), true, &at);
    if (option.name == "m" || option.name == "module") {
      module = true;
    } else if (option.name == "no-python") {
      interpreted = false;
    } else if (kSettingsOfTorchrun.count(option.name) > 0 && !option.values.empty()) {
      program.settings[option.name] = option.values[0];
    } else if (option.name != "run-path") {
      dropped.push_back(option.text);
    }
  }
  NoteDropped("torchrun", dropped, notes);
  const auto script = command.begin() + static_cast<std::ptrdiff_t>(at);
  program.doubt = DoubtOf("torchrun", option, command, at);
  if (interpreted) {
    const auto behind = command.begin() + static_cast<std::ptrdiff_t>(starter_words);
    program.command =
        Interpreter(Words(command.begin(), behind), Words(script, command.end()), module, notes);
  }
  program.command.insert(program.command.end(), script, command.end());
  return program;
}

}  // namespace

Program ProgramOf(const Words& given, Notes* notes) {
  const Words command = OfShell(given);
  if (!command.empty() && IsMpi(command[0])) return WithoutMpi(command, notes);
  const size_t torchrun = TorchrunWords(command);
  if (torchrun > 0) return WithoutTorchrun(command, torchrun, notes);
  return {.command = command};
}

Bounds BoundsOf(const Program& program, std::int64_t slots, std::int64_t replicas, Notes* notes) {
  const auto least = program.settings.find("min-np"), most = program.settings.find("max-np");
  Bounds bounds;
  std::string given;
  bool fits = slots > 0;
  if (least != program.settings.end()) {
    given += " --min-np " + least->second;
    const auto workers = NumberIn(least->second);
    fits = fits && workers && *workers > 0;
    if (fits) bounds.least = (*workers - 1) / slots + 1;
  }
  if (most != program.settings.end()) {
    given += " --max-np " + most->second;
    const auto workers = NumberIn(most->second);
    fits = fits && workers && *workers > 0;
    if (fits) bounds.most = *workers / slots;
  }
  if (given.empty()) return {};
  fits = fits && bounds.least.value_or(replicas) <= replicas &&
         bounds.most.value_or(replicas) >= replicas;
  const std::string what =
      fits ? "became spec.elasticPolicy"
           : fmt::format("not carried over: spec.worker.replicas is {}, and spec.slotsPerWorker {}",
                         replicas, slots);
  notes->push_back(fmt::format("{}{}: {}", program.starter_name, given, what));
  return fits ? bounds : Bounds{};
}

bool NamesTorchrun(const Words& command) {
  return std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return word.find("torchrun") != std::string::npos ||
           word.find("torch.distributed.run") != std::string::npos ||
           word.find("torch.distributed.launch") != std::string::npos;
  });
}

}  // namespace ringmaster::cli::conversion
