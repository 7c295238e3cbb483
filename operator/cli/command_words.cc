#include "operator/cli/command_words.h"

#include "operator/cli/command_options.h"

namespace ringmaster::cli {
namespace {

NameKind KindOfNames(const CLI::Option& argument) {
  const std::string type = argument.get_type_name();
  if (type == "JOB") return NameKind::kJob;
  if (type == "POD") return NameKind::kPod;
  return type == "POD|JOB" ? NameKind::kPodOrJob : NameKind::kNothing;
}

void AddOption(const CLI::Option& option, const Choices& choices, CommandWords* words) {
  const auto choice = choices.find(&option);
  if (option.get_positional()) {
    words->files = words->files || TakesFile(option);
    words->named = KindOfNames(option);
    if (choice != choices.end()) words->arguments = choice->second;
  }
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : names) {
    words->options.push_back(name);
    if (TakesFile(option)) words->with_file.push_back(name);
    if (option.get_expected_max() > 0) words->with_value.push_back(name);
    if (choice != choices.end()) words->values[name] = choice->second;
  }
}

}  // namespace

std::vector<CommandWords> AllCommandWords() {
  Parsed parsed;
  CLI::App root;
  AddCommands(&root, "ringmaster", &parsed);
  std::vector<CommandWords> all;
  for (const CLI::App* command : root.get_subcommands(nullptr)) {
    CommandWords words{.name = command->get_name(), .about = command->get_description()};
    for (const CLI::Option* option : command->get_options())
      AddOption(*option, parsed.choices, &words);
    all.push_back(words);
    for (const std::string& alias : command->get_aliases()) {
      words.name = alias;
      all.push_back(words);
    }
  }
  return all;
}

}  // namespace ringmaster::cli
