#include "common/lines/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ringmaster::lines {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LineSplitterTest : public testing::Test {
 protected:
  void Feed(std::string_view text) { splitter_.Feed(text, now_); }

  LineSplitter::TimePoint now_;
  std::vector<std::string> seen_;
  LineSplitter splitter_{[this](std::string_view line) { seen_.emplace_back(line); }};
};

TEST_F(LineSplitterTest, PiecesMakeLines) {
  Feed("on");
  EXPECT_THAT(seen_, IsEmpty());
  Feed("e\n\ntwo\r");
  Feed("\nthree");
  EXPECT_THAT(seen_, ElementsAre("one", "", "two"));
  splitter_.Finish();
  splitter_.Finish();
  EXPECT_THAT(seen_, ElementsAre("one", "", "two", "three"));
}

TEST_F(LineSplitterTest, OfAProgressBarOneStateASecondAndTheLastOneAreShown) {
  Feed("\r 0%");
  Feed("\r 1%");
  now_ += std::chrono::milliseconds(500);
  Feed("\r 2%");
  now_ += std::chrono::milliseconds(600);
  Feed("\r 3%");
  EXPECT_THAT(seen_, ElementsAre(" 0%", " 2%"));
  Feed("\r100%\n");
  EXPECT_THAT(seen_, ElementsAre(" 0%", " 2%", "100%"));
  Feed("\rthe next bar\r");
  Feed("\r");
  EXPECT_THAT(seen_, ElementsAre(" 0%", " 2%", "100%", "the next bar"));
}

TEST_F(LineSplitterTest, ALineThatDoesNotEndIsCut) {
  Feed(std::string(LineSplitter::kLongest + 1, 'x'));
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].size(), LineSplitter::kLongest);
}

TEST_F(LineSplitterTest, WhatWasCutAndGotANumberInFrontStaysWhole) {
  LineSplitter again([this](std::string_view line) { seen_.emplace_back(line); },
                     LineSplitter::kLongestLabelled);
  const std::string labelled = "[1023] " + std::string(LineSplitter::kLongest, 'x');
  again.Feed(labelled + "\n" + labelled + "\n", now_);
  EXPECT_THAT(seen_, ElementsAre(labelled, labelled));
}

}  // namespace
}  // namespace ringmaster::lines
