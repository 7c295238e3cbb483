#include "operator/cli/view_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kFirst = (std::uint64_t{1} << 40) + 1;

// What a sidecar says of a view of these workers: pod and incarnation, slot 0 each.
inspection::SidecarStatus Status(std::uint64_t epoch,
                                 const std::vector<std::pair<std::string, int>>& workers) {
  inspection::SidecarStatus status;
  status.epoch = epoch;
  status.view_reason = "Because";
  for (const auto& [pod, incarnation] : workers) {
    status.pods.push_back(pod);
    status.ranks.push_back({pod, 0, static_cast<std::uint64_t>(incarnation)});
  }
  return status;
}

job::Rebuild Rebuild(std::uint64_t epoch, job::PhaseSeconds seconds, std::int64_t steps_lost = 0) {
  return {.epoch = epoch,
          .parent = epoch - 1,
          .reason = "PodLost",
          .world_size = 1,
          .seconds = std::move(seconds),
          .steps_lost = steps_lost};
}

class ViewHistoryTest : public testing::Test {
 protected:
  static TimePoint At(int ms) { return TimePoint{} + milliseconds(ms); }
  // A sidecar has told of a rebuild only.
  void Hear(const job::Rebuild& rebuild, int ms) {
    inspection::SidecarStatus status;
    status.rebuilds = {rebuild};
    views_.Observe(status, At(ms));
  }
  ViewHistory views_;
};

TEST_F(ViewHistoryTest, WhoWasLostAndWhoCameIsSeenFromTheRanksOfTheViewBefore) {
  views_.Observe(Status(kFirst, {{"a", 1}, {"b", 1}}), At(0));
  views_.Observe(Status(kFirst + 1, {{"a", 1}, {"b", 2}, {"c", 1}}), At(1));
  const ViewRecord& second = views_.all().at(kFirst + 1);
  EXPECT_EQ(second.old_size, 2);
  EXPECT_EQ(second.rebuild.world_size, 3);
  EXPECT_EQ(second.rebuild.reason, "Because");
  ASSERT_THAT(second.lost, SizeIs(1));
  EXPECT_EQ(second.lost[0].incarnation, 1u) << "a restarted worker is another one";
  ASSERT_THAT(second.gained, SizeIs(2));
  EXPECT_EQ(second.gained[1].pod, "c");
}

TEST_F(ViewHistoryTest, OfVeryManyViewsTheNewestAreKeptAndAllLostStepsCounted) {
  for (std::uint64_t n = 0; n < 1500; ++n) {
    views_.Observe(Status(kFirst + n, {{"a", 1}, {"b", static_cast<int>(n)}}), At(0));
    Hear(Rebuild(kFirst + n, {{job::kResume, 0.1}}, 1), 1);
    views_.TakeSettled(At(0), true);
  }
  Hear(Rebuild(kFirst, {}, 7), 2);  // a sidecar that still tells of what is forgotten
  EXPECT_THAT(views_.all(), SizeIs(1000));
  EXPECT_EQ(views_.all().rbegin()->first, kFirst + 1499);
  EXPECT_THAT(views_.all().rbegin()->second.lost, SizeIs(1));
  EXPECT_EQ(views_.forgotten(), 500u);
  EXPECT_EQ(views_.steps_lost(), 1500);
}

TEST_F(ViewHistoryTest, TheNewestViewIsNotReplacedByALateAnswer) {
  EXPECT_EQ(views_.epoch(), 0u);
  EXPECT_EQ(views_.RankZero(), std::nullopt);
  views_.Observe(Status(kFirst + 1, {{"b", 1}}), At(0));
  views_.Observe(Status(kFirst, {{"a", 1}, {"b", 1}}), At(1));
  EXPECT_EQ(views_.epoch(), kFirst + 1);
  EXPECT_EQ(views_.world_size(), 1);
  EXPECT_EQ(views_.RankZero()->pod, "b");
  EXPECT_TRUE(views_.HasRank({"b", 0, 7})) << "whichever process is in the place";
  EXPECT_FALSE(views_.HasRank({"b", 1, 1}));
  EXPECT_FALSE(views_.HasRank({"a", 0, 1}));
}

TEST_F(ViewHistoryTest, OfEachPhaseTheLongestTimeCounts) {
  Hear(Rebuild(kFirst + 1, {{"decide", .1}, {"connect", .2}}, 3), 0);
  Hear(Rebuild(kFirst + 1, {{"decide", .3}, {"connect", .1}}, 2), 1);
  EXPECT_EQ(views_.all().at(kFirst + 1).rebuild.seconds,
            (job::PhaseSeconds{{"decide", .3}, {"connect", .2}}));
  EXPECT_EQ(views_.steps_lost(), 3) << "both have told of the same steps";
  EXPECT_EQ(views_.epoch(), kFirst + 1);
}

TEST_F(ViewHistoryTest, TheFirstViewFollowsFromAChangeOfIt) {
  job::Rebuild change = Rebuild(kFirst + 1, {});
  change.members = {"a", "c"};
  change.joined = {"c"};
  change.left = {"b"};
  Hear(change, 0);
  ASSERT_THAT(views_.all(), SizeIs(2));
  EXPECT_THAT(views_.all().at(kFirst).rebuild.members, ElementsAre("a", "b"));
  EXPECT_EQ(views_.all().at(kFirst + 1).old_size, 2);
}

TEST_F(ViewHistoryTest, OfAChangeWithoutItsMembersNoFirstViewFollows) {
  job::Rebuild change = Rebuild(kFirst + 1, {});
  change.left = {"b"};
  Hear(change, 0);
  EXPECT_THAT(views_.all(), SizeIs(1));
}

TEST_F(ViewHistoryTest, AChangeSettlesWhenStepsContinueAndIsTakenOnce) {
  views_.Observe(Status(kFirst, {{"a", 1}, {"b", 1}}), At(0));
  EXPECT_THAT(views_.TakeSettled(At(399), false), IsEmpty()) << "more may come";
  EXPECT_THAT(views_.TakeSettled(At(400), false), SizeIs(1)) << "the first needs no step";
  views_.Observe(Status(kFirst + 1, {{"a", 1}}), At(1000));
  EXPECT_THAT(views_.TakeSettled(At(1500), false), IsEmpty());
  Hear(Rebuild(kFirst + 1, {{"resume", .1}}), 1500);
  EXPECT_THAT(views_.TakeSettled(At(1500), false), SizeIs(1));
  EXPECT_THAT(views_.TakeSettled(At(9000), true), IsEmpty()) << "twice";
}

TEST_F(ViewHistoryTest, AChangeWithoutAStepSettlesWithANewerViewOrInTimeOrAtTheEnd) {
  views_.Observe(Status(kFirst, {{"a", 1}, {"b", 1}}), At(0));
  views_.Observe(Status(kFirst + 1, {{"a", 1}}), At(0));
  ASSERT_THAT(views_.TakeSettled(At(2999), false), SizeIs(1));
  EXPECT_THAT(views_.TakeSettled(At(3000), false), SizeIs(1)) << "it is waited for no longer";
  views_.Observe(Status(kFirst + 2, {{"b", 1}}), At(4000));
  views_.Observe(Status(kFirst + 3, {{"a", 1}}), At(4000));
  EXPECT_THAT(views_.TakeSettled(At(4400), false), SizeIs(1)) << "a newer view is there";
  EXPECT_THAT(views_.TakeSettled(At(4400), true), SizeIs(1));
}

}  // namespace
}  // namespace ringmaster::cli
