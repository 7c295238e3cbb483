#include "common/membership/planned_change.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct Plan : Floor {
  explicit Plan(int self, PersistentState stored = StoredIn(TestView(2)))
      : Floor(std::move(stored), self), plan({&state, &workers, &outbox}, Timers{}, {}) {}
  Message BoundaryFrom(int pod, std::uint64_t number) const {
    Message message = From(pod, MessageKind::kBoundary);
    message.number = number;
    return message;
  }
  PlannedChange plan;
};

TEST(PlannedChangeTest, ThePlanIsStoredThenAllAreArmedThenTheBoundaryIsWaitedFor) {
  Plan f(0);
  EXPECT_FALSE(f.plan.Advance(true, false)) << "nothing to change";
  EXPECT_FALSE(f.plan.begun());
  EXPECT_FALSE(f.plan.Advance(true, true));
  EXPECT_EQ(f.Take(), (Strings{"persist", "arm 1.1", "plan p1"}));
  EXPECT_TRUE(f.plan.SetOwnBoundary());
  EXPECT_FALSE(f.plan.SetOwnBoundary());
  EXPECT_FALSE(f.plan.Advance(true, true));
  f.plan.OnBoundary(f.BoundaryFrom(1, 7), 1);
  EXPECT_TRUE(f.plan.Advance(true, true));
}

TEST(PlannedChangeTest, ThePlanIsRepeatedToThoseThatAreNotAtTheBoundary) {
  Plan f(0);
  f.plan.Advance(true, true);
  f.Take();
  f.plan.Advance(true, true);
  EXPECT_EQ(f.Take(), Strings{});
  f.Pass(f.retry);
  f.plan.Advance(true, true);
  EXPECT_EQ(f.Take(), (Strings{"plan p1"}));
  EXPECT_FALSE(f.plan.Advance(false, true)) << "a fault goes first";
  EXPECT_FALSE(f.plan.repeat().at);
}

TEST(PlannedChangeTest, AMemberSaysAgainThatItStandsAtTheBoundary) {
  Plan f(1);
  Message plan = f.From(0, MessageKind::kPlan);
  plan.number = 7;
  EXPECT_FALSE(f.plan.OnPlan(plan));
  EXPECT_EQ(f.Take(), (Strings{"arm 1.1"}));
  f.plan.SetOwnBoundary();
  EXPECT_TRUE(f.plan.OnPlan(plan));
  EXPECT_EQ(f.plan.number_heard(), 7u);
}

TEST(PlannedChangeTest, ACoordinatorThatRestartedGoesOnWithThePlanThatOthersStandAt) {
  Plan f(0);
  f.plan.OnBoundary(f.BoundaryFrom(1, 7), 1);
  EXPECT_TRUE(f.plan.begun());
  EXPECT_EQ(f.Take(), (Strings{"persist", "arm 1.1"}));
  PersistentState stored = StoredIn(TestView(2));
  stored.planning = true;
  Plan restarted(0, stored);
  restarted.plan.Resume();
  EXPECT_TRUE(restarted.plan.begun());
}

}  // namespace
}  // namespace ringmaster::membership
