#include "operator/cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace ringmaster::cli {
namespace {

std::vector<std::string> NamesOf(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const CommandWords& command : commands) names.push_back(command.name);
  return names;
}

std::string Bash(const std::vector<CommandWords>& commands) {
  std::string cases;
  for (const CommandWords& command : commands) {
    cases += fmt::format("    {}) options=\"{}\"; with_file=\" {} \"; files={} ;;\n", command.name,
                         fmt::join(command.options, " "), fmt::join(command.with_file, " "),
                         command.files ? 1 : 0);
  }
  return fmt::format(R"(_ringmaster() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options with_file files=0
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $with_file == *" $before "* || ($files = 1 && $word != -*) ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$word"))
  else
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  fi
}}
complete -F _ringmaster ringmaster
)",
                     fmt::join(NamesOf(commands), " "), cases);
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
    cases += fmt::format("    {}) options=({}); with_file=({}); files={} ;;\n", command.name,
                         fmt::join(command.options, " "), fmt::join(command.with_file, " "),
                         command.files ? 1 : 0);
  }
  return fmt::format(R"(#compdef ringmaster
_ringmaster() {{
  local -a commands options with_file
  local files=0
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case ${{words[2]}} in
{}  esac
  if (( ${{with_file[(Ie)${{words[CURRENT-1]}}]}} )); then
    _files
  elif [[ $files = 1 && ${{words[CURRENT]}} != -* ]]; then
    _files
  else
    compadd -- $options
  fi
}}
compdef _ringmaster ringmaster
)",
                     names, cases);
}

std::string Fish(const std::vector<CommandWords>& commands) {
  std::string text = "complete -c ringmaster -f\n";
  for (const CommandWords& command : commands) {
    text += fmt::format("complete -c ringmaster -n __fish_use_subcommand -a {} -d {}\n",
                        command.name, Quoted(command.about));
    const std::string when = fmt::format("-n '__fish_seen_subcommand_from {}'", command.name);
    if (command.files) text += fmt::format("complete -c ringmaster {} -F\n", when);
    for (const std::string& option : command.options) {
      const bool long_one = option.starts_with("--");
      const bool file = std::find(command.with_file.begin(), command.with_file.end(), option) !=
                        command.with_file.end();
      text += fmt::format("complete -c ringmaster {} {} {}{}\n", when, long_one ? "-l" : "-s",
                          option.substr(long_one ? 2 : 1), file ? " -rF" : "");
    }
  }
  return text;
}

}  // namespace

std::string CompletionScript(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "zsh") return Zsh(commands);
  if (shell == "fish") return Fish(commands);
  return Bash(commands);
}

}  // namespace ringmaster::cli
