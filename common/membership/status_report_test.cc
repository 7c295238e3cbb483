#include "common/membership/status_report.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct NoSuccessor : SuccessorSource {
  ViewPtr Successor(bool) const override { return nullptr; }
};

struct Reporting : Floor {
  explicit Reporting(int self) : Floor(3, self) {}
  Strings Check() {
    report.Renew();
    report.Check();
    return Take();
  }
  NoSuccessor source;
  Drains drains{"p" + std::to_string(state.self())};
  PlannedChange plan{{&state, &workers, &outbox}, Timers{}, {}};
  Succession succession{{&state, &peers, &ranks, &workers, &source, &outbox}, Config{}};
  StatusReport report{{&state, &peers, &ranks, &workers, &plan, &drains, &succession, &outbox},
                      retry};
};

TEST(StatusReportTest, TheCoordinatorHearsWhatAMemberKnows) {
  Reporting f(1);
  EXPECT_EQ(f.Check(), Strings{});
  f.workers.Update({});
  f.ranks.UpdateOwn(1, f.workers);
  f.peers.Suspect("p2");
  f.plan.SetOwnBoundary();
  f.drains.Add({"p1"});
  EXPECT_EQ(f.Check(),
            (Strings{"workersLost p0", "workersLost p2", "suspect p0", "boundary p0", "leave p0"}));
}

// Except for its lost workers, which all members must know: they may have been the last ones that
// held the state.
TEST(StatusReportTest, TheCoordinatorItselfHasNobodyToTell) {
  Reporting f(0);
  f.workers.Update({});
  f.ranks.UpdateOwn(0, f.workers);
  EXPECT_EQ(f.Check(), (Strings{"workersLost p1", "workersLost p2"}));
  f.ranks.EnterView(f.state.stored().view);
  f.peers.Suspect("p2");
  f.drains.Add({"p1"});
  EXPECT_EQ(f.Check(), Strings{});
}

TEST(StatusReportTest, ASilentCoordinatorIsNotToldAboutSilence) {
  Reporting f(1);
  f.peers.Suspect("p0");
  EXPECT_EQ(f.Check(), Strings{});
}

TEST(StatusReportTest, ABrokenLinkIsTheCoordinatorsToJudgeItsOwnToo) {
  Reporting f(1);
  f.peers.SetLinkBroken({});
  EXPECT_EQ(f.Check(), Strings{"suspect p0"});
  f.peers.SetLinkBroken({"p0"});
  EXPECT_EQ(f.Check(), Strings{"suspect p0"});
}

TEST(StatusReportTest, AResignationIsRepeatedToAll) {
  Reporting f(1);
  f.state.Resign();
  f.Take();
  EXPECT_EQ(f.Check(), (Strings{"resign p0", "resign p2"}));
  f.report.Check();
  EXPECT_EQ(f.Take(), Strings{}) << "not at once";
  f.Pass(f.retry);
  f.report.Check();
  EXPECT_EQ(f.Take(), (Strings{"resign p0", "resign p2"}));
}

}  // namespace
}  // namespace ringmaster::membership
