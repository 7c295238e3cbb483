#include "operator/cli/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Rank {
  uint64_t step = 0;
  job::WorkerTimes times;
};

// One worker per pod: rank r in pod "p<r>".
inspection::Inspection Look(const std::vector<Rank>& ranks) {
  inspection::Inspection look;
  look.job = {{"metadata", {{"name", "digits"}}}};
  for (size_t r = 0; r < ranks.size(); ++r) {
    inspection::SidecarStatus status;
    status.epoch = (uint64_t{1} << 40) + 3;
    status.workers = {{.slot = 0,
                       .incarnation = 1,
                       .rank = static_cast<int>(r),
                       .step = ranks[r].step,
                       .times = ranks[r].times}};
    look.answers["p" + std::to_string(r)] = status;
  }
  return look;
}

job::WorkerTimes Times(double seconds, double blocked, double waiting, double running) {
  return {.seconds = seconds,
          .blocked = blocked,
          .waiting = waiting,
          .running = running,
          .bytes = static_cast<uint64_t>(seconds * 1e6)};
}

TEST(TopTest, ShowsWhatHappenedBetweenTheLooks) {
  const auto earlier = Look({{10, Times(100, 50, 50, 0)}, {10, Times(100, 50, 50, 0)}});
  const auto now = Look({{14, Times(102, 50.5, 50.2, 0.4)}, {14, Times(102, 50.5, 50.2, 0.4)}});
  EXPECT_EQ(TopText(earlier, now),
            "digits   view 1.3   2 workers   step 14   500 ms a step\n"
            "RANK   WORKER   STEP   COMPUTES   BLOCKED   WAITING   RUNNING   MB/S\n"
            "0      p0       14     75%        25%       10%       20%       1\n"
            "1      p1       14     75%        25%       10%       20%       1\n");
}

TEST(TopTest, NamesTheRankThatTheOthersWaitFor) {
  const Rank none;
  const auto text =
      TopText(Look({none, none, none}),
              Look({{4, Times(10, 8, 8, 0)}, {4, Times(10, 1, 0.5, 0)}, {4, Times(10, 7, 7, 0)}}));
  EXPECT_THAT(text, HasSubstr("The others wait for rank 1 (p1): it waits 5% of its time, each of "
                              "them 70% or more."));
}

TEST(TopTest, WhereAllWaitAlikeNobodyIsNamed) {
  const Rank none;
  EXPECT_THAT(TopText(Look({none, none}), Look({{4, Times(10, 6, 6, 0)}, {4, Times(10, 5, 5, 0)}})),
              Not(HasSubstr("wait for rank")));
  EXPECT_THAT(TopText(Look({none}), Look({{4, Times(10, 0, 0, 0)}})),
              Not(HasSubstr("wait for rank")));
}

TEST(TopTest, AWorkerThatIsNewCountsFromItsFirstView) {
  const auto earlier = Look({{10, Times(100, 0, 0, 0)}, {10, Times(100, 0, 0, 0)}});
  auto now = Look({{12, Times(102, 0, 0, 0)}, {12, Times(1, 0.5, 0, 0)}});
  now.answers["p1"].workers[0].incarnation = 2;
  EXPECT_THAT(TopText(earlier, now), HasSubstr("1      p1       12     50%        50%"));
}

TEST(TopTest, StepsThatAJoinerHasFromTheOthersAreNotItsOwn) {
  auto earlier = Look({{10, Times(100, 0, 0, 0)}, {0, {}}});
  earlier.answers["p1"].workers[0].rank = -1;
  const auto now = Look({{14, Times(102, 0, 0, 0)}, {14, Times(1, 0, 0, 0)}});
  EXPECT_THAT(TopText(earlier, now), HasSubstr("500 ms a step"));
}

TEST(TopTest, AWorkerThatHasNotTrainedSinceHasNoShares) {
  const auto look = Look({{10, {}}});
  EXPECT_THAT(TopText(look, look), HasSubstr("0      p0       10     -          -"));
}

TEST(TopTest, ThatNoStepHasBeenCompletedIsSaid) {
  const auto none = Look({{0, Times(2, 1, 1, 0)}, {0, Times(2, 1, 1, 0)}});
  EXPECT_THAT(TopText(none, none), HasSubstr("\nNo step has been completed yet. "));
  EXPECT_THAT(TopText(none, none), HasSubstr("\nMore: why digits\n"));
  const auto first = Look({{0, Times(2, 1, 1, 0)}, {1, Times(2, 1, 1, 0)}});
  EXPECT_THAT(TopText(none, first), Not(HasSubstr("No step"))) << "one rank has told of it";
}

TEST(TopTest, WithoutWorkersItSaysSo) {
  EXPECT_THAT(TopText(Look({}), Look({})),
              AllOf(HasSubstr("digits"), HasSubstr("no worker is in a view\nMore: why digits\n")));
}

TEST(TopTest, WhoDidNotAnswerIsSaidWithTheOthers) {
  const auto earlier = Look({{10, Times(100, 50, 50, 0)}});
  auto now = Look({{14, Times(102, 50.5, 50.2, 0.4)}});
  now.silent = {"p1: no status from 10.0.0.7:1 within 500 ms"};
  EXPECT_THAT(TopText(earlier, now),
              AllOf(HasSubstr("   1 worker answers   step 14"), HasSubstr("0      p0       14"),
                    HasSubstr("\n1 of 2 sidecars gave no answer; p1: no status from")));
}

TEST(TopTest, WhereSidecarsAreSilentItIsNotSaidThatNoWorkerIsInAView) {
  auto now = Look({});
  now.silent = {"p0: no status from 10.0.0.7:1 within 500 ms", "p1: the same"};
  EXPECT_THAT(TopText(now, now),
              AllOf(Not(HasSubstr("no worker is in a view")), Not(HasSubstr("0 workers")),
                    HasSubstr("2 of 2 sidecars gave no answer; p0: no status from 10.0.0.7:1"),
                    HasSubstr("\nMore: why digits\n")));
}

}  // namespace
}  // namespace ringmaster::cli
