// A template that was changed while nobody looked: pods of before still run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/planner.h"
#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using testing::ElementsAre;

TEST(OutdatedTest, PodsOfATemplateThatWasChangedUnseenLeaveAsInASuspension) {
  World world = World::Training(2);
  for (PodFacts& pod : world.in.pods) pod.made_from = "before";
  world.in.job.spec.pods_digest = "now";
  Decision out = Plan(world.in);
  EXPECT_TRUE(out.status_first);
  EXPECT_THAT(Deleted(out), ElementsAre()) << "their sidecars hear first that all leave";
  EXPECT_THAT(Told<DrainNotice>(out), ElementsAre("uid-0", "uid-1"));
  EXPECT_EQ(out.status.state, "Suspended");
  ASSERT_TRUE(out.status.Is("Suspended"));
  EXPECT_EQ(out.status.Find("Suspended")->reason, "Suspended") << "a queue takes its quota back";
  EXPECT_THAT(out.status.Find("Suspended")->message, testing::HasSubstr("worker.template"));
  EXPECT_EQ(out.status.world_size, 0);
  world.in.job.status = out.status;
  world.AllKnowThatTheyLeave();
  EXPECT_THAT(Deleted(Plan(world.in)), ElementsAre("digits-worker-0", "digits-worker-1"));
  for (PodFacts& pod : world.in.pods) {
    pod.deleting = true;
    pod.delete_at = world.in.now + std::chrono::seconds(30);
  }
  EXPECT_THAT(Created(Plan(world.in)), ElementsAre()) << "they still end";
  world.Remove(0).Remove(1);
  world.in.sidecars.clear();
  out = Plan(world.in);
  EXPECT_THAT(Created(out), ElementsAre(0, 1));
  EXPECT_FALSE(out.status.Is("Suspended"));
}

TEST(OutdatedTest, PodsOfBeforeThatHaveLeftBeforeTheyCouldBeDeletedAreNoSuccess) {
  World world = World::Training(2);
  for (PodFacts& pod : world.in.pods) pod.made_from = "before";
  world.in.job.spec.pods_digest = "now";
  world.in.job.status = Plan(world.in).status;
  world.End(0, PodPhase::kSucceeded, 0).End(1, PodPhase::kSucceeded, 0);
  const Decision out = Plan(world.in);
  EXPECT_THAT(Deleted(out), ElementsAre("digits-worker-0", "digits-worker-1"));
  EXPECT_FALSE(out.status.Is("Succeeded"));
}

TEST(OutdatedTest, OnePodOfBeforeTakesThoseOfNowAlong) {
  World world = World::Training(2);
  world.Pod(0).made_from = "before";
  world.Pod(1).made_from = world.in.job.spec.pods_digest = "now";
  EXPECT_EQ(Plan(world.in).status.state, "Suspended");
}

// As where the CRD was replaced by an older one.
TEST(OutdatedTest, PodsOfTheSameGenerationStayThoughTheJobIsReadInAnotherWay) {
  World world = World::Training(2);
  world.in.job.generation = 4;
  world.in.job.spec.pods_digest = "now";
  for (PodFacts& pod : world.in.pods) {
    pod.made_from = "before";
    pod.made_at = 4;
  }
  EXPECT_EQ(Plan(world.in).status.state, "Running");
  World replaced = world;
  replaced.Pod(1).made_from = "now";
  EXPECT_EQ(Plan(replaced.in).status.state, "Suspended") << "a successor is not like the others";
  world.in.job.generation = 6;
  EXPECT_EQ(Plan(world.in).status.state, "Suspended");
}

TEST(OutdatedTest, PodsThatFitOrDontSayOrHaveEndedStay) {
  World fits = World::Training(2);
  fits.in.job.spec.pods_digest = "now";
  EXPECT_EQ(Plan(fits.in).status.state, "Running") << "an earlier version has made them";
  for (PodFacts& pod : fits.in.pods) pod.made_from = "now";
  EXPECT_EQ(Plan(fits.in).status.state, "Running");
  World leftover = fits;
  leftover.Pod(1).made_from = "before";
  leftover.Pod(1).deleting = true;
  EXPECT_EQ(Plan(leftover.in).status.state, "Running") << "it goes";
  World ended = fits;
  for (const int i : {0, 1}) ended.End(i, PodPhase::kSucceeded, 0).Pod(i).made_from = "before";
  for (const int i : {0, 1}) ended.Sidecar(i).finished_epoch = ended.in.view->epoch;
  ended.Settle();
  EXPECT_EQ(ended.in.job.status.state, "Succeeded") << "nothing of it runs any more";
  ended.Pod(1).phase = PodPhase::kRunning;
  ended.Pod(1).all_terminated = ended.Pod(1).proven_dead = false;
  EXPECT_EQ(Plan(ended.in).status.state, "Succeeded");
}

}  // namespace
}  // namespace ringmaster::planner
