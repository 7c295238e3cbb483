#include "common/membership/lineage_promise.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct Asked : Floor {
  Asked() : Floor(3, 1) { workers.Update(TestCandidate(1).workers); }
  LineagePromise promise{{&state, &workers, &ranks, &outbox}, TestCandidate(1).pod, {}};
};

TEST(LineagePromiseTest, TheWorkersStopThenThePromiseIsStoredThenReported) {
  Asked f;
  f.promise.Ask(2);
  EXPECT_FALSE(f.promise.Advance());
  EXPECT_EQ(f.Take(), (Strings{"persist", "stop 2.0"}));
  f.workers.SetStopped(MakeEpoch(2, 0));
  EXPECT_TRUE(f.promise.Advance());
  EXPECT_EQ(f.Take(), (Strings{"persist", "report"}));
  EXPECT_EQ(f.state.stored().lineage, 2u);
  EXPECT_FALSE(f.promise.Advance());
}

TEST(LineagePromiseTest, AskedAgainItReportsAgainWithoutANewPromise) {
  Asked f;
  f.promise.Ask(2);
  f.workers.SetStopped(MakeEpoch(2, 0));
  f.promise.Advance();
  f.Take();
  f.promise.Ask(2);
  EXPECT_FALSE(f.promise.Advance());
  EXPECT_EQ(f.Take(), (Strings{"report"}));
}

TEST(LineagePromiseTest, ALineageThatHasBegunOrIsBelowThePromiseIsIgnored) {
  Asked f;
  f.workers.SetStopped(MakeEpoch(9, 0));
  f.promise.Ask(1);
  f.promise.Advance();
  EXPECT_EQ(f.Take(), Strings{});
  f.state.PromiseLineage(5);
  f.Take();
  f.promise.Ask(4);
  f.promise.Advance();
  EXPECT_EQ(f.Take(), Strings{});
}

TEST(LineagePromiseTest, NewWorkersAreStoppedTooAndReported) {
  Asked f;
  f.promise.Ask(2);
  f.workers.SetStopped(MakeEpoch(2, 0));
  f.promise.Advance();
  f.Take();
  f.promise.Renew();
  f.promise.Advance();
  EXPECT_EQ(f.Take(), (Strings{"stop 2.0"}));
  f.workers.SetStopped(MakeEpoch(2, 0));
  f.promise.Advance();
  EXPECT_EQ(f.Take(), (Strings{"report"}));
}

TEST(LineagePromiseTest, NothingIsReportedBeforeTheWorkersAreKnown) {
  Floor f(3, 1);
  LineagePromise promise({&f.state, &f.workers, &f.ranks, &f.outbox}, TestCandidate(1).pod, {});
  promise.Ask(2);
  EXPECT_FALSE(promise.Advance());
  EXPECT_EQ(f.Take(), Strings{});
}

}  // namespace
}  // namespace ringmaster::membership
