#include "operator/planner/decision_draft.h"

#include <gtest/gtest.h>

#include "operator/planner/pod_sets.h"

namespace ringmaster::planner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(DecisionDraftTest, TheEarliestTimeToLookAgainCountsAndIsNeverInThePast) {
  const Time now{std::chrono::hours(1)};
  DecisionDraft out(now);
  EXPECT_FALSE(out.look_again.has_value());
  out.LookAgainAt(now + seconds(5));
  out.LookAgainAt(now + seconds(9));
  EXPECT_EQ(*out.look_again, milliseconds(5010)) << "a little later, so that it is due then";
  out.LookAgainAt(now - seconds(5));
  EXPECT_EQ(*out.look_again, milliseconds(10));
}

TEST(PodSetsTest, APodThatIsToLeaveIsNotActiveAndOneThatHasEndedIsNowhere) {
  Snapshot in;
  in.pods = {{.name = "stays", .uid = "u0"},
             {.name = "ended", .uid = "u1"},
             {.name = "leaves", .uid = "u2"}};
  in.pods[1].phase = PodPhase::kSucceeded;
  in.pods[2].deleting = true;
  PodSets pods(in);
  ASSERT_EQ(pods.active.size(), 1U);
  EXPECT_EQ(pods.active[0]->name, "stays");
  ASSERT_EQ(pods.leaving.size(), 1U);
  EXPECT_EQ(pods.leaving[0]->name, "leaves");
  EXPECT_TRUE(pods.Stays(*pods.active[0]));
  pods.away.insert("u0");
  EXPECT_FALSE(pods.Stays(*pods.active[0])) << "nobody hears from its node";
}

}  // namespace
}  // namespace ringmaster::planner
