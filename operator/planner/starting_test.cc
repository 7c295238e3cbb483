// What a job's status says about pods that don't start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> Warnings(const Decision& decision) {
  std::vector<std::string> reasons;
  for (const Event& event : decision.events) {
    if (event.warning) reasons.push_back(event.reason);
  }
  return reasons;
}

World OfBadImage(int replicas) {
  World world(replicas);
  for (int i = 0; i < replicas; ++i) {
    world.Running(i);
    world.Pod(i).phase = PodPhase::kPending;
    world.Pod(i).running_since.reset();
    world.Pod(i).unstartable = {"ImagePullFailed", "image r/i:7 of container worker can't be had",
                                "no such host, port " + std::to_string(i)};
  }
  return world;
}

TEST(StartingTest, AnImageThatCantBePulledIsAConditionAndOneEvent) {
  World world = OfBadImage(2);
  const Decision first = Plan(world.in);
  const api::Condition* started = first.status.Find("Started");
  ASSERT_NE(started, nullptr);
  EXPECT_FALSE(started->status);
  EXPECT_EQ(started->reason, "ImagePullFailed");
  EXPECT_EQ(started->message,
            "digits-worker-0, digits-worker-1: image r/i:7 of container worker can't be had: "
            "no such host, port 0");
  EXPECT_THAT(first.status.Find("Running")->message, HasSubstr("image r/i:7"));
  EXPECT_THAT(Warnings(first), ElementsAre("ImagePullFailed"));
  world.in.job.status = first.status;
  world.Pod(0).unstartable.message = "no such host, another port";
  const Decision second = Plan(world.in);
  EXPECT_THAT(second.status.Find("Started")->message, HasSubstr("another port"));
  EXPECT_THAT(Warnings(second), IsEmpty()) << "the same trouble";
  world.in.job.status = second.status;
  for (int i = 0; i < 2; ++i) world.Pod(i).unstartable = {};
  const Decision mended = Plan(world.in);
  EXPECT_TRUE(mended.status.Is("Started"));
  EXPECT_THAT(Warnings(mended), IsEmpty());
}

TEST(StartingTest, ATroubleIsNotOverBeforeThePodsAreNoLongerPrepared) {
  World world = OfBadImage(2);
  world.Settle();
  for (int i = 0; i < 2; ++i) world.Pod(i).unstartable = {};
  world.Pod(1).preparing = true;  // and this operator, for instance, has just begun to lead
  const Decision unknown = Plan(world.in);
  EXPECT_EQ(unknown.status.Find("Started")->reason, "ImagePullFailed");
  EXPECT_FALSE(unknown.status.Is("Started"));
  world.Pod(1).preparing = false;
  EXPECT_TRUE(Plan(world.in).status.Is("Started"));
}

TEST(StartingTest, WorkersThatDontCallInitAreAnEventWhenTheyHaveHadTheTime) {
  World world(2);
  world.in.job.spec.elastic_policy.min_replicas = 2;
  world.Running(0).Connected(0).Pending(1);
  world.in.now += std::chrono::seconds(60);
  EXPECT_EQ(Plan(world.in).status.Find("Running")->reason, "Starting") << "one is not there yet";
  world.Remove(0).in.pods.clear();
  world.in.now = kNow;
  world.in.sidecars.clear();
  world.Running(0).Connected(0).Running(1).Connected(1);
  const Decision first = Plan(world.in);
  EXPECT_EQ(first.status.Find("Running")->reason, "Starting");
  EXPECT_LE(first.look_again, std::chrono::milliseconds(5'100));
  const auto waits = [](const Decision& out) {
    std::vector<std::string> messages;
    for (const Event& event : out.events) {
      if (event.reason == "WaitingForInit") messages.push_back(event.message);
    }
    return messages;
  };
  EXPECT_THAT(waits(first), IsEmpty());
  world.in.job.status = first.status;
  world.in.now += std::chrono::seconds(5);
  const Decision second = Plan(world.in);
  const api::Condition* running = second.status.Find("Running");
  EXPECT_EQ(running->reason, "WaitingForInit");
  EXPECT_THAT(running->message, HasSubstr("slot 0 has not called init()"));
  EXPECT_THAT(waits(second), ElementsAre(running->message)) << "in the same words";
  world.in.job.status = second.status;
  world.in.now += std::chrono::seconds(5);
  EXPECT_THAT(waits(Plan(world.in)), IsEmpty()) << "once";
}

TEST(StartingTest, AHealthyJobHasStartedWhenItsPodsRun) {
  World world(2);
  world.in.job.spec.elastic_policy.min_replicas = 2;
  world.Running(0);
  EXPECT_EQ(Plan(world.in).status.Find("Started"), nullptr);
  world.Running(1);
  EXPECT_TRUE(Plan(world.in).status.Is("Started"));
}

TEST(StartingTest, ASuspendedJobSaysNothingOfPodsThatAreGone) {
  World world = OfBadImage(2);
  world.Settle();
  world.in.job.spec.run_policy.suspend = true;
  const Decision out = Plan(world.in);
  for (const char* type : {"Scheduled", "Started"}) {
    ASSERT_NE(world.in.job.status.Find(type), nullptr);
    EXPECT_EQ(out.status.Find(type), nullptr) << type;
  }
}

TEST(StartingTest, ContainersThatDontComeForLongAreSaidToBeUnusual) {
  World world(1);
  world.Running(0);
  world.Pod(0).running_since.reset();
  world.Pod(0).accepted_at = kNow;
  Decision out = Plan(world.in);
  EXPECT_THAT(out.status.Find("Running")->message, HasSubstr("its containers are being made"));
  ASSERT_TRUE(out.look_again) << "nobody wakes the job for a volume that doesn't come";
  world.in.now += *out.look_again;
  out = Plan(world.in);
  EXPECT_THAT(out.status.Find("Running")->message, HasSubstr("kubectl describe pod says why"));
}

TEST(StartingTest, AHundredPodsWithOneTroubleAreOneShortSentence) {
  World world = OfBadImage(100);
  const std::string message = Plan(world.in).status.Find("Started")->message;
  EXPECT_THAT(message,
              AllOf(HasSubstr("digits-worker-3 and 96 more: image"), Not(HasSubstr("-4"))));
}

TEST(StartingTest, WhoHasNotComeToInitIsSaidInGroups) {
  World world(7);
  for (int i = 0; i < 6; ++i) world.Running(i);
  world.Pod(5).running_since.reset();
  world.Ready(0).Connected(1).Pending(6);
  world.in.job.spec.elastic_policy.min_replicas = 7;
  EXPECT_EQ(
      Plan(world.in).status.Find("Running")->message,
      "1 of 7 pods ready, at least 7 needed; waiting for digits-worker-1 (slot 0 has not "
      "called init()), digits-worker-2, digits-worker-3, digits-worker-4 (its sidecar has not "
      "registered), digits-worker-5 (its containers are being made)");
}

TEST(StartingTest, PodsThatNoNodeTakesAreAnEventOnce) {
  World world(2);
  world.Pending(0).Pending(1);
  for (const int i : {0, 1}) world.Pod(i).waiting = "Unschedulable: 0/2 nodes are available";
  const Decision first = Plan(world.in);
  EXPECT_EQ(first.status.Find("Scheduled")->reason, "Unschedulable");
  EXPECT_EQ(
      first.status.Find("Scheduled")->message,
      "pods with a node: 0 of 2; digits-worker-0, digits-worker-1: Unschedulable: 0/2 nodes are "
      "available");
  EXPECT_THAT(Warnings(first), ElementsAre("Unschedulable"));
  world.in.job.status = first.status;
  EXPECT_THAT(Warnings(Plan(world.in)), IsEmpty());
}

TEST(StartingTest, PodsOfWhichNoSchedulerSaysAnythingAreNamedAfterAWhile) {
  World world(2);
  world.Pending(0).Pending(1);
  for (const int i : {0, 1}) world.Pod(i).created = kNow;
  Decision out = Plan(world.in);
  EXPECT_EQ(out.status.Find("Scheduled")->message, "pods with a node: 0 of 2");
  ASSERT_TRUE(out.look_again);
  world.in.now += *out.look_again;
  out = Plan(world.in);
  EXPECT_EQ(out.status.Find("Scheduled")->reason, "WaitingForPods");
  EXPECT_EQ(out.status.Find("Scheduled")->message,
            "pods with a node: 0 of 2; digits-worker-0, digits-worker-1: no scheduler says "
            "anything: is there one of its schedulerName?");
}

TEST(StartingTest, AGangThatFindsNoRoomIsAnEventOnce) {
  World world(2);
  world.in.job.spec.elastic_policy.min_replicas = 2;
  world.in.gang_fit =
      scheduler::GangFit{0, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."};
  const Decision first = Plan(world.in);
  EXPECT_EQ(first.status.Find("Scheduled")->reason, "WaitingForRoom");
  EXPECT_THAT(Warnings(first), ElementsAre("WaitingForRoom"));
  world.in.job.status = first.status;
  EXPECT_THAT(Warnings(Plan(world.in)), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::planner
