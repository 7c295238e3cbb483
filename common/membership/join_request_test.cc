#include "common/membership/join_request.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct Outsider : Floor {
  explicit Outsider(int self, std::uint64_t incarnation = 1)
      : Floor(Stored(incarnation), self),
        drains("p" + std::to_string(self)),
        request({&state, &workers, &drains, &applicants, &outbox},
                TestCandidate(self, incarnation).pod, timers) {}
  static PersistentState Stored(std::uint64_t incarnation) {
    PersistentState stored = StoredIn(TestView(3));
    stored.incarnation = incarnation;
    return stored;
  }
  Strings CheckAfter(Duration time) {
    Pass(time);
    request.Check();
    return Take();
  }
  Timers timers;
  Drains drains;
  Applicants applicants{{&state, &peers, &drains, &outbox}, timers};
  JoinRequest request;
};

TEST(JoinRequestTest, TheCoordinatorIsAskedAndAfterTwoTriesOthersToo) {
  Outsider f(7);
  f.workers.Update(TestCandidate(7).workers);
  EXPECT_EQ(f.CheckAfter({}), (Strings{"join p0"}));
  EXPECT_EQ(f.CheckAfter({}), Strings{}) << "not at once again";
  EXPECT_EQ(f.CheckAfter(f.timers.join_retry), (Strings{"join p0"}));
  EXPECT_EQ(f.CheckAfter(f.timers.join_retry), (Strings{"join p0", "join p2"}));
}

TEST(JoinRequestTest, NothingIsAskedUntilAllWorkersAreReady) {
  Outsider f(7);
  f.workers.Update({{0, 1, "", "", true}, {1, 1, "", "", false}});
  EXPECT_EQ(f.CheckAfter({}), Strings{});
  f.workers.Update({{0, 1, "", "", true}, {1, 1, "", "", true}});
  EXPECT_EQ(f.CheckAfter({}), (Strings{"join p0"}));
  f.drains.Add({"p7"});
  EXPECT_EQ(f.CheckAfter(f.timers.join_retry), Strings{}) << "it leaves";
}

TEST(JoinRequestTest, AWorkerThatCannotTakeTheStateIsNotAskedFor) {
  Outsider f(7);
  Worker stateless{0, 1, "", "", true};
  stateless.loads = false;
  f.workers.Update({stateless});
  EXPECT_EQ(f.CheckAfter({}), Strings{});
  f.workers.Update({stateless, {1, 1, "", "", true}});
  f.request.Check();
  ASSERT_FALSE(f.actions.empty());
  EXPECT_EQ(std::get<Send>(f.actions.back()).message.candidate.workers.size(), 1u);
}

TEST(JoinRequestTest, APodThatHasLostItsFileSaysSoToAllEvenWithoutWorkers) {
  Outsider f(1, 2);
  EXPECT_EQ(f.CheckAfter({}), (Strings{"join p0", "join p2"}));
}

TEST(JoinRequestTest, TheCoordinatorPutsItsOwnNewWorkersOnItsList) {
  Outsider f(0);
  f.workers.Update({{0, 1, "", "", true}, {1, 5, "", "", true}});
  EXPECT_EQ(f.CheckAfter({}), Strings{});
  ASSERT_EQ(f.applicants.Admissible().size(), 1u);
  EXPECT_EQ(f.applicants.Admissible()[0].candidate.workers.size(), 1u) << "one has a rank already";
}

TEST(JoinRequestTest, TheReasonTellsHowThePodGotOutOfTheView) {
  Outsider f(7);
  f.workers.Update(TestCandidate(7).workers);
  f.request.EnterView(true, false);
  f.request.Check();
  EXPECT_EQ(std::get<Send>(f.actions.back()).message.reason, Reason::kRejoin);
  f.request.EnterView(true, true);
  f.request.Check();
  EXPECT_EQ(std::get<Send>(f.actions.back()).message.reason, Reason::kWorkerJoined);
}

}  // namespace
}  // namespace ringmaster::membership
