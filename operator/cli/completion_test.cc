#include "operator/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<CommandWords> kCommands = {
    {.name = "run",
     .about = "run jobs",
     .options = {"--summary", "--plain"},
     .with_file = {"--summary"},
     .files = true},
    {.name = "get",
     .about = "show it's jobs",
     .options = {"--watch", "-w", "-o"},
     .values = {{"-o", {"json", "yaml"}}, {"--output", {"json", "yaml"}}}},
    {.name = "logs",
     .options = {"--follow", "--tail", "--kubeconfig", "--context", "-n", "--run-dir"},
     .with_file = {"--kubeconfig", "--run-dir"},
     .with_value = {"--tail", "--kubeconfig", "--context", "-n", "--run-dir"},
     .named = NameKind::kPodOrJob},
    {.name = "completion", .options = {"--help"}, .arguments = {"bash", "zsh"}}};

TEST(CompletionTest, EachShellGetsAllCommandsAndOptions) {
  EXPECT_THAT(
      CompletionScript("bash", kCommands),
      AllOf(HasSubstr("\"run get logs completion --help --version\""),
            HasSubstr(
                "get) options=\"--watch -w -o\"; with_file=\"  \"; words=\"\"; files=0; names=0"),
            HasSubstr("words=\"\"; files=0; names=1"), HasSubstr("__complete"),
            HasSubstr("words=\"bash zsh\""),
            HasSubstr("\"get -o\") COMPREPLY=($(compgen -W \"json yaml\" -- \"$word\"))"),
            HasSubstr("complete -F _ringmaster ringmaster")));
  EXPECT_THAT(CompletionScript("zsh", kCommands),
              AllOf(HasSubstr("'get:show its jobs'"), HasSubstr("compdef _ringmaster ringmaster"),
                    HasSubstr("run) options=(--summary --plain); with_file=(--summary); "
                              "arguments=(); files=1"),
                    HasSubstr("arguments=(); files=0; names=1"), HasSubstr("__complete"),
                    HasSubstr("arguments=(bash zsh)"),
                    HasSubstr("\"get -o\") compadd -- json yaml; return")));
  EXPECT_THAT(
      CompletionScript("fish", kCommands),
      AllOf(HasSubstr("-n __fish_use_subcommand -a get -d 'show its jobs'"),
            HasSubstr("'__fish_seen_subcommand_from get' -s w\n"),
            HasSubstr("'__fish_seen_subcommand_from get' -s o -xa 'json yaml'"),
            HasSubstr("'__fish_seen_subcommand_from logs' -a '(__ringmaster_names)'\n"),
            HasSubstr("'__fish_seen_subcommand_from logs' -l tail -x\n"), HasSubstr("__complete"),
            HasSubstr("'__fish_seen_subcommand_from completion' -a 'bash zsh'"),
            HasSubstr("'__fish_seen_subcommand_from run' -l summary -rF")));
}

std::vector<std::string> NoNames(const CommandWords& command, const Target&) {
  ADD_FAILURE() << command.name << " takes no name there";
  return {};
}

TEST(CompletionTest, KubectlIsToldWordsAndWhetherFilesAreWanted) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "run\nget\nlogs\ncompletion\n:4\n"},
      {{"ge"}, "get\n:4\n"},
      {{"get", "-o", ""}, "json\nyaml\n:4\n"},
      {{"get", "digits", "-o", "j"}, "json\n:4\n"},
      {{"get", "--w"}, "--watch\n:4\n"},
      {{"completion", ""}, "bash\nzsh\n:4\n"},
      {{"run", ""}, ":0\n"},
      {{"run", "--summary", "-"}, ":0\n"},
      {{"run", "--pl"}, "--plain\n:4\n"},
      {{"run", "--summary=~/f"}, ":0\n"},
      {{"run", "--summary", "=", "~/f"}, ":0\n"},
      {{"get", "-w", "--output=j"}, "json\n:4\n"},
      {{"run", "--plain=y"}, ":4\n"},
      {{"nothing", ""}, ":4\n"},
  };
  for (const auto& [words, answer] : cases)
    EXPECT_EQ(Completion(words, kCommands, NoNames), answer) << testing::PrintToString(words);
}

TEST(CompletionTest, NamesAreAskedForWhereTheFirstArgumentStandsAndAtThePlaceThatIsNamed) {
  Target asked;
  const NamesSource names = [&](const CommandWords& command, const Target& target) {
    EXPECT_EQ(command.name, "logs");
    asked = target;
    return std::vector<std::string>{"digits", "digits-worker-0", "mnist"};
  };
  const std::string options = "--follow\n--tail\n--kubeconfig\n--context\n-n\n--run-dir\n:4\n";
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"logs", ""}, "digits\ndigits-worker-0\nmnist\n:4\n"},
      {{"logs", "--follow", "--tail", "3", "mn"}, "mnist\n:4\n"},
      {{"logs", "--tail=3", "mn"}, "mnist\n:4\n"},
      {{"logs", "other"}, ":4\n"},
      {{"logs", "digits", ""}, options},
      {{"logs", "--follow", "digits", ""}, options},
      {{"logs", "--fo"}, "--follow\n:4\n"},
      {{"logs", "--tail", ""}, ":4\n"},
      {{"logs", "--kubeconfig", ""}, ":0\n"},
  };
  for (const auto& [words, answer] : cases)
    EXPECT_EQ(Completion(words, kCommands, names), answer) << testing::PrintToString(words);
  // bash takes an option with "=" for three words.
  Completion({"logs", "-n", "team", "--context", "=", "prod", "--kubeconfig=file", "d"}, kCommands,
             names);
  EXPECT_EQ(asked.ns, "team");
  EXPECT_EQ(asked.context, "prod");
  EXPECT_EQ(asked.kubeconfig, "file");
  Completion({"logs", "--run-dir", "r", "d"}, kCommands, names);
  EXPECT_EQ(asked.run_dir, "r");
}

}  // namespace
}  // namespace ringmaster::cli
