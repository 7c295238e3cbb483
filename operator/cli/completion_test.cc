#include "operator/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<CommandWords> kCommands = {
    {"run", "run jobs", {"--summary", "--plain"}, {"--summary"}, true},
    {"get", "show it's jobs", {"--watch", "-w"}, {}, false}};

TEST(CompletionTest, EachShellGetsAllCommandsAndOptions) {
  EXPECT_THAT(CompletionScript("bash", kCommands),
              AllOf(HasSubstr("\"run get --help --version\""),
                    HasSubstr("get) options=\"--watch -w\"; with_file=\"  \"; files=0"),
                    HasSubstr("complete -F _ringmaster ringmaster")));
  EXPECT_THAT(CompletionScript("zsh", kCommands),
              AllOf(HasSubstr("'get:show its jobs'"), HasSubstr("compdef _ringmaster ringmaster"),
                    HasSubstr("run) options=(--summary --plain); with_file=(--summary); files=1")));
  EXPECT_THAT(CompletionScript("fish", kCommands),
              AllOf(HasSubstr("-n __fish_use_subcommand -a get -d 'show its jobs'"),
                    HasSubstr("'__fish_seen_subcommand_from get' -s w"),
                    HasSubstr("'__fish_seen_subcommand_from run' -l summary -rF")));
}

}  // namespace
}  // namespace ringmaster::cli
