#include "collectives/engine/set_channels.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

TEST(SetChannelsTest, SetsWithACommonRankHaveChannelsOfTheirOwnAndOthersShareOne) {
  SetChannels channels;
  EXPECT_EQ(channels.Give(1, {0, 1}), 1);
  EXPECT_EQ(channels.Give(2, {2, 3}), 1);
  EXPECT_EQ(channels.Give(3, {1, 2}), 2);
  EXPECT_EQ(channels.Give(4, {0, 3}), 2);
  EXPECT_EQ(channels.Give(1, {0, 1}), 1) << "it keeps what it has";
}

TEST(SetChannelsTest, WhenAllAreTakenASetGetsNoneAndTheNextViewBeginsAnew) {
  SetChannels channels;
  for (int set = 1; set <= kSubsetChannels; ++set) EXPECT_EQ(channels.Give(set, {0, 1}), set);
  EXPECT_EQ(channels.Give(7, {1, 2}), 0);
  EXPECT_EQ(channels.Give(7, {1, 2}), 0);
  EXPECT_FALSE(channels.Has(7));
  EXPECT_EQ(channels.Give(8, {2, 3}), 1) << "a set without a channel keeps nobody from one";
  channels.Clear();
  EXPECT_EQ(channels.Give(7, {1, 2}), 1);
  EXPECT_TRUE(channels.Has(7));
}

TEST(SetChannelsTest, ARemovedSetsChannelStaysTakenEvenIfItsNumberComesAgain) {
  SetChannels channels;
  EXPECT_EQ(channels.Give(1, {0, 1}), 1);
  channels.Forget(1);
  EXPECT_FALSE(channels.Has(1));
  EXPECT_EQ(channels.Give(1, {0, 1}), 2);
  EXPECT_EQ(channels.Give(2, {2, 3}), 1);
}

}  // namespace
}  // namespace ringmaster::engine
