#include "operator/cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace ringmaster::cli {
namespace {

// The last line of an answer to kubectl: a directive of its shells' completion.
constexpr char kNothingElse[] = ":4\n";
constexpr char kFiles[] = ":0\n";

std::vector<std::string> NamesOf(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const CommandWords& command : commands) names.push_back(command.name);
  return names;
}

// A case of the shells bash and zsh for each option that takes one of a few words: what `offer`
// makes of them for "get -o".
std::string CasesOfValues(const std::vector<CommandWords>& commands, const std::string& offer) {
  std::string cases;
  for (const CommandWords& command : commands)
    for (const auto& [option, words] : command.values)
      cases += fmt::format("    \"{} {}\") {} ;;\n", command.name, option,
                           fmt::format(fmt::runtime(offer), fmt::join(words, " ")));
  return cases;
}

bool HasNames(const CommandWords& command) { return command.named != NameKind::kNothing; }

bool IsAmong(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string Bash(const std::vector<CommandWords>& commands) {
  std::string cases;
  for (const CommandWords& command : commands) {
    cases += fmt::format(
        "    {}) options=\"{}\"; with_file=\" {} \"; words=\"{}\"; files={}; names={} ;;\n",
        command.name, fmt::join(command.options, " "), fmt::join(command.with_file, " "),
        fmt::join(command.arguments, " "), command.files ? 1 : 0, HasNames(command) ? 1 : 0);
  }
  return fmt::format(
      R"(_ringmaster() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  # "--option=value" is three words here.
  if [ "$before" = = ]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  if [ "$word" = = ]; then word=; fi
  local options with_file words files=0 names=0
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}} $before" in
{}  esac
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ -n $words && $COMP_CWORD = 2 && $word != -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [[ $with_file == *" $before "* || ($files = 1 && $word != -*) ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$word"))
  elif [[ $names = 1 && $word != -* ]]; then
    local -a typed=("${{COMP_WORDS[@]/#\~\//$HOME/}}")
    words=$("${{typed[0]}}" __complete "${{typed[@]:1:COMP_CWORD}}" 2>/dev/null)
    COMPREPLY=(${{words%:*}})
  else
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  fi
}}
complete -F _ringmaster ringmaster
)",
      fmt::join(NamesOf(commands), " "),
      CasesOfValues(commands, "COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return"), cases);
}

// Quotes with single quotes; our texts contain only backquotes.
std::string Quoted(std::string text) {
  std::erase(text, '\'');
  return "'" + text + "'";
}

std::string Zsh(const std::vector<CommandWords>& commands) {
  std::string names, cases;
  for (const CommandWords& command : commands) {
    names += "    " + Quoted(command.name + ":" + command.about) + "\n";
    cases += fmt::format(
        "    {}) options=({}); with_file=({}); arguments=({}); files={}; names={} ;;\n",
        command.name, fmt::join(command.options, " "), fmt::join(command.with_file, " "),
        fmt::join(command.arguments, " "), command.files ? 1 : 0, HasNames(command) ? 1 : 0);
  }
  return fmt::format(R"zsh(#compdef ringmaster
_ringmaster() {{
  local -a commands options with_file arguments
  local files=0 names=0
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local before=${{words[CURRENT-1]}}
  if [[ ${{words[CURRENT]}} == --*=* ]]; then
    before=${{words[CURRENT]%%=*}}
    compset -P 1 '*='
  fi
  case "${{words[2]}} $before" in
{}  esac
  case ${{words[2]}} in
{}  esac
  if [[ ${{#arguments}} -gt 0 && $CURRENT = 3 && ${{words[CURRENT]}} != -* ]]; then
    compadd -- $arguments
  elif (( ${{with_file[(Ie)$before]}} )); then
    _files
  elif [[ ${{words[CURRENT]}} == --*=* ]]; then
    return 1
  elif [[ $files = 1 && ${{words[CURRENT]}} != -* ]]; then
    _files
  elif [[ $names = 1 && ${{words[CURRENT]}} != -* ]]; then
    arguments=("${{(@f)$(${{~words[1]}} __complete "${{(@Q)words[2,CURRENT-1]}}" "" 2>/dev/null)}}")
    compadd -- ${{arguments:#:*}}
  else
    compadd -- $options
  fi
}}
compdef _ringmaster ringmaster
)zsh",
                     names, CasesOfValues(commands, "compadd -- {}; return"), cases);
}

// How fish is told what an option takes; empty for an option without a value.
std::string FishValue(const CommandWords& command, const std::string& option) {
  const auto words = command.values.find(option);
  if (words != command.values.end()) return fmt::format(" -xa '{}'", fmt::join(words->second, " "));
  if (IsAmong(command.with_file, option)) return " -rF";
  return IsAmong(command.with_value, option) ? " -x" : "";
}

std::string Fish(const std::vector<CommandWords>& commands) {
  std::string text = R"(function __ringmaster_names
  set -l words (commandline -opc)
  $words[1] __complete $words[2..] "" 2>/dev/null | string match -rv '^[:-]'
end
complete -c ringmaster -f
)";
  for (const CommandWords& command : commands) {
    text += fmt::format("complete -c ringmaster -n __fish_use_subcommand -a {} -d {}\n",
                        command.name, Quoted(command.about));
    const std::string when = fmt::format("-n '__fish_seen_subcommand_from {}'", command.name);
    if (command.files) text += fmt::format("complete -c ringmaster {} -F\n", when);
    if (!command.arguments.empty())
      text += fmt::format("complete -c ringmaster {} -a '{}'\n", when,
                          fmt::join(command.arguments, " "));
    if (HasNames(command))
      text += fmt::format("complete -c ringmaster {} -a '(__ringmaster_names)'\n", when);
    for (const std::string& option : command.options) {
      const bool long_one = option.starts_with("--");
      text += fmt::format("complete -c ringmaster {} {} {}{}\n", when, long_one ? "-l" : "-s",
                          option.substr(long_one ? 2 : 1), FishValue(command, option));
    }
  }
  return text;
}

// The words of `from` that begin as `typed` does, and that there is nothing else.
std::string Offered(const std::vector<std::string>& from, const std::string& typed) {
  std::string text;
  for (const std::string& word : from)
    if (word.starts_with(typed)) text += word + "\n";
  return text + kNothingElse;
}

// bash takes `--context=prod` for three words.
std::vector<std::string> JoinedAtEqualsSigns(const std::vector<std::string>& words) {
  std::vector<std::string> joined;
  bool open = false;
  for (const std::string& word : words) {
    const bool sign = word == "=" && !joined.empty() && joined.back().starts_with("--");
    if (sign || open)
      joined.back() += word;
    else
      joined.push_back(word);
    open = sign;
  }
  return joined;
}

// Where a value of this option goes to; null if it says nothing of the place.
std::string* PartOf(Target* target, std::string* run_dir, std::string* kubeconfig,
                    const std::string& option) {
  if (option == "-n" || option == "--namespace") return &target->ns;
  if (option == "--context") return &target->context;
  if (option == "--run-dir") return run_dir;
  return option == "--kubeconfig" ? kubeconfig : nullptr;
}

// The place that the words of a command name; nullopt if its first argument stands among them.
std::optional<Target> PlaceOfNames(const CommandWords& command,
                                   const std::vector<std::string>& words) {
  Target target;
  std::string run_dir, kubeconfig;
  for (size_t i = 1; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) return std::nullopt;
    const size_t sign = words[i].find('=');
    const std::string option = words[i].substr(0, sign);
    if (!IsAmong(command.with_value, option)) continue;
    const bool apart = sign == std::string::npos;
    if (apart && ++i == words.size()) return std::nullopt;
    if (std::string* part = PartOf(&target, &run_dir, &kubeconfig, option))
      *part = apart ? words[i] : words[i].substr(sign + 1);
  }
  target.run_dir = run_dir;
  target.kubeconfig = kubeconfig;
  return target;
}

}  // namespace

std::string CompletionScript(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "zsh") return Zsh(commands);
  if (shell == "fish") return Fish(commands);
  return Bash(commands);
}

std::string Completion(std::vector<std::string> words, const std::vector<CommandWords>& commands,
                       const NamesSource& names) {
  std::string typed = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  words = JoinedAtEqualsSigns(words);
  if (words.empty()) return Offered(NamesOf(commands), typed);
  const size_t sign = typed.find('=');
  const bool value = typed.starts_with("--") && sign != std::string::npos;
  if (value) {
    words.push_back(typed.substr(0, sign));
    typed.erase(0, sign + 1);
  }
  const std::string& before = words.back();
  const auto command = std::find_if(commands.begin(), commands.end(), [&](const CommandWords& one) {
    return one.name == words.front();
  });
  if (command == commands.end()) return kNothingElse;
  if (const auto values = command->values.find(before); values != command->values.end())
    return Offered(values->second, typed);
  if (IsAmong(command->with_file, before)) return kFiles;
  if (value || IsAmong(command->with_value, before)) return kNothingElse;
  if (typed.starts_with('-')) return Offered(command->options, typed);
  if (command->files) return kFiles;
  if (words.size() == 1 && !command->arguments.empty()) return Offered(command->arguments, typed);
  if (!HasNames(*command)) return Offered(command->options, typed);
  const std::optional<Target> place = PlaceOfNames(*command, words);
  return Offered(place ? names(*command, *place) : command->options, typed);
}

}  // namespace ringmaster::cli
