#include "operator/cli/suggestion.h"

#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

const std::vector<std::string> kCommands = {"run",   "get",  "status", "describe", "why",
                                            "scale", "kill", "drain",  "delete",   "logs"};

TEST(SuggestionTest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(Nearest("stauts", kCommands), "status");
  EXPECT_EQ(Nearest("lgos", kCommands), "logs");
  EXPECT_EQ(Nearest("log", kCommands), "logs");
  EXPECT_EQ(Nearest("desc", kCommands), "describe") << "its beginning";
  EXPECT_EQ(Nearest("scael", kCommands), "scale");
  EXPECT_EQ(DidYouMean("rum", kCommands), "; did you mean run?");
}

TEST(SuggestionTest, SaysNothingWhereNoneIsNear) {
  EXPECT_EQ(Nearest("frobnicate", kCommands), "");
  EXPECT_EQ(Nearest("xy", kCommands), "");
  EXPECT_EQ(Nearest("", kCommands), "");
  EXPECT_EQ(DidYouMean("frobnicate", kCommands), "");
}

}  // namespace
}  // namespace ringmaster::cli
