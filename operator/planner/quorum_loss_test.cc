// No view can train any more: which pods are waited for, and with which result (rule 9).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/planner/testing/stalled.h"

namespace ringmaster::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(QuorumLossPlanTest, ItBeginsWhenNobodyCanTrainAndAllOthersAreProvenDead) {
  Stalled job(4);
  job.ProvenDead(1).ProvenDead(2).ProvenDead(3);
  const Decision out = Plan(job.in);
  EXPECT_EQ(out.recover, 2u);
  EXPECT_EQ(out.first_view, nullptr);
  EXPECT_EQ(out.recover_event.reason, "QuorumLost");
  EXPECT_THAT(Reasons(out), testing::Not(testing::Contains("QuorumLost"))) << "said once";
}

TEST(QuorumLossPlanTest, ItBeginsThoughAllAreHeardWhereNoneOfThemCanTrain) {
  EXPECT_EQ(Plan(Stalled(2).in).recover, 2u);
}

TEST(QuorumLossPlanTest, NotWhileOneSaysThatItsViewTrains) {
  Stalled job(4);
  job.ProvenDead(2).ProvenDead(3).Sidecar(0).able = true;
  const Decision out = Plan(job.in);
  EXPECT_EQ(out.recover, 0u);
  EXPECT_FALSE(out.status.Is("Rebuilding") &&
               out.status.Find("Rebuilding")->reason == "WaitingForProof");
}

TEST(QuorumLossPlanTest, NotBeforeTheViewHasHadItsTime) {
  Stalled job(4);
  job.ProvenDead(1).ProvenDead(2).ProvenDead(3).Sidecar(0).unable_since = kNow - seconds(2);
  Decision out = Plan(job.in);
  EXPECT_EQ(out.recover, 0u);
  ASSERT_TRUE(out.look_again);
  EXPECT_LE(*out.look_again, seconds(3) + std::chrono::milliseconds(100));
  job.Sidecar(0).unable_since = kNow - seconds(60);
  job.in.view_since = kNow - seconds(1);
  out = Plan(job.in);
  EXPECT_EQ(out.recover, 0u) << "a view that was made a moment ago";
}

TEST(QuorumLossPlanTest, ThatNobodyTrainsIsSaidWhenItLastsAndIsNoEvent) {
  Stalled job(2);
  for (const int index : {0, 1}) job.Sidecar(index).unable_since = kNow - seconds(1);
  Decision out = Plan(job.in);
  ASSERT_TRUE(out.status.Is("Rebuilding"));
  EXPECT_EQ(out.status.Find("Rebuilding")->reason, "Stalled");
  EXPECT_EQ(out.status.Find("Rebuilding")->message,
            "no pod trains: the members of view 1.5 have 5 s to go on by themselves");
  EXPECT_FALSE(out.status.Is("Running"));
  EXPECT_THAT(Reasons(out), testing::Not(testing::Contains("Stalled")));
  EXPECT_LE(*out.look_again, seconds(4) + std::chrono::milliseconds(100));
  job.Sidecar(1).unable_since = kNow - std::chrono::milliseconds(900);
  out = Plan(job.in);
  EXPECT_FALSE(out.status.Is("Rebuilding")) << "as in most changes of the view";
  EXPECT_LE(*out.look_again, std::chrono::milliseconds(200));
}

TEST(QuorumLossPlanTest, OneSilentPodWithoutProofBlocksAndIsNamed) {
  Stalled job(4);
  job.ProvenDead(1).ProvenDead(2).Silent(3);
  job.Pod(3).deleting = true;  // that is no proof
  Decision out = Plan(job.in);
  EXPECT_EQ(out.recover, 0u);
  const api::Condition* rebuilding = out.status.Find("Rebuilding");
  ASSERT_NE(rebuilding, nullptr);
  EXPECT_EQ(rebuilding->reason, "WaitingForProof");
  EXPECT_THAT(rebuilding->message, HasSubstr("digits-worker-3 on node node-3"));
  EXPECT_FALSE(out.status.Is("Running"));
  EXPECT_EQ(out.status.state, "Rebuilding");
  EXPECT_THAT(Reasons(out), testing::Contains("WaitingForProof"));
  job.in.job.status = out.status;
  EXPECT_THAT(Reasons(Plan(job.in)), testing::Not(testing::Contains("WaitingForProof")))
      << "said once";
  job.ProvenDead(3);
  EXPECT_EQ(Plan(job.in).recover, 2u);
}

struct NoProof {
  const char* what;
  void (*make)(PodFacts& pod);
};

class NotProof : public testing::TestWithParam<NoProof> {};

TEST_P(NotProof, ItStillBlocks) {
  Stalled job(3);
  job.ProvenDead(1).Silent(2);
  GetParam().make(job.Pod(2));
  EXPECT_EQ(Plan(job.in).recover, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    QuorumLossPlanTest, NotProof,
    testing::Values(NoProof{"Silence", [](PodFacts&) {}},
                    NoProof{"Terminating", [](PodFacts& pod) { pod.deleting = true; }},
                    NoProof{"Failed", [](PodFacts& pod) { pod.phase = PodPhase::kFailed; }},
                    NoProof{"Evicted", [](PodFacts& pod) { pod.reason = "Evicted"; }},
                    NoProof{"AddressGone", [](PodFacts& pod) { pod.http.clear(); }}),
    [](const auto& info) { return std::string(info.param.what); });

TEST(QuorumLossPlanTest, APodWhoseSidecarHasNeverRegisteredCanBeInNoViewAndIsNotWaitedFor) {
  Stalled job(2);
  job.ProvenDead(1).Add(7).Pod(7).http.clear();
  std::erase_if(job.in.sidecars, [](const SidecarFacts& s) { return s.pod_uid == Uid(7); });
  EXPECT_EQ(Plan(job.in).recover, 2u);
}

TEST(QuorumLossPlanTest, NobodyIsBlamedWhileTheOperatorHasNotHeardAnybody) {
  Stalled job(3);
  job.Silent(0).Silent(1).Silent(2);
  const Decision out = Plan(job.in);
  EXPECT_EQ(out.recover, 0u);
  EXPECT_FALSE(out.status.Is("Rebuilding"));
}

TEST(QuorumLossPlanTest, ARecoveryThatWasDeletedWithItsRecordIsBegunAgainThoughOthersTrain) {
  Stalled job(3);
  job.Sidecar(0).able = true;
  job.in.view_since = kNow;
  job.in.job.status.epoch = membership::MakeEpoch(2, 0);
  EXPECT_EQ(Plan(job.in).recover, 0u) << "the record is there";
  job.in.lineage = 0;
  const Decision out = Plan(job.in);
  EXPECT_EQ(out.recover, 2u) << "or above it: the record's store knows";
  EXPECT_EQ(out.status.epoch, membership::MakeEpoch(2, 0));
  job.Silent(2);
  EXPECT_EQ(Plan(job.in).recover, 0u);
}

// ---- A new leader has no reports yet.

// The record was deleted before a view was reported, or was perhaps never created.
TEST(QuorumLossPlanTest, ALineageOfWhichNobodyKnowsAViewIsNotBegunTwice) {
  Stalled job(2);
  job.in.view = nullptr;
  job.in.lineage = 0;
  job.in.job.spec.elastic_policy.min_replicas = 2;
  for (const int index : {0, 1}) {
    job.Sidecar(index).epoch = 0;
    job.Sidecar(index).candidate.workers[0].used = false;
  }
  job.in.job.status.epoch = membership::MakeEpoch(1, 0);
  Decision out = Plan(job.in);
  EXPECT_EQ(out.first_view, nullptr);
  EXPECT_EQ(out.recover, 2u);
  EXPECT_THAT(out.status.Find("Running")->message, HasSubstr("was ever made"));
  job.Silent(1);
  out = Plan(job.in);
  EXPECT_EQ(out.recover, 0u) << "it may be in a view";
  EXPECT_EQ(out.status.Find("Running")->reason, "RecordLost");
  EXPECT_THAT(out.status.Find("Running")->message, HasSubstr("digits-worker-1 on node node-1"));
  job.Sidecar(1).connected = true;
  job.Sidecar(1).epoch = membership::MakeEpoch(1, 1);
  EXPECT_EQ(Plan(job.in).recover, 0u) << "it is in one, and tells in a moment which";
  job.in.job.status.epoch = membership::MakeEpoch(1, 2);
  EXPECT_EQ(Plan(job.in).recover, 2u) << "the job was in a later one, whose members are all dead";
  job.in.job.status.epoch = membership::MakeEpoch(1, 0);
  job.Sidecar(1).epoch = 0;
  job.in.taken_over = job.in.now;
  EXPECT_EQ(Plan(job.in).recover, 0u) << "others may be on their way to this operator";

  job.QuorumLost({0});  // the record is at lineage 2 and has no view
  job.in.taken_over = {};
  out = Plan(job.in);
  EXPECT_EQ(out.first_view, nullptr);
  EXPECT_EQ(out.status.Find("Running")->reason, "QuorumLost");
  job.QuorumLost({0, 1});
  out = Plan(job.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.first_view->epoch, membership::MakeEpoch(2, 1));
  EXPECT_EQ(out.first_view->reason, membership::Reason::kBootstrap);
  EXPECT_THAT(PodsOf(out.first_view), ElementsAre("digits-worker-0", "digits-worker-1"));
  // The job has never trained, so nothing is lost and nothing begins again.
  EXPECT_THAT(Reasons(out), testing::Not(testing::Contains("StartedAgain")));
  EXPECT_THAT(out.status.Find("Rebuilding")->message, HasSubstr("bootstraps again"));
  job.in.job.status = out.status;
  job.in.view = out.first_view;
  EXPECT_EQ(Plan(job.in).status.restarts_from_checkpoint, 0);
}

TEST(QuorumLossPlanTest, AViewThatIsOnlyReportedWhenAskedGoesOn) {
  Stalled job(2);
  const membership::ViewPtr view = job.in.view;
  job.QuorumLost({0, 1});
  job.in.view = nullptr;
  const Decision out = Plan(job.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.first_view->parent, view->epoch);
  EXPECT_EQ(out.first_view->reason, membership::Reason::kQuorumRecovered);
}

TEST(QuorumLossPlanTest, OnceBegunEverybodyIsAskedAndHeard) {
  Stalled job(4);
  job.ProvenDead(2).ProvenDead(3).QuorumLost({0});
  Decision out = Plan(job.in);
  EXPECT_EQ(out.first_view, nullptr);
  std::vector<std::string> asked;
  for (const PodNotice& sent : out.notices) {
    const auto* notice = std::get_if<RecoverNotice>(&sent.notice);
    if (notice == nullptr) continue;
    EXPECT_EQ(notice->lineage, 2u);
    EXPECT_FALSE(notice->fresh_workers);
    asked.push_back(sent.pod_uid);
  }
  EXPECT_THAT(asked, ElementsAre("uid-0", "uid-1"));
  EXPECT_EQ(out.status.Find("Rebuilding")->reason, "QuorumLost") << "it is heard, and will answer";
  EXPECT_THAT(out.status.Find("Rebuilding")->message, HasSubstr("digits-worker-1"));
  EXPECT_THAT(Reasons(out), testing::Not(testing::Contains("QuorumLost")))
      << "that it has begun was said when it did";
  job.Silent(1);
  out = Plan(job.in);
  EXPECT_EQ(out.status.Find("Rebuilding")->reason, "WaitingForProof");
  EXPECT_THAT(out.status.Find("Rebuilding")->message, HasSubstr("and digits-worker-1 on node"));
  job.Sidecar(1).connected = true;
  job.QuorumLost({0, 1});
  out = Plan(job.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.first_view->epoch, membership::MakeEpoch(2, 1));
  EXPECT_THAT(PodsOf(out.first_view), ElementsAre("digits-worker-0", "digits-worker-1"));
  EXPECT_THAT(Reasons(out), testing::Contains("QuorumRecovered"));
}

std::string Message(const Decision& out, const std::string& reason) {
  for (const Event& event : out.events) {
    if (event.reason == reason) return event.message;
  }
  return "";
}

TEST(QuorumLossPlanTest, WhereTheStepsThatAreLostAreCountedIsSaid) {
  Stalled job(3);
  job.QuorumLost({0, 1}).ProvenDead(2);
  const std::string said = Message(Plan(job.in), "QuorumRecovered");
  EXPECT_THAT(said, HasSubstr("2 pods as epoch 2.1, from epoch 1.5, the newest that is known"));
  EXPECT_THAT(said, HasSubstr("status.lastRebuild.stepsLost says how many"));
}

TEST(QuorumLossPlanTest, StepsThatNobodyWhoLivesHasCountedAreSaidToBeSo) {
  Stalled job(3);
  job.QuorumLost({0}).ProvenDead(1).ProvenDead(2);
  // Pod 0 was cut off when the two others continued.
  membership::View newer =
      membership::BootstrapView({job.Sidecar(1).candidate, job.Sidecar(2).candidate}, 1);
  newer.parent = job.in.view->epoch;
  newer.epoch = newer.parent + 1;
  job.in.view = std::make_shared<const membership::View>(newer);
  const Decision out = Plan(job.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.first_view->parent, membership::MakeEpoch(1, 5));
  const std::string said = Message(out, "QuorumRecovered");
  EXPECT_THAT(said, HasSubstr("the steps of epoch 1.6 are lost with digits-worker-1, "
                              "digits-worker-2. status.stepsLost is without them"));
}

TEST(QuorumLossPlanTest, AReportOfAPodThatDiedSinceCountsForNothing) {
  Stalled job(3);
  job.QuorumLost({0, 1}).ProvenDead(1).ProvenDead(2);
  EXPECT_THAT(PodsOf(Plan(job.in).first_view), ElementsAre("digits-worker-0"));
}

// A machine that is switched off closes no connection: for a while its stream stays open, with its
// last report.
TEST(QuorumLossPlanTest, AProofInTheStatusCountsWhenTheObjectIsGoneAndTheStreamStillStands) {
  Stalled job(4);
  job.ProvenDead(1).ProvenDead(2).Sidecar(3).able = true;
  std::erase_if(job.in.pods, [](const PodFacts& pod) { return pod.index == 3; });
  EXPECT_EQ(Plan(job.in).recover, 0u) << "its view trains, for all anybody knows";
  job.in.job.status.proven_dead = {Uid(3)};
  EXPECT_EQ(Plan(job.in).recover, 2u);
  const Decision out = Plan(job.QuorumLost({0}).in);
  ASSERT_NE(out.first_view, nullptr) << "it is not waited for";
  EXPECT_THAT(PodsOf(out.first_view), ElementsAre("digits-worker-0"));
}

// The taint that proved the death was removed, or this pod is from an outdated cache.
TEST(QuorumLossPlanTest, AProofInTheStatusCountsWhateverThePodsObjectSaysNow) {
  Stalled job(4);
  job.ProvenDead(1).ProvenDead(2).Silent(3);
  EXPECT_EQ(Plan(job.in).recover, 0u);
  job.in.job.status.proven_dead = {Uid(3)};
  EXPECT_EQ(Plan(job.in).recover, 2u);
  EXPECT_NE(Plan(job.QuorumLost({0}).in).first_view, nullptr);
}

TEST(QuorumLossPlanTest, APodThatAppearedMeanwhileIsAskedToo) {
  Stalled job(2);
  job.ProvenDead(1).QuorumLost({0}).Add(5);
  const QuorumRecovery& end = EvaluateRecovery(job.in);
  EXPECT_THAT(end.waits, ElementsAre("digits-worker-5 on node node-5"));
  EXPECT_EQ(end.view, nullptr);
}

TEST(QuorumLossPlanTest, WithRestartFromCheckpointTheSilentAreNotWaitedForAndThatIsSaid) {
  Stalled job(4);
  job.ProvenDead(1).ProvenDead(2).Silent(3).Fork();
  EXPECT_EQ(Plan(job.in).recover, 2u);
  const Decision out = Plan(job.QuorumLost({0}).in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_THAT(PodsOf(out.first_view), ElementsAre("digits-worker-0"));
  EXPECT_THAT(Reasons(out), testing::Contains("ForkPossible"));
}

TEST(QuorumLossPlanTest, ThoseWhoCanBeHeardAreWaitedForUnderEitherPolicy) {
  Stalled job(3);
  job.ProvenDead(2).Fork().QuorumLost({0});
  EXPECT_EQ(Plan(job.in).first_view, nullptr);
}

// Only that these pods are in the view is known.
Stalled& Unheard(Stalled& job, const std::vector<int>& indexes) {
  for (const int index : indexes) {
    std::erase_if(job.in.sidecars, [&](const SidecarFacts& s) { return s.pod_uid == Uid(index); });
  }
  return job;
}
Stalled& Removed(Stalled& job, const std::vector<int>& indexes) {
  for (const int index : indexes) {
    std::erase_if(job.in.pods, [&](const PodFacts& p) { return p.index == index; });
  }
  return job;
}

TEST(QuorumLossPlanTest, PodsThatHaveOnlyFailedLeaveTheViewItsTime) {
  Stalled job(2);
  job.Silent(0).Silent(1).Fork().in.view_since = kNow;
  for (PodFacts& pod : job.in.pods) {
    pod.phase = PodPhase::kFailed;
    pod.deleting = true;
  }
  const Decision out = Plan(job.in);
  EXPECT_EQ(out.recover, 0u);
  EXPECT_TRUE(out.look_again);
}

TEST(QuorumLossPlanTest, AMemberThatIsConnectedIsNotDeadThoughTheCacheLacksIt) {
  Stalled job(2);
  job.ProvenDead(0).Sidecar(1).unable_since = kNow;
  Removed(job, {1});
  EXPECT_EQ(Plan(job.in).recover, 0u);
}

TEST(QuorumLossPlanTest, MembersWhoseObjectsAreGoneHaveLeftForGood) {
  Stalled job(2);
  job.Silent(0).Silent(1).in.view_since = kNow;
  Removed(job, {0, 1});
  EXPECT_EQ(Plan(job.in).recover, 2u);
}

struct Newcomer {
  const char* what;
  void (*make)(Stalled& job);
};

class SilentNewcomer : public testing::TestWithParam<Newcomer> {};

TEST_P(SilentNewcomer, MayBeInAViewAndBlocks) {
  Stalled job(2);
  job.ProvenDead(1).Add(7).Silent(7);
  GetParam().make(job);
  EXPECT_EQ(Plan(job.in).recover, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    QuorumLossPlanTest, SilentNewcomer,
    testing::Values(Newcomer{"NotMarkedYet", [](Stalled& job) { job.Pod(7).http.clear(); }},
                    Newcomer{"MarkedByAFormerOperator", [](Stalled& job) { Unheard(job, {7}); }}),
    [](const auto& info) { return std::string(info.param.what); });

TEST(QuorumLossPlanTest, AMemberOfWhichNothingElseIsKnownBlocks) {
  Stalled job(3);
  job.ProvenDead(1).Pod(2).http.clear();
  Unheard(job, {2});
  EXPECT_EQ(Plan(job.in).recover, 0u);
}

TEST(QuorumLossPlanTest, WhatASidecarSaidBeforeItWentCountsNoMore) {
  Stalled job(2);
  job.ProvenDead(1).Sidecar(1).able = true;
  EXPECT_EQ(Plan(job.in).recover, 2u);
}

TEST(QuorumLossPlanTest, APodThatEndedUnheardIsReasonEnoughToSayWhatIsMissing) {
  Stalled job(2);
  job.Silent(0).Silent(1).Pod(1).phase = PodPhase::kFailed;
  const Decision out = Plan(job.in);
  ASSERT_NE(out.status.Find("Rebuilding"), nullptr);
  EXPECT_EQ(out.status.Find("Rebuilding")->reason, "WaitingForProof");
}

TEST(QuorumLossPlanTest, WhenAnotherOneIsWaitedForThatIsSaid) {
  Stalled job(4);
  job.ProvenDead(1).Silent(2).Silent(3);
  job.in.job.status = Plan(job.in).status;
  job.ProvenDead(3);
  EXPECT_THAT(Reasons(Plan(job.in)), testing::Contains("WaitingForProof"));
}

TEST(QuorumLossPlanTest, TheNewLineageIsAboveTheViewsWhateverTheRecordSays) {
  Stalled job(2);
  job.ProvenDead(1).in.lineage = 0;
  EXPECT_EQ(Plan(job.in).recover, 2u);
}

TEST(QuorumLossPlanTest, AJobThatFinishesNeedsNoOtherView) {
  Stalled job(2);
  job.ProvenDead(1).Sidecar(0).finished_epoch = job.in.view->epoch;
  EXPECT_EQ(Plan(job.in).recover, 0u);
}

TEST(QuorumLossPlanTest, OneThatIsConnectedIsHeardThoughTheCacheLacksItsPod) {
  Stalled job(2);
  Removed(job.ProvenDead(1).QuorumLost({0}).Add(5), {5});
  EXPECT_THAT(EvaluateRecovery(job.in).waits, ElementsAre("digits-worker-5"));
  job.Sidecar(5).connected = false;
  EXPECT_THAT(EvaluateRecovery(job.in).waits, IsEmpty());
}

TEST(QuorumLossPlanTest, AReportForAnEarlierLineageIsNoReport) {
  Stalled job(2);
  job.Silent(1).Fork().QuorumLost({0, 1}).Sidecar(1).report->lineage = 1;
  const QuorumRecovery& end = EvaluateRecovery(job.in);
  EXPECT_THAT(end.waits, IsEmpty());
  EXPECT_THAT(end.ignored, ElementsAre("digits-worker-1 on node node-1"));
}

TEST(QuorumLossPlanTest, NobodyIsSentIntoAViewThatIsGivenUpButItsOwnMembers) {
  Stalled job(3);
  job.ProvenDead(2).Add(5).QuorumLost({}).Sidecar(0).epoch = 0;
  std::vector<std::string> told;
  for (const PodNotice& sent : Plan(job.in).notices) {
    if (std::holds_alternative<ViewDecidedNotice>(sent.notice)) told.push_back(sent.pod_uid);
  }
  EXPECT_THAT(told, ElementsAre("uid-0"));
}

}  // namespace
}  // namespace ringmaster::planner
