#include "operator/local/server/log_tail.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_dir.h"

namespace ringmaster::local {
namespace {

class LogTailTest : public testing::Test {
 protected:
  std::string Tail(const std::string& text, uint64_t start, uint64_t lines) {
    const std::filesystem::path file = directory_.path() / "log";
    std::ofstream(file, std::ios::binary) << text;
    return text.substr(OffsetOfLastLines(file, start, lines));
  }
  const support::TempDir directory_;
};

TEST_F(LogTailTest, GivesTheLastLines) {
  EXPECT_EQ(Tail("a\nb\nc\n", 0, 2), "b\nc\n");
  EXPECT_EQ(Tail("a\nb\nc", 0, 2), "b\nc") << "the last one may have no end";
  EXPECT_EQ(Tail("a\nb\n", 0, 9), "a\nb\n");
  EXPECT_EQ(Tail("a\nb\n", 0, 0), "");
  EXPECT_EQ(Tail("", 0, 3), "");
}

TEST_F(LogTailTest, StaysWithinTheProcessThatRunsNow) {
  EXPECT_EQ(Tail("old\nnew\n", 4, 5), "new\n");
  EXPECT_EQ(Tail("old\nnew\n", 4, 0), "");
}

TEST_F(LogTailTest, LinesMayBeLongerThanAPiece) {
  const std::string wide(200'000, 'x');
  EXPECT_EQ(Tail("a\n" + wide + "\n" + wide + "\n", 0, 2), wide + "\n" + wide + "\n");
}

TEST_F(LogTailTest, AFileThatIsNotThereIsReadFromItsBeginning) {
  EXPECT_EQ(OffsetOfLastLines(directory_.path() / "none", 3, 5), 3u);
}

TEST(ParseTailLinesTest, TakesNumbersAlone) {
  EXPECT_EQ(ParseTailLines("20"), 20u);
  for (const char* wrong : {"", "-1", "x", "3x", "99999999999999999999999"})
    EXPECT_EQ(ParseTailLines(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace ringmaster::local
