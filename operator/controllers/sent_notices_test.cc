#include "operator/controllers/sent_notices.h"

#include <gtest/gtest.h>

namespace ringmaster::controllers {
namespace {

TEST(SentNoticesTest, ANoticeIsSentOnceUntilAnotherOneOnItsTopicCameBetween) {
  SentNotices sent;
  EXPECT_TRUE(sent.Add(planner::TargetNotice{1, 4}));
  EXPECT_FALSE(sent.Add(planner::TargetNotice{1, 4}));
  EXPECT_TRUE(sent.Add(planner::TargetNotice{1, 5}));
  EXPECT_TRUE(sent.Add(planner::TargetNotice{1, 4}));
}

TEST(SentNoticesTest, NoticesOfAnotherKindAreAnotherTopic) {
  SentNotices sent;
  EXPECT_TRUE(sent.Add(planner::TargetNotice{1, 4}));
  EXPECT_TRUE(sent.Add(planner::FinishNotice{"done"}));
  EXPECT_FALSE(sent.Add(planner::TargetNotice{1, 4}));
}

TEST(SentNoticesTest, EachPodThatIsGoneOrDrainedIsATopicOfItsOwn) {
  SentNotices sent;
  EXPECT_TRUE(sent.Add(planner::PodGoneNotice{"a", "PodGone"}));
  EXPECT_TRUE(sent.Add(planner::PodGoneNotice{"b", "PodGone"}));
  EXPECT_FALSE(sent.Add(planner::PodGoneNotice{"a", "PodGone"}));
  EXPECT_TRUE(sent.Add(planner::DrainNotice{{"a"}, "try", 7}));
  EXPECT_TRUE(sent.Add(planner::DrainNotice{{"b"}, "try", 7}));
  EXPECT_FALSE(sent.Add(planner::DrainNotice{{"a"}, "try", 7}));
  EXPECT_TRUE(sent.Add(planner::DrainNotice{{"a"}, "try", 8}));
}

}  // namespace
}  // namespace ringmaster::controllers
