#include "operator/cli/grouped_output.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <string>
#include <thread>

namespace ringmaster::cli {
namespace {

class GroupedOutputTest : public testing::Test {
 protected:
  void TearDown() override {
    std::fclose(out_);
    free(text_);
  }
  // What is written so far: each line is flushed.
  std::string Written() const { return {text_, size_}; }

  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* const out_ = open_memstream(&text_, &size_);
};

TEST_F(GroupedOutputTest, TheSourceAtTheFrontWritesAtOnceAndTheOthersFollowInOrder) {
  GroupedOutput output(out_);
  output.Line(2, "[2] ", "a");
  output.End(2);
  output.Line(1, "[1] ", "a");
  output.Line(0, "[0] ", "a");
  EXPECT_EQ(Written(), "[0] a\n");
  output.Line(0, "", "b");
  EXPECT_EQ(Written(), "[0] a\nb\n");
  output.End(0);
  EXPECT_EQ(Written(), "[0] a\nb\n[1] a\n");
  output.Line(1, "[1] ", "b");
  EXPECT_EQ(Written(), "[0] a\nb\n[1] a\n[1] b\n");
  output.End(1);
  EXPECT_EQ(Written(), "[0] a\nb\n[1] a\n[1] b\n[2] a\n");
}

TEST_F(GroupedOutputTest, ASourceWithoutALineKeepsNobody) {
  GroupedOutput output(out_);
  output.Line(1, "", "a");
  output.End(0);
  EXPECT_EQ(Written(), "a\n");
}

TEST_F(GroupedOutputTest, ASourceOfWhichMuchIsKeptWaitsForItsTurn) {
  GroupedOutput output(out_, 3);
  std::atomic<int> lines{0};
  std::jthread ahead([&] {
    for (int i = 0; i < 4; ++i) {
      output.Line(1, "", "ab");
      ++lines;
    }
    output.End(1);
  });
  while (lines == 0) std::this_thread::yield();
  output.Line(0, "", "first");
  EXPECT_EQ(lines, 1);
  output.End(0);
  ahead.join();
  EXPECT_EQ(Written(), "first\nab\nab\nab\nab\n");
}

}  // namespace
}  // namespace ringmaster::cli
