#include "operator/app/waiting_notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/app/notice_proto.h"

namespace ringmaster::app {
namespace {

using planner::FinishNotice;
using planner::PodsGoneOf;
using planner::TargetNotice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What waits, in words.
std::vector<std::string> All(WaitingNotices& waiting) {
  std::vector<std::string> said;
  while (const auto message = waiting.Next()) {
    if (message->has_target()) {
      said.push_back("target " + std::to_string(message->target().expected_pods()));
    } else if (message->has_pod_gone()) {
      said.push_back(message->pod_gone().pod_uid() + " " + message->pod_gone().reason());
    } else {
      said.push_back("finish");
    }
  }
  return said;
}

TEST(WaitingNoticesTest, TheyAreTakenInTheirOrder) {
  WaitingNotices waiting;
  EXPECT_THAT(All(waiting), IsEmpty());
  waiting.Add(TargetNotice{{1, {}}, 4});
  waiting.Add(FinishNotice{"done"});
  EXPECT_THAT(All(waiting), ElementsAre("target 4", "finish"));
}

TEST(WaitingNoticesTest, OfOneTopicOnlyTheNewestWaits) {
  WaitingNotices waiting;
  for (std::uint32_t expected = 0; expected < 1000; ++expected) {
    waiting.Add(TargetNotice{{1, {}}, expected});
    waiting.Add(PodsGoneOf({{"a", "PodGone"}}));
  }
  EXPECT_EQ(waiting.size(), 2u);
  EXPECT_THAT(All(waiting), ElementsAre("target 999", "a PodGone")) << "in the place of the first";
}

TEST(NoticeProtoTest, ADeadlineIsAlsoSaidAsTheTimeThatIsLeftAsItIsSent) {
  v1::OperatorNotice by = ToProto(planner::DrainNotice{planner::UidsOf({"a"}), "why", 9000});
  AddTimeLeft(4000, &by);
  EXPECT_EQ(by.drain().left_ms(), 5000);
  AddTimeLeft(9500, &by);
  EXPECT_EQ(by.drain().left_ms(), -500);
  v1::OperatorNotice some_time = ToProto(planner::DrainNotice{planner::UidsOf({"a"}), "why"});
  AddTimeLeft(4000, &some_time);
  EXPECT_FALSE(some_time.drain().has_left_ms());
}

TEST(WaitingNoticesTest, WhatWasTakenIsNotReplaced) {
  WaitingNotices waiting;
  waiting.Add(TargetNotice{{1, {}}, 4});
  waiting.Next();
  waiting.Add(TargetNotice{{1, {}}, 5});
  EXPECT_THAT(All(waiting), ElementsAre("target 5"));
}

TEST(WaitingNoticesTest, OfPodsThatAreGoneOnlyWhatIsNewIsSaid) {
  WaitingNotices waiting;
  waiting.Add(PodsGoneOf({{"a", "PodGone"}, {"c", "PodGone"}}));
  EXPECT_THAT(All(waiting), ElementsAre("a PodGone", "c PodGone"));
  waiting.Add(PodsGoneOf({{"a", "PodGone"}, {"b", "PodGone"}, {"c", "Terminated"}}));
  EXPECT_THAT(All(waiting), ElementsAre("b PodGone", "c Terminated"));
  waiting.Add(PodsGoneOf({{"b", "PodGone"}}));
  EXPECT_THAT(All(waiting), IsEmpty());
  waiting.Add(PodsGoneOf({{"a", "PodGone"}, {"b", "PodGone"}}));
  EXPECT_THAT(All(waiting), ElementsAre("a PodGone")) << "it had come back meanwhile";
}

TEST(WaitingNoticesTest, AListThatIsBeingSaidIsSaidToItsEndBeforeTheNewest) {
  WaitingNotices waiting;
  waiting.Add(PodsGoneOf({{"b", "PodGone"}, {"c", "PodGone"}}));
  ASSERT_EQ(waiting.Next()->pod_gone().pod_uid(), "b");
  waiting.Add(PodsGoneOf({{"x", "PodGone"}}));
  waiting.Add(PodsGoneOf({{"a", "PodGone"}, {"b", "PodGone"}, {"c", "PodGone"}}));
  EXPECT_EQ(waiting.size(), 1u);
  EXPECT_THAT(All(waiting), ElementsAre("c PodGone", "a PodGone"));
}

}  // namespace
}  // namespace ringmaster::app
