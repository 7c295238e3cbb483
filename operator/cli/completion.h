// Completes the command line: makes scripts for shells from the commands and their options, and
// answers kubectl. The scripts know all words but the names of jobs and pods; for those they call
// `ringmaster __complete`. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "operator/cli/commands.h"

namespace ringmaster::cli {

// What the first argument of a command names.
enum class NameKind { kNothing, kJob, kPod, kPodOrJob };

struct CommandWords {
  std::string name;
  std::string about;
  std::vector<std::string> options;     // "--watch", "-w"
  std::vector<std::string> with_file;   // those of `options` that take a file or a folder
  std::vector<std::string> with_value;  // those of `options` that take anything
  // What those of `options` may be that take one of a few words.
  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::string> arguments;  // that the first one may be; empty: anything
  bool files = false;                  // the arguments are files
  NameKind named = NameKind::kNothing;
};

// The first word of the hidden command that the scripts call.
inline constexpr char kCompleteCommand[] = "__complete";

// The names that there are, where the options of `target` say so; empty if nobody can be asked.
using NamesSource =
    std::function<std::vector<std::string>(const CommandWords&, const Target& target)>;

// `shell` is bash, zsh or fish.
std::string CompletionScript(const std::string& shell, const std::vector<CommandWords>& commands);

// What `ringmaster __complete` prints, and a program named kubectl_complete-ringmaster, which
// kubectl asks: what the last word may become, and a last line that says whether it may be a file.
// `words` stand behind `ringmaster` or `kubectl ringmaster`; the last one is being typed, and may
// be empty. `names` is called only where a name may stand.
std::string Completion(std::vector<std::string> words, const std::vector<CommandWords>& commands,
                       const NamesSource& names);

}  // namespace ringmaster::cli
