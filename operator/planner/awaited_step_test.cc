// Drains and joins that wait for the end of a step that does not come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/testing/nodes.h"
#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const char kSays[] = "NoStepEnds";

// Pod 1 of three has been asked to leave, and since then all members have waited for the end of a
// step.
World Drained() {
  World world = World::Training(3);
  world.Pod(1).drain_reason = "Requested";
  world.Pod(1).drain_since = kNow;
  for (SidecarFacts& sidecar : world.in.sidecars) sidecar.step_awaited_since = kNow;
  world.in.now += seconds(10);
  return world;
}

std::string MessageOf(const Decision& out) {
  const api::Condition* condition = out.status.Find(kSays);
  return condition != nullptr && condition->status ? condition->message : "";
}

std::string EventOf(const Decision& out, const std::string& reason) {
  for (const Event& event : out.events) {
    if (event.reason == reason) return event.message;
  }
  return "";
}

TEST(AwaitedStepTest, ADrainThatNoStepsEndLetsHappenIsSaidOnceAndWhenItIsOver) {
  World world = Drained();
  Decision out = Plan(world.in);
  const std::string said =
      "no step has ended since 2026-01-31T12:00:00Z: the drain of digits-worker-1 waits for the "
      "next state.commit() or optimizer.step()";
  EXPECT_EQ(MessageOf(out), said);
  EXPECT_EQ(EventOf(out, kSays), said);
  EXPECT_TRUE(out.status.Is("Running")) << "a long step looks the same";
  world.in.job.status = out.status;
  world.in.now += seconds(1);
  EXPECT_EQ(EventOf(Plan(world.in), kSays), "") << "once";
  for (SidecarFacts& sidecar : world.in.sidecars) sidecar.step_awaited_since.reset();
  out = Plan(world.in);
  EXPECT_FALSE(out.status.Is(kSays));
  EXPECT_EQ(out.status.Find(kSays)->reason, "NothingWaits");
}

TEST(AwaitedStepTest, AJoinIsSaidToo) {
  World world = World::Training(1);
  world.in.job.spec.worker.replicas = 2;
  world.Running(2).Ready(2);
  world.Sidecar(0).step_awaited_since = kNow - seconds(10);
  EXPECT_THAT(MessageOf(Plan(world.in)), HasSubstr(": the join of digits-worker-2 waits for the"));
  world.Sidecar(2).candidate.workers[0].loads = false;
  EXPECT_EQ(MessageOf(Plan(world.in)), "") << "that one is told why it can't join";
}

TEST(AwaitedStepTest, ADrainAndTheJoinOfItsReplacementAreOneMessage) {
  World world = Drained();
  world.Running(3).Ready(3);
  EXPECT_THAT(MessageOf(Plan(world.in)),
              HasSubstr(": the drain of digits-worker-1 and the join of digits-worker-3 wait for"));
}

TEST(AwaitedStepTest, AWorkerThatWasStartedAgainInAMemberWaitsToo) {
  World world = World::Training(2);
  world.Sidecar(0).step_awaited_since = kNow - seconds(10);
  world.Sidecar(1).candidate.workers[0].incarnation = 2;
  EXPECT_THAT(MessageOf(Plan(world.in)), HasSubstr("the join of digits-worker-1 waits"));
}

TEST(AwaitedStepTest, ALongStepIsNotSaidAtOnceButInTime) {
  World world = Drained();
  world.in.now = kNow + seconds(9);
  const Decision out = Plan(world.in);
  EXPECT_EQ(MessageOf(out), "");
  ASSERT_TRUE(out.look_again);
  EXPECT_LE(*out.look_again, milliseconds(1'100));
}

TEST(AwaitedStepTest, WhereNobodyWaitsOrNobodySaysSoNothingIsSaid) {
  World nobody_leaves = World::Training(2);
  nobody_leaves.Sidecar(0).step_awaited_since = kNow - seconds(60);
  EXPECT_EQ(MessageOf(Plan(nobody_leaves.in)), "");

  World steps = Drained();
  for (SidecarFacts& sidecar : steps.in.sidecars) sidecar.step_awaited_since.reset();
  EXPECT_EQ(MessageOf(Plan(steps.in)), "");

  World silent = Drained();
  for (SidecarFacts& sidecar : silent.in.sidecars) sidecar.connected = false;
  EXPECT_EQ(MessageOf(Plan(silent.in)), "") << "what it said is of before";

  World another_view = Drained();
  for (SidecarFacts& sidecar : another_view.in.sidecars) --sidecar.epoch;
  EXPECT_EQ(MessageOf(Plan(another_view.in)), "");

  World suspended = Drained();
  suspended.in.job.spec.run_policy.suspend = true;
  EXPECT_EQ(MessageOf(Plan(suspended.in)), "");
}

TEST(AwaitedStepTest, AHeldDrainIsNotToldToItsPodYetButTheJoinIs) {
  World world = World::Training(1);
  world.Pod(0).drain_reason = "Requested";  // the last pod with the state: it is not marked
  world.Running(1).Ready(1);
  world.Sidecar(0).step_awaited_since = kNow - seconds(10);
  const Decision out = Plan(world.in);
  EXPECT_TRUE(out.status.Is("DrainHeld"));
  EXPECT_THAT(MessageOf(out), HasSubstr(": the join of digits-worker-1 waits"));
}

TEST(DrainGraceOverTest, SaysTheCause) {
  World world = Drained();
  world.in.now = kNow + seconds(30);
  const auto event = [&world] { return EventOf(Plan(world.in), "DrainGraceOver"); };
  const std::string deleted =
      "pod digits-worker-1 did not leave the ring within 30 s and is deleted: ";
  EXPECT_EQ(event(), deleted + "no step has ended since 2026-01-31T12:00:00Z");

  world.Sidecar(0).stalls = {{.tensor = "x", .asked = 1, .missing = {1}, .pods = {"a"}}};
  world.Sidecar(0).stalls_at = kNow;
  EXPECT_EQ(event(), deleted +
                         "no step has ended since 2026-01-31T12:00:00Z; 'x': asked for by 1 rank, "
                         "not by rank 1 (a), since 2026-01-31T12:00:00Z");

  world.Sidecar(0).stalls.clear();
  for (SidecarFacts& sidecar : world.in.sidecars) sidecar.step_awaited_since.reset();
  EXPECT_EQ(event(), deleted + "its sidecar has not said why (does it stand still?)");
  world.Sidecar(1).connected = false;
  EXPECT_EQ(event(), deleted + "its sidecar has no connection to the operator");
}

TEST(DrainGraceOverTest, ADrainThatInterruptedAStepSaysSoWithItsCause) {
  World world = Drained();
  world.in.job.status = Plan(world.in).status;
  membership::View view = *world.in.view;
  ++view.epoch;
  view.reason = membership::Reason::kPodDrained;
  world.in.view = std::make_shared<const membership::View>(view);
  EXPECT_THAT(EventOf(Plan(world.in), "PodDrained"),
              HasSubstr("; who left did so in the middle of a step (no step has ended since "));
  view.planned = true;
  world.in.view = std::make_shared<const membership::View>(view);
  EXPECT_THAT(EventOf(Plan(world.in), "PodDrained"), Not(HasSubstr("in the middle")));
}

}  // namespace
}  // namespace ringmaster::planner
