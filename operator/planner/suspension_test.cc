#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/planner.h"
#include "operator/planner/testing/world.h"
#include "operator/planner/timings.h"

namespace ringmaster::planner {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// A job of two pods that was suspended; their sidecars have heard it.
World SuspendedAndHeard() {
  World world = World::Training(2);
  world.in.job.spec.run_policy.suspend = true;
  world.in.job.status = Plan(world.in).status;
  world.AllKnowThatTheyLeave();
  return world;
}

// The same, and resumed since.
World ResumedWhenItsPodsWereTold() {
  World world = SuspendedAndHeard();
  world.in.job.spec.run_policy.suspend = false;
  return world;
}

TEST(SuspensionTest, SuspendRemovesAllPodsAndResumeMakesThemAgain) {
  World world = World::Training(2);
  world.in.job.spec.run_policy.suspend = true;
  Decision out = Plan(world.in);
  EXPECT_THAT(Deleted(out), ElementsAre()) << "their sidecars hear first that all leave";
  EXPECT_EQ(out.notices.size(), 2u);
  EXPECT_TRUE(out.status_first) << "who hears it leaves, even if the job is resumed meanwhile";
  EXPECT_TRUE(out.status.Is("Suspended"));
  EXPECT_EQ(out.status.state, "Suspended");
  EXPECT_EQ(out.status.world_size, 0);
  world.in.job.status = out.status;
  EXPECT_FALSE(Plan(world.in).status_first);
  world.AllKnowThatTheyLeave();
  EXPECT_THAT(Deleted(Plan(world.in)), ElementsAre("digits-worker-0", "digits-worker-1"));
  world.Remove(0).Remove(1);
  world.in.sidecars.clear();
  world.in.job.spec.run_policy.suspend = false;
  out = Plan(world.in);
  EXPECT_THAT(Created(out), ElementsAre(0, 1));
  EXPECT_FALSE(out.status.Is("Suspended"));
}

// The kubelets would tell each pod of its own end alone: the others would go on without it.
TEST(SuspensionTest, PodsAreDeletedWhenEachSidecarKnowsThatAllLeave) {
  World world = SuspendedAndHeard();
  world.Sidecar(1).knows_that_all_leave = false;
  const Decision waits = Plan(world.in);
  EXPECT_THAT(Deleted(waits), ElementsAre());
  ASSERT_TRUE(waits.look_again);
  World late = world;
  late.in.now += *waits.look_again;
  EXPECT_THAT(Deleted(Plan(late.in)), ElementsAre("digits-worker-0", "digits-worker-1"))
      << "it is of an earlier version, or can't be reached";
  World gone = world;
  gone.End(1, PodPhase::kSucceeded, 0);
  EXPECT_THAT(Deleted(Plan(gone.in)), ElementsAre("digits-worker-0", "digits-worker-1"));
  World silent = world;
  silent.in.sidecars.pop_back();
  EXPECT_THAT(Deleted(Plan(silent.in)), ElementsAre()) << "it looks for a new operator";
  World taken_over = silent;
  taken_over.in.taken_over = world.in.now;
  taken_over.in.now += kSidecarsReturn;
  EXPECT_THAT(Deleted(Plan(taken_over.in)), ElementsAre()) << "it has only now found it";
  taken_over.in.now += kAllHear;
  EXPECT_THAT(Deleted(Plan(taken_over.in)), ElementsAre("digits-worker-0", "digits-worker-1"));
  world.Sidecar(1).knows_that_all_leave = true;
  EXPECT_THAT(Deleted(Plan(world.in)), ElementsAre("digits-worker-0", "digits-worker-1"));
}

TEST(SuspensionTest, PodsThatWereToldThatAllLeaveAreDeletedThoughTheJobIsResumed) {
  World world = ResumedWhenItsPodsWereTold();
  const Decision out = Plan(world.in);
  EXPECT_THAT(Deleted(out), ElementsAre("digits-worker-0", "digits-worker-1"));
  EXPECT_TRUE(out.status.Is("Suspended"));
}

// Otherwise they would end by themselves, as if their ranks had done all.
TEST(SuspensionTest, PodsThatWereToldToLeaveBeforeTheFirstViewAreDeletedThoughTheJobIsResumed) {
  World world = World::Training(2);
  world.in.view = nullptr;
  world.in.job.spec.run_policy.suspend = true;
  world.in.job.status = Plan(world.in).status;
  world.in.job.spec.run_policy.suspend = false;  // and the API server has refused to delete them
  const Decision out = Plan(world.in);
  EXPECT_THAT(Deleted(out), ElementsAre("digits-worker-0", "digits-worker-1"));
  EXPECT_TRUE(out.status.Is("Suspended"));
}

// The API server could not be reached for a second, say, when the pods were to be deleted.
TEST(SuspensionTest, PodsThatHaveLeftBeforeTheyCouldBeDeletedAreNoSuccess) {
  World world = ResumedWhenItsPodsWereTold();
  world.End(0, PodPhase::kSucceeded, 0).End(1, PodPhase::kSucceeded, 0);
  for (const bool has_view : {true, false}) {
    if (!has_view) world.in.view = nullptr;
    const Decision out = Plan(world.in);
    EXPECT_THAT(Deleted(out), ElementsAre("digits-worker-0", "digits-worker-1"));
    EXPECT_TRUE(out.status.Is("Suspended"));
    EXPECT_FALSE(out.status.Is("Succeeded"));
  }
}

TEST(SuspensionTest, AJobThatHasEndedIsNotSuspendedForEverByThePodsThatItKeeps) {
  World world = World::Training(2);
  world.in.job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kNone;
  for (const int i : {0, 1}) world.Sidecar(i).finished_epoch = world.in.view->epoch;
  world.End(0, PodPhase::kSucceeded, 0).End(1, PodPhase::kSucceeded, 0).Settle();
  ASSERT_TRUE(world.in.job.status.Is("Succeeded"));
  world.in.sidecars.clear();
  world.in.job.spec.run_policy.suspend = true;
  world.Settle();
  world.in.job.spec.run_policy.suspend = false;
  world.Settle();
  EXPECT_FALSE(world.in.job.status.Is("Suspended"));
  EXPECT_TRUE(world.in.job.status.Is("Succeeded"));
}

// As `kubectl scale hvdjob --all --replicas=0` does it to those that have ended, too.
TEST(SuspensionTest, AJobThatHasEndedKeepsItsPodsWithTheirLogsAndItsTimes) {
  World world = World::Training(2);
  for (const int i : {0, 1}) world.Sidecar(i).finished_epoch = world.in.view->epoch;
  world.End(0, PodPhase::kSucceeded, 0).End(1, PodPhase::kSucceeded, 0).Settle();
  world.in.job.status.start_time = "2026-01-31T11:00:00Z";
  const api::Status ended = world.in.job.status;
  world.in.job.spec.worker.replicas = 0;
  const Decision out = Plan(world.in);
  EXPECT_THAT(out.deletes, IsEmpty());
  EXPECT_THAT(out.events, IsEmpty());
  EXPECT_EQ(out.status.state, "Succeeded");
  EXPECT_EQ(out.status.start_time, ended.start_time);
  EXPECT_EQ(out.status.finished_epoch, ended.finished_epoch);
  EXPECT_FALSE(out.status.Is("Suspended"));
}

TEST(SuspensionTest, RanksThatHadAgreedToEndBeforeTheJobWasSuspendedHaveSucceeded) {
  World world = ResumedWhenItsPodsWereTold();
  for (const int i : {0, 1}) world.Sidecar(i).finished_epoch = world.in.view->epoch;
  world.End(0, PodPhase::kSucceeded, 0).End(1, PodPhase::kSucceeded, 0);
  EXPECT_TRUE(Plan(world.in).status.Is("Succeeded"));
}

// The status could not be written since the job was resumed, the record could.
TEST(SuspensionTest, PodsOfAResumedJobTrainOnThoughItsStatusStillSaysSuspended) {
  World world = ResumedWhenItsPodsWereTold();
  auto view = *world.in.view;
  view.epoch = membership::MakeEpoch(2, 1);  // that of pods that were made afterwards
  world.in.view = std::make_shared<const membership::View>(view);
  world.in.lineage = 2;
  for (PodFacts& pod : world.in.pods) pod.created += seconds(10);
  for (const std::uint64_t known : {world.in.job.status.epoch, membership::MakeEpoch(2, 0)}) {
    world.in.job.status.epoch = known;
    const Decision out = Plan(world.in);
    EXPECT_THAT(Deleted(out), ElementsAre()) << known;
    EXPECT_FALSE(out.status.Is("Suspended")) << known;
    EXPECT_EQ(out.status.epoch, view.epoch);
  }
}

TEST(SuspensionTest, PodsInNoViewAreDeletedAtOnceWhenTheJobIsSuspended) {
  World world = World::Training(2);
  world.in.view = nullptr;
  world.in.job.spec.run_policy.suspend = true;
  EXPECT_THAT(Deleted(Plan(world.in)), ElementsAre("digits-worker-0", "digits-worker-1"));
}

TEST(SuspensionTest, AResumedJobWaitsForThePodsOfBeforeThatStillEnd) {
  World world = ResumedWhenItsPodsWereTold();
  world.in.sidecars.clear();
  for (PodFacts& pod : world.in.pods) {
    pod.deleting = true;
    pod.delete_at = world.in.now + std::chrono::seconds(30);
  }
  Decision out = Plan(world.in);
  EXPECT_THAT(Created(out), ElementsAre());
  EXPECT_TRUE(out.status.Is("Suspended"));
  EXPECT_THAT(out.status.Find("Suspended")->message, testing::HasSubstr("still end"));
  ASSERT_TRUE(out.look_again);
  EXPECT_GE(*out.look_again, std::chrono::seconds(30));

  World ended = world;
  for (PodFacts& pod : ended.in.pods) pod.all_terminated = true;
  EXPECT_FALSE(Plan(ended.in).status.Is("Suspended"));
  ended.in.pods[1].all_terminated = false;
  EXPECT_TRUE(Plan(ended.in).status.Is("Suspended")) << "one of them may still train";
  ended.in.pods[1].proven_dead = true;
  EXPECT_FALSE(Plan(ended.in).status.Is("Suspended"));

  world.in.now += *out.look_again;
  EXPECT_FALSE(Plan(world.in).status.Is("Suspended")) << "they had their time";
}

}  // namespace
}  // namespace ringmaster::planner
