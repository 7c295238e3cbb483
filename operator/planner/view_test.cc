// What each sidecar is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

template <class T>
std::vector<T> Notices(const Decision& decision) {
  std::vector<T> notices;
  for (const PodNotice& sent : decision.notices) {
    if (const T* notice = std::get_if<T>(&sent.notice)) notices.push_back(*notice);
  }
  return notices;
}

std::int64_t Ms(Time time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

TEST(BootstrapTest, ASidecarThatHasGoneAwayIsInNoFirstView) {
  World world(2);
  world.Running(0).Ready(0).Running(1).Ready(1);
  world.Sidecar(1).connected = false;
  world.in.now += kSettle;
  const Decision out = Plan(world.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.first_view->pods.size(), 1u);
}

TEST(BootstrapTest, RanksFollowTheTopologyOfTheNodes) {
  World world(4);
  const std::pair<const char*, const char*> nodes[] = {
      {"n-0", "eu/leaf-10"}, {"n-1", "eu/leaf-2"}, {"n-2", "eu/leaf-10"}, {"n-3", "eu/leaf-2"}};
  for (int i = 0; i < 4; ++i) {
    world.Running(i).Ready(i);
    world.Pod(i).node = nodes[i].first;
    world.Sidecar(i).candidate.pod.node = nodes[i].first;
    world.in.nodes.push_back({.name = nodes[i].first, .ready = true, .place = nodes[i].second});
  }
  const Decision out = Plan(world.in);
  ASSERT_NE(out.first_view, nullptr);
  std::vector<std::string> order;
  for (const membership::Pod& pod : out.first_view->pods) order.push_back(pod.node);
  EXPECT_THAT(order, ElementsAre("n-1", "n-3", "n-0", "n-2"));
}

// The record was deleted, and the operator was restarted: the pods of the view may only be late.
TEST(BootstrapTest, AJobThatHasLostItsRecordIsNotBootstrappedBesideTheRingThatItHas) {
  World world(2);
  world.Running(0).Ready(0).Running(1).Ready(1);
  world.in.job.status.epoch = membership::MakeEpoch(1, 5);
  world.in.now += seconds(3600);
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.first_view, nullptr);
  ASSERT_NE(out.status.Find("Running"), nullptr);
  EXPECT_EQ(out.status.Find("Running")->reason, "RecordLost");
  EXPECT_THAT(out.status.Find("Running")->message, testing::HasSubstr("epoch 1.5"));
  const auto said = [](const Decision& decision) {
    return std::any_of(decision.events.begin(), decision.events.end(),
                       [](const Event& event) { return event.reason == "RecordLost"; });
  };
  EXPECT_TRUE(said(out));
  EXPECT_EQ(out.recover, 2u) << "all are heard: they are asked what they know";
  world.in.job.status = out.status;
  EXPECT_FALSE(said(Plan(world.in))) << "once";
  world.Sidecar(1).ready = false;
  EXPECT_FALSE(Plan(world.in).status.Is("Failed")) << "it has long been through init()";
}

TEST(NotifyViewTest, AJoinerThatIsToLeaveIsNotSentIntoTheRing) {
  World world = World::Training(2);
  world.Running(2).Ready(2);
  world.Pod(2).http = world.Sidecar(2).http_address;
  world.Pod(2).drain_reason = "Requested";
  EXPECT_THAT(Told<ViewDecidedNotice>(Plan(world.in)), IsEmpty());
}

TEST(NotifyViewTest, AMemberThatHasInstalledNothingIsToldThoughItIsToLeave) {
  World world = World::Training(2);
  world.Sidecar(1).epoch = 0;
  world.Pod(1).drain_reason = "Requested";
  EXPECT_THAT(Told<ViewDecidedNotice>(Plan(world.in)), ElementsAre("uid-1"));
}

TEST(NotifyViewTest, AMemberOfAnEarlierLineageIsToldOfTheNewOne) {
  World world = World::Training(2);
  membership::View view = *world.in.view;
  view.epoch = membership::MakeEpoch(2, 1);
  world.in.view = std::make_shared<const membership::View>(view);
  world.in.lineage = 2;
  world.Sidecar(0).epoch = view.epoch;
  EXPECT_THAT(Told<ViewDecidedNotice>(Plan(world.in)), ElementsAre("uid-1"));
}

TEST(NotifyViewTest, WhoWasDroppedLearnsWhomToAsk) {
  World world = World::Training(3);
  world.Pod(2).http = world.Sidecar(2).http_address;
  world.Members(2, {0, 1});
  EXPECT_THAT(Told<ViewDecidedNotice>(Plan(world.in)), ElementsAre("uid-2"));
}

TEST(NotifyDrainsTest, AMarkWithoutATimeIsToldOnceItHasOne) {
  World world = World::Training(2);
  world.Pod(1).drain_reason = "by hand";
  EXPECT_THAT(Told<DrainNotice>(Plan(world.in)), IsEmpty());
  world.Pod(1).drain_since = kNow;
  EXPECT_THAT(Told<DrainNotice>(Plan(world.in)), Contains("uid-1"));
}

TEST(NotifyDrainsTest, TheEarlierOfDrainAndDeletionCounts) {
  World world = World::Training(2);
  world.Pod(1).drain_reason = "Requested";
  world.Pod(1).deleting = true;
  for (const auto& [since, end, by] : {std::tuple(kNow, kNow + seconds(5), kNow + seconds(5)),
                                       std::tuple(kNow, kNow + seconds(500), kNow + seconds(30))}) {
    world.Pod(1).drain_since = since;
    world.Pod(1).delete_at = end;
    EXPECT_EQ(Notices<DrainNotice>(Plan(world.in)).at(0).deadline_unix_ms, Ms(by));
  }
}

TEST(NotifyDrainsTest, ADeletionIsItsOwnReason) {
  World world = World::Training(2);
  world.Pod(1).deleting = true;
  world.Pod(1).delete_at = kNow + seconds(30);
  EXPECT_EQ(Notices<DrainNotice>(Plan(world.in)).at(0).reason, "Deleted");
  EXPECT_FALSE(Notices<DrainNotice>(Plan(world.in)).at(0).all_leave);
}

TEST(NotifyDrainsTest, WhereAllMembersLeaveEachIsToldOfAllAndOfItsOwnTime) {
  World world = World::Training(3);
  for (const int i : {0, 1}) {
    world.Pod(i).deleting = true;
    world.Pod(i).delete_at = kNow + seconds(30 + i);
  }
  EXPECT_THAT(*Notices<DrainNotice>(Plan(world.in)).at(0).pod_uids, SizeIs(1)) << "one stays";
  world.Pod(2).deleting = true;
  world.Pod(2).delete_at = kNow + seconds(20);
  const auto notices = Notices<DrainNotice>(Plan(world.in));
  ASSERT_EQ(notices.size(), 3u);
  std::vector<std::int64_t> deadlines;
  for (const DrainNotice& notice : notices) {
    EXPECT_THAT(*notice.pod_uids, UnorderedElementsAre("uid-0", "uid-1", "uid-2"));
    deadlines.push_back(notice.deadline_unix_ms);
    EXPECT_FALSE(notice.all_leave) << "others may come and take over";
  }
  EXPECT_THAT(deadlines, UnorderedElementsAre(Ms(kNow + seconds(20)), Ms(kNow + seconds(30)),
                                              Ms(kNow + seconds(31))));
}

TEST(NotifyGoneTest, TheReasonSaysWhatIsKnown) {
  World world = World::Training(2);
  world.End(1, PodPhase::kFailed, 137);
  EXPECT_EQ(Gone(Plan(world.in)).at(0).reason, "Terminated");
  world.Pod(1).all_terminated = false;
  world.Pod(1).proof = "its node has rebooted";
  EXPECT_EQ(Gone(Plan(world.in)).at(0).reason, "its node has rebooted");
  world.Pod(1).proven_dead = false;
  EXPECT_EQ(Gone(Plan(world.in)).at(0).reason, "PodGone");
  world.in.job.status.proven_dead = {"uid-1"};
  world.Remove(1);
  EXPECT_EQ(Gone(Plan(world.in)).at(0).reason, "Terminated") << "as the status remembers it";
}

TEST(NotifyTargetTest, SaysHowManyThereMayBe) {
  World world = World::Training(2);
  world.in.job.spec.elastic_policy.min_replicas = 2;
  world.in.job.spec.elastic_policy.max_replicas = 7;
  const TargetNotice target = Notices<TargetNotice>(Plan(world.in)).at(0);
  EXPECT_EQ(target, (TargetNotice{.sizes = {.least = 2, .allowed = {}}, .expected_pods = 2}));
}

TEST(AddressTest, OnlyASidecarThatIsThereIsWrittenDown) {
  World world = World::Training(2);
  world.Sidecar(0).connected = false;
  world.Sidecar(1).http_address.clear();
  world.Pod(1).http = "10.0.0.1:80";
  EXPECT_THAT(Plan(world.in).annotations, IsEmpty());
}

TEST(FirstViewTest, HasAnAllowedSize) {
  World world(8);
  world.in.job.spec.elastic_policy.min_replicas = 2;
  world.in.job.spec.elastic_policy.allowed_sizes = {2, 4, 8};
  for (int i = 0; i < 5; ++i) world.Running(i).Ready(i);
  world.in.now += kSettle;
  const Decision out = Plan(world.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.first_view->pods.size(), 4u);
}

}  // namespace
}  // namespace ringmaster::planner
