#include "common/membership/member_state.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

TEST(MemberStateTest, EveryPromiseIsStoredAsItIsMade) {
  Floor f(3, 1);
  f.state.Promise({2, "p2"});
  f.state.Accept({3, "p2"}, TestSuccessor(*f.view), false);
  f.state.SetStopping();
  f.state.SetStopping();
  f.state.PromiseLineage(2);
  ASSERT_EQ(f.actions.size(), 4u) << "what is stored already is not stored again";
  const PersistentState& last = std::get<Persist>(f.actions.back()).state;
  EXPECT_EQ(last.promised, (Ballot{3, "p2"}));
  EXPECT_EQ(last.accepted, (Ballot{3, "p2"}));
  EXPECT_TRUE(last.stopping);
  EXPECT_TRUE(f.state.frozen());
}

TEST(MemberStateTest, AnAcceptanceNeverLowersThePromise) {
  Floor f(3, 1);
  f.state.Promise({5, "p2"});
  f.state.Accept({0, "p0"}, TestSuccessor(*f.view), false);
  EXPECT_EQ(f.state.stored().promised, (Ballot{5, "p2"}));
}

TEST(MemberStateTest, ANewViewVoidsWhatWasPromisedAboutTheFormerOneAndKeepsTheLineage) {
  Floor f(3, 1);
  f.state.PromiseLineage(1);
  f.state.Promise({5, "p2"});
  f.state.Resign();
  EXPECT_FALSE(f.state.voting());
  f.state.EnterView(TestSuccessor(*f.view));
  EXPECT_TRUE(f.state.voting());
  EXPECT_TRUE(f.state.stored().promised.none());
  EXPECT_EQ(f.state.stored().lineage, 1u);
  EXPECT_EQ(f.state.stored().incarnation, 1u);
}

TEST(MemberStateTest, OnlyTheListedIncarnationIsInTheView) {
  PersistentState stored = StoredIn(TestView(2));
  stored.incarnation = 2;
  Floor f(stored, 1);
  EXPECT_FALSE(f.state.in_view());
  Floor unsafe(stored, 1, ClauseSet().Add(Clause::kIncarnationMatches));
  EXPECT_TRUE(unsafe.state.in_view());
}

}  // namespace
}  // namespace ringmaster::membership
