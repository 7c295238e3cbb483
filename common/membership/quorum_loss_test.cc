#include "common/membership/quorum_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "common/membership/message_json.h"

namespace ringmaster::membership {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// View 1.`number` of these pods, with one worker each; those in `joined` get the state in it.
ViewPtr MakeView(std::uint64_t number, const std::vector<std::string>& pods,
                 const std::vector<std::string>& joined = {}) {
  View view;
  view.epoch = MakeEpoch(1, number);
  view.parent = view.epoch - 1;
  view.coordinator = pods.front();
  for (const std::string& uid : pods) {
    const bool joins = std::find(joined.begin(), joined.end(), uid) != joined.end();
    view.ranks.push_back({static_cast<std::uint32_t>(view.pods.size()), 0, 1, "", "", joins});
    view.pods.push_back({uid, uid, 1, "", "", uid + ":1", "", ""});
  }
  return std::make_shared<const View>(view);
}

// The reports of a job's pods, and which pods have to report.
class Hearing {
 public:
  Hearing& Reports(const std::string& uid, ViewPtr view) {
    RecoveryReport& report = reports_.emplace_back();
    report.lineage = 2;
    report.view = std::move(view);
    report.candidate.pod = {uid, uid, 1, "", "", uid + ":1", "", ""};
    report.candidate.workers = {{0, 1, "", "", true, true}};
    pods_.push_back(uid);
    return *this;
  }
  Hearing& Silent(const std::string& uid) {
    pods_.push_back(uid);
    return *this;
  }
  RecoveryReport& last() { return reports_.back(); }

  RecoveryResult Evaluate(ClauseSet without = {}) const {
    std::vector<const RecoveryReport*> reports;
    for (const RecoveryReport& report : reports_) reports.push_back(&report);
    return RecoverFromQuorumLoss(2, pods_, reports, sizes_, without);
  }

 private:
  std::deque<RecoveryReport> reports_;
  std::vector<std::string> pods_;

 public:
  Sizes sizes_;
};

std::vector<std::string> PodsOf(const ViewPtr& view) {
  std::vector<std::string> uids;
  for (const Pod& pod : view->pods) uids.push_back(pod.uid);
  return uids;
}

TEST(QuorumLossTest, ThoseWhoReportedGoOnInANewLineage) {
  const ViewPtr view = MakeView(7, {"a", "b", "c", "d"});
  const RecoveryResult result = Hearing().Reports("b", view).Reports("d", view).Evaluate();
  ASSERT_NE(result.view, nullptr);
  EXPECT_EQ(result.view->epoch, MakeEpoch(2, 1));
  EXPECT_EQ(result.view->parent, MakeEpoch(1, 7));
  EXPECT_EQ(result.view->reason, Reason::kQuorumRecovered);
  EXPECT_FALSE(result.view->planned);
  EXPECT_THAT(PodsOf(result.view), ElementsAre("b", "d"));
  EXPECT_EQ(result.view->coordinator, "b");
}

TEST(QuorumLossTest, OneSilentPodBlocks) {
  const ViewPtr view = MakeView(7, {"a", "b", "c"});
  const RecoveryResult result = Hearing().Reports("a", view).Silent("b").Evaluate();
  EXPECT_THAT(result.silent, ElementsAre("b"));
  EXPECT_EQ(result.view, nullptr);
  EXPECT_FALSE(result.nobody_holds);
}

TEST(QuorumLossTest, AReportForALowerLineageIsNone) {
  Hearing hearing;
  hearing.Reports("a", MakeView(7, {"a", "b"})).last().lineage = 1;
  EXPECT_THAT(hearing.Evaluate().silent, ElementsAre("a"));
}

TEST(QuorumLossTest, TheHighestReportedViewCounts) {
  const RecoveryResult result = Hearing()
                                    .Reports("a", MakeView(7, {"a", "b", "c"}))
                                    .Reports("b", MakeView(8, {"b", "c"}))
                                    .Evaluate();
  EXPECT_THAT(PodsOf(result.view), ElementsAre("b"));
  EXPECT_EQ(result.view->parent, MakeEpoch(1, 8));
}

TEST(QuorumLossTest, AMemberOfTheHighestViewThatHasNotHeardOfItStays) {
  // "a" has the state of view 7, and view 8 can't have completed an operation without "a".
  const RecoveryResult result = Hearing()
                                    .Reports("a", MakeView(7, {"a", "b", "c"}))
                                    .Reports("b", MakeView(8, {"a", "b"}))
                                    .Evaluate();
  EXPECT_THAT(PodsOf(result.view), ElementsAre("a", "b"));
}

TEST(QuorumLossTest, WhoHasResignedOrLostItsWorkersIsNoMember) {
  const ViewPtr view = MakeView(7, {"a", "b", "c"});
  Hearing hearing;
  hearing.Reports("a", view).last().resigned = true;
  hearing.Reports("b", view).last().candidate.workers = {{0, 2, "", "", true, false}};
  hearing.Reports("c", view);
  EXPECT_THAT(PodsOf(hearing.Evaluate().view), ElementsAre("c"));
}

TEST(QuorumLossTest, AnotherIncarnationOfAPodIsNoMember) {
  const ViewPtr view = MakeView(7, {"a", "b"});
  Hearing hearing;
  hearing.Reports("a", view).last().candidate.pod.incarnation = 2;
  hearing.Reports("b", view);
  EXPECT_THAT(PodsOf(hearing.Evaluate().view), ElementsAre("b"));
}

TEST(QuorumLossTest, AWorkerThatHoldsTheStateStaysThoughItsSidecarHasAnotherIncarnation) {
  const ViewPtr view = MakeView(7, {"a", "b"});
  Hearing hearing;
  hearing.Reports("a", view).last().candidate.pod.incarnation = 2;
  hearing.last().candidate.pod.address = "a:2";
  hearing.last().candidate.workers[0].holds = view->epoch;
  const RecoveryResult result = hearing.Evaluate();
  ASSERT_NE(result.view, nullptr);
  ASSERT_THAT(PodsOf(result.view), ElementsAre("a"));
  EXPECT_EQ(result.view->pods[0].incarnation, 2u);
  EXPECT_EQ(result.view->pods[0].address, "a:2");
  EXPECT_FALSE(result.view->ranks[0].joined);
}

// What it held in an earlier view is void: the others went on without it.
TEST(QuorumLossTest, AWorkerOfAnotherIncarnationThatMissedTheViewIsNoMember) {
  const ViewPtr view = MakeView(7, {"a", "b"});
  Hearing hearing;
  hearing.Reports("a", view).last().candidate.pod.incarnation = 2;
  hearing.last().candidate.workers[0].holds = view->epoch - 1;
  EXPECT_TRUE(hearing.Evaluate().nobody_holds);
}

TEST(QuorumLossTest, AViewOfJoinersAloneGivesWayToOneWhoseMembersHoldTheState) {
  const RecoveryResult result = Hearing()
                                    .Reports("c", MakeView(7, {"a", "b", "c"}))
                                    .Reports("j", MakeView(8, {"a", "b", "j"}, {"j"}))
                                    .Evaluate();
  EXPECT_THAT(PodsOf(result.view), ElementsAre("c"));
}

TEST(QuorumLossTest, JoinersOfAViewThatHasRunHoldTheState) {
  Hearing hearing;
  hearing.Reports("j", MakeView(8, {"a", "j"}, {"j"})).last().ran = true;
  const RecoveryResult result = hearing.Evaluate();
  EXPECT_THAT(PodsOf(result.view), ElementsAre("j"));
  EXPECT_FALSE(result.view->ranks[0].joined);
}

// The donors have died before the first operation of the view, so nobody else has the state.
TEST(QuorumLossTest, AJoinerThatHasGotTheStateHoldsIt) {
  const ViewPtr view = MakeView(8, {"a", "j", "k"}, {"j", "k"});
  Hearing hearing;
  hearing.Reports("j", view).last().candidate.workers[0].holds = view->epoch;
  hearing.Reports("k", view).last().candidate.workers[0].holds = view->epoch - 1;
  const RecoveryResult result = hearing.Evaluate();
  ASSERT_NE(result.view, nullptr);
  EXPECT_THAT(PodsOf(result.view), ElementsAre("j", "k"));
  EXPECT_FALSE(result.view->ranks[0].joined);
  EXPECT_TRUE(result.view->ranks[1].joined) << "what it had in the view before is void";
}

TEST(QuorumLossTest, WhereNobodyHoldsTheStateTheJobBeginsAgain) {
  const RecoveryResult joiner =
      Hearing().Reports("j", MakeView(8, {"a", "j"}, {"j"})).Reports("k", nullptr).Evaluate();
  EXPECT_EQ(joiner.view, nullptr);
  EXPECT_TRUE(joiner.nobody_holds);
  EXPECT_THAT(joiner.silent, IsEmpty());
}

TEST(QuorumLossTest, OnlyFreshWorkersBeginAgain) {
  Candidate candidate{{"a", "a", 1, "", "", "a:1", "", ""}, {{0, 1, "", "", true, false}}};
  EXPECT_TRUE(ReadyToRestart(candidate));
  candidate.workers[0].used = true;
  EXPECT_FALSE(ReadyToRestart(candidate));
  candidate.workers[0] = {0, 2, "", "", false, false};
  EXPECT_FALSE(ReadyToRestart(candidate));
  candidate.workers.clear();
  EXPECT_FALSE(ReadyToRestart(candidate));
}

TEST(QuorumLossTest, TheRecordVotesForNoLowerLineageWhileItLooksForAFirstView) {
  const ViewPtr view = MakeView(7, {"a", "b"});
  const QuorumRecord record = BeginRecovery(NewRecord(view), 2);
  EXPECT_TRUE(QuorumLost(record));
  Message prepare;
  prepare.kind = MessageKind::kPrepare;
  prepare.view = view->epoch;
  prepare.base = view;
  prepare.ballot = {1, "a"};
  EXPECT_EQ(AnswerAsRecord(record, prepare).answer.kind, MessageKind::kDecided);
  Message decided;
  decided.kind = MessageKind::kDecided;
  decided.value = MakeView(8, {"a"});
  EXPECT_FALSE(AnswerAsRecord(record, decided).changed);
  const RecoveryResult result = Hearing().Reports("a", view).Evaluate();
  const QuorumRecord finished = FinishRecovery(record, result.view);
  EXPECT_FALSE(QuorumLost(finished));
  EXPECT_EQ(finished.view->epoch, MakeEpoch(2, 1));
}

TEST(QuorumLossTest, AReportSurvivesTheTrip) {
  Hearing hearing;
  hearing.Reports("a", MakeView(7, {"a", "b"})).last().ran = true;
  const auto again = DecodeReport(EncodeReport(hearing.last()));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again->lineage, 2);
  EXPECT_TRUE(again->ran);
  EXPECT_EQ(*again->view, *hearing.last().view);
  EXPECT_EQ(again->candidate, hearing.last().candidate);
}

TEST(QuorumLossTest, ABadReportNamesTheField) {
  const auto bad = DecodeReport(R"({"lineage": 0, "resigned": false, "ran": false,
      "candidate": {"pod": {"uid": "a", "name": "a", "incarnation": 1, "address": ""},
      "workers": []}})");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error(), "report.lineage: 0 is not above 0");
  EXPECT_EQ(DecodeReport("{}").error(),
            "report.lineage is missing; it must be an integer of at least 0 that fits");
}

TEST(QuorumLossTest, WhoHasGoneBeyondAViewIsNoMemberOfIt) {
  // In view 8 "a" began anew without its state, and no member that held it has reported 8.
  const RecoveryResult result = Hearing()
                                    .Reports("a", MakeView(8, {"a", "j"}, {"a", "j"}))
                                    .Reports("c", MakeView(7, {"a", "b", "c"}))
                                    .Evaluate();
  EXPECT_THAT(PodsOf(result.view), ElementsAre("c"));
}

TEST(QuorumLossTest, ThatAnEarlierViewHasRunGivesJoinersOfTheNextNoState) {
  Hearing hearing;
  hearing.Reports("a", MakeView(7, {"a", "b"})).last().ran = true;
  hearing.Reports("j", MakeView(8, {"a", "j"}, {"j"}));
  const RecoveryResult result = hearing.Evaluate();
  ASSERT_THAT(PodsOf(result.view), ElementsAre("a", "j"));
  EXPECT_FALSE(result.view->ranks[0].joined);
  EXPECT_TRUE(result.view->ranks[1].joined);
}

TEST(QuorumLossTest, EachWorkerIsKnownByItsSlot) {
  View two = *MakeView(7, {"a"});
  two.ranks.push_back({0, 1, 1, "", "", false});
  Hearing hearing;
  hearing.Reports("a", std::make_shared<const View>(two)).last().candidate.workers = {
      {1, 1, "", "", true, true}};
  const RecoveryResult result = hearing.Evaluate();
  ASSERT_EQ(result.view->ranks.size(), 1u);
  EXPECT_EQ(result.view->ranks[0].slot, 1u);
}

TEST(QuorumLossTest, TheRecordsLineageOnlyRises) {
  QuorumRecord record = NewRecord(MakeView(7, {"a"}));
  record.lineage = 3;
  EXPECT_EQ(BeginRecovery(record, 2).lineage, 3u);
  View first = *MakeView(1, {"a"});
  first.epoch = MakeEpoch(2, 1);
  const auto view = std::make_shared<const View>(first);
  EXPECT_EQ(FinishRecovery(record, view).lineage, 3u);
  record.lineage = 1;
  EXPECT_EQ(FinishRecovery(record, view).lineage, 2u);
}

TEST(QuorumLossTest, AJobThatBeginsAgainNamesTheViewThatWasGivenUp) {
  const ViewPtr view =
      RestartView(2, MakeEpoch(1, 7),
                  {{{"a", "a", 1, "", "", "a:1", "", ""}, {{0, 1, "", "", true, false}}}}, 1);
  EXPECT_EQ(view->parent, MakeEpoch(1, 7));
  EXPECT_EQ(view->epoch, MakeEpoch(2, 1));
}

}  // namespace
}  // namespace ringmaster::membership
