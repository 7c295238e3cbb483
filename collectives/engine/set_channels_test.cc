#include "collectives/engine/set_channels.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

TEST(SetChannelsTest, SetsWithACommonRankHaveChannelsOfTheirOwnAndOthersShareOne) {
  SetChannels channels;
  EXPECT_EQ(channels.Of(1, {0, 1}), 1);
  EXPECT_EQ(channels.Of(2, {2, 3}), 1);
  EXPECT_EQ(channels.Of(3, {1, 2}), 2);
  EXPECT_EQ(channels.Of(4, {0, 3}), 2);
  EXPECT_EQ(channels.Of(1, {0, 1}), 1) << "it keeps what it has";
}

TEST(SetChannelsTest, WhenAllAreInUseASetGetsNoneAndTheNextViewBeginsAnew) {
  SetChannels channels;
  for (int set = 1; set <= kSubsetChannels; ++set) EXPECT_EQ(channels.Of(set, {0, 1}), set);
  EXPECT_EQ(channels.Of(7, {1, 2}), 0);
  EXPECT_EQ(channels.Of(7, {1, 2}), 0);
  EXPECT_EQ(channels.Of(8, {2, 3}), 1) << "a set without a channel keeps nobody from one";
  channels.Clear();
  EXPECT_EQ(channels.Of(7, {1, 2}), 1);
}

}  // namespace
}  // namespace ringmaster::engine
