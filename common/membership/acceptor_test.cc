#include "common/membership/acceptor.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct Voter : Floor {
  explicit Voter(int self, PersistentState stored = StoredIn(TestView(3)))
      : Floor(std::move(stored), self),
        acceptor({&state, &peers, &ranks, &workers, &learner, &outbox}, {}),
        value(TestSuccessor(*view)) {}
  bool Prepare(Ballot ballot) {
    return acceptor.OnPrepare(From(2, MessageKind::kPrepare, std::move(ballot)));
  }
  Learner learner{{}};
  Acceptor acceptor;
  ViewPtr value;
};

TEST(AcceptorTest, APromiseIsStoredBeforeItIsSentAndKept) {
  Voter f(1);
  EXPECT_TRUE(f.Prepare({2, "p2"}));
  EXPECT_EQ(f.Take(), (Strings{"persist", "promise p2"}));
  EXPECT_TRUE(f.Prepare({2, "p2"}));
  EXPECT_EQ(f.Take(), (Strings{"promise p2"})) << "repeated, it is stored already";
  EXPECT_FALSE(f.Prepare({1, "p2"}));
  EXPECT_FALSE(f.acceptor.OnPropose({0, "p0"}, f.value, "p0"));
  EXPECT_EQ(f.Take(), (Strings{"refused p2", "refused p0"}));
}

TEST(AcceptorTest, WhoAsksOfAnOlderViewIsToldTheNewerOneButNotAVoteForIt) {
  Voter f(1);
  Message late = f.From(2, MessageKind::kAccepted, {0, "p0"});
  late.view = f.view->epoch - 1;
  late.value = f.view;
  f.acceptor.AnswerOutdated(late);
  EXPECT_EQ(f.Take(), Strings{}) << "it voted for the view that this member is in";
  late.value = TestSuccessor(*f.view);
  f.acceptor.AnswerOutdated(late);
  EXPECT_EQ(f.Take(), Strings{"decided p2"});
  late.kind = MessageKind::kPropose;
  late.value = f.view;
  f.acceptor.AnswerOutdated(late);
  EXPECT_EQ(f.Take(), Strings{"decided p2"}) << "it does not know that it was decided";
}

TEST(AcceptorTest, NothingIsAcceptedBeforeTheWorkersHaveStopped) {
  Voter f(1);
  EXPECT_TRUE(f.acceptor.OnPropose({0, "p0"}, f.value, "p0"));
  EXPECT_EQ(f.Take(), (Strings{"persist", "stop 1.1"}));
  EXPECT_FALSE(f.acceptor.AcceptPending());
  f.workers.SetStopped(f.view->epoch);
  EXPECT_TRUE(f.acceptor.AcceptPending());
  EXPECT_EQ(f.Take(), (Strings{"persist", "accepted p0"}));
  EXPECT_EQ(f.acceptor.CurrentBallot(), (Ballot{0, "p0"}));
}

TEST(AcceptorTest, AHigherPromiseMadeMeanwhileVoidsWhatWaits) {
  Voter f(1);
  f.acceptor.OnPropose({0, "p0"}, f.value, "p0");
  f.Prepare({1, "p2"});
  f.workers.SetStopped(f.view->epoch);
  f.Take();
  EXPECT_FALSE(f.acceptor.AcceptPending());
  EXPECT_EQ(f.Take(), Strings{});
}

TEST(AcceptorTest, APromiseShowsWhatWasAccepted) {
  Voter f(1);
  f.acceptor.Accept({0, "p0"}, f.value, false);
  f.actions.clear();
  f.Prepare({1, "p2"});
  const Message& promise = std::get<Send>(f.actions.back()).message;
  EXPECT_EQ(promise.accepted, (Ballot{0, "p0"}));
  EXPECT_EQ(promise.value, f.value);
}

TEST(AcceptorTest, RoundZeroIsTheCoordinatorsAlone) {
  Voter f(1);
  EXPECT_FALSE(f.acceptor.OnPropose({0, "p2"}, f.value, "p2"));
  EXPECT_FALSE(f.acceptor.RoundZeroFree());
  Voter coordinator(0);
  EXPECT_TRUE(coordinator.acceptor.RoundZeroFree());
  coordinator.acceptor.Accept({0, "p0"}, coordinator.value, false);
  EXPECT_FALSE(coordinator.acceptor.RoundZeroFree()) << "for one value";
}

TEST(AcceptorTest, AfterItsResignationAPodOnlySaysSo) {
  PersistentState stored = StoredIn(TestView(3));
  stored.resigned = true;
  Voter f(1, stored);
  EXPECT_FALSE(f.Prepare({2, "p2"}));
  EXPECT_FALSE(f.acceptor.OnPropose({0, "p0"}, f.value, "p0"));
  EXPECT_EQ(f.Take(), (Strings{"resign p2", "resign p0"}));
}

}  // namespace
}  // namespace ringmaster::membership
