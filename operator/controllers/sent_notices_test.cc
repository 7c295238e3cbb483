#include "operator/controllers/sent_notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::controllers {
namespace {

using planner::DrainNotice;
using planner::FinishNotice;
using planner::Notice;
using planner::PodsGoneOf;
using planner::TargetNotice;
using planner::UidsOf;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(SentNoticesTest, WhatWasSentIsSentAgainOnlyWhenItHasChanged) {
  SentNotices sent;
  EXPECT_THAT(sent.New({TargetNotice{{1, {}}, 4}}), SizeIs(1));
  EXPECT_THAT(sent.New({TargetNotice{{1, {}}, 4}}), IsEmpty());
  EXPECT_THAT(sent.New({TargetNotice{{1, {}}, 5}}), SizeIs(1));
  EXPECT_THAT(sent.New({TargetNotice{{1, {}}, 4}}), SizeIs(1)) << "back again is a change too";
}

TEST(SentNoticesTest, NoticesOfAnotherKindAreAnotherTopic) {
  SentNotices sent;
  EXPECT_THAT(sent.New({TargetNotice{{1, {}}, 4}}), SizeIs(1));
  EXPECT_THAT(sent.New({TargetNotice{{1, {}}, 4}, FinishNotice{"done"}}),
              ElementsAre(Notice(FinishNotice{"done"})));
}

TEST(SentNoticesTest, EachPodThatIsDrainedIsATopicOfItsOwn) {
  SentNotices sent;
  const Notice drain_a = DrainNotice{UidsOf({"a"}), "try", 7};
  const Notice drain_b = DrainNotice{UidsOf({"b"}), "try", 7};
  EXPECT_THAT(sent.New({drain_a}), SizeIs(1));
  EXPECT_THAT(sent.New({drain_a, drain_b}), ElementsAre(drain_b));
  const Notice later = DrainNotice{UidsOf({"a"}), "try", 8};
  EXPECT_THAT(sent.New({later, drain_b}), ElementsAre(later));
}

TEST(SentNoticesTest, ThePodsThatAreGoneAreOneTopic) {
  SentNotices sent;
  EXPECT_THAT(sent.New({PodsGoneOf({{"a", "PodGone"}})}), SizeIs(1));
  EXPECT_THAT(sent.New({PodsGoneOf({{"a", "PodGone"}})}), IsEmpty());
  const Notice both = PodsGoneOf({{"a", "PodGone"}, {"b", "PodGone"}});
  EXPECT_THAT(sent.New({both}), ElementsAre(both));
}

TEST(SentNoticesTest, WhatIsOfNoInterestAnyMoreIsForgotten) {
  SentNotices sent;
  const Notice drain = DrainNotice{UidsOf({"a"}), "try", 7};
  EXPECT_THAT(sent.New({drain, TargetNotice{{1, {}}, 4}}), SizeIs(2));
  EXPECT_THAT(sent.New({TargetNotice{{1, {}}, 4}}), IsEmpty());
  EXPECT_THAT(sent.New({drain, TargetNotice{{1, {}}, 4}}), SizeIs(1));
}

TEST(SharedListsTest, WhatIsTheSameInTheNextLookIsTheSameObject) {
  SharedLists lists;
  const auto look = [&](std::vector<planner::GonePod> gone) {
    const Notice made = PodsGoneOf(std::move(gone));
    std::vector<planner::PodNotice> told = {{"x", made}, {"y", made}};
    lists.Share(&told);
    const auto& first = std::get<planner::PodsGoneNotice>(told[0].notice).pods;
    EXPECT_EQ(first, std::get<planner::PodsGoneNotice>(told[1].notice).pods);
    return first;
  };
  const planner::GonePods one = look({{"a", "PodGone"}});
  EXPECT_EQ(look({{"a", "PodGone"}}), one);
  const planner::GonePods two = look({{"a", "PodGone"}, {"b", "PodGone"}});
  EXPECT_NE(two, one);
  EXPECT_EQ(two->size(), 2u);
}

}  // namespace
}  // namespace ringmaster::controllers
