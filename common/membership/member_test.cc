// The rules one by one, on two to four members.
#include "common/membership/test_job.h"

namespace ringmaster::membership {
namespace {

TEST(MemberTest, SurvivorsKeepRanksWhenTailPodLeaves) {
  Job job(3);
  job.KillWorker("p2", 0);
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1"}));
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 2));
  EXPECT_EQ(job.ViewOf("p1"), job.ViewOf("p0"));
  EXPECT_EQ(job.ViewOf("p0").reason, Reason::kWorkerLost);
  EXPECT_EQ(job["p2"].role(), Role::kJoining);
}

TEST(MemberTest, AWorkersDeathIsDecidedWithoutAnyTimeOrTheRecord) {
  Job job(2);
  TimePoint before = job.now_;
  job.KillWorker("p1", 0);
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0"}));
  EXPECT_EQ(job.now_, before);
  EXPECT_EQ(job.to_record_, 0);
}

TEST(MemberTest, ACoordinatorWhoseWorkersDieProposesTheViewWithoutItself) {
  Job job(3);
  job.KillWorker("p0", 0);
  EXPECT_EQ(job.Pods("p1"), (Uids{"p1", "p2"}));
  EXPECT_TRUE(job["p1"].is_coordinator());
  EXPECT_EQ(job["p1"].counters().campaigns, 0u);
}

TEST(MemberTest, ARestartedWorkerComesBackAsJoinerAtABoundary) {
  Job job(2);
  job.KillWorker("p0", 0);
  job.StartWorker("p0", 0, 2);
  EXPECT_EQ(job.Pods("p1"), (Uids{"p1", "p0"})) << "newcomers come last";
  const View& view = job.ViewOf("p1");
  EXPECT_EQ(view.reason, Reason::kWorkerJoined);
  EXPECT_TRUE(view.planned);
  EXPECT_TRUE(view.ranks[1].joined);
  EXPECT_EQ(view.ranks[1].incarnation, 2u);
  EXPECT_FALSE(view.ranks[0].joined);
}

TEST(MemberTest, APodThatLosesSomeOfItsWorkersStaysWithNewRanks) {
  Job job(2, 2);
  job.KillWorker("p1", 0);
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1"}));
  ASSERT_EQ(job.ViewOf("p0").ranks.size(), 3u);
  EXPECT_EQ(job.ViewOf("p0").ranks[2].slot, 1u);
  job.StartWorker("p1", 0, 2);
  EXPECT_EQ(job.ViewOf("p0").ranks.size(), 4u);
  EXPECT_TRUE(job.ViewOf("p0").ranks[3].joined);
}

TEST(MemberTest, AMajorityDropsASilentPod) {
  Job job(3);
  job.silent_.insert("p2");
  job.Give("p0", PodSuspected{"p2", "silent"});
  EXPECT_EQ(job.Pods("p1"), (Uids{"p0", "p1"}));
  EXPECT_EQ(job.ViewOf("p0").reason, Reason::kPodLost);
  EXPECT_EQ(job["p0"].counters().decided_by_majority, 1u);
}

TEST(MemberTest, TheNextInOrderCampaignsAtOnceForASilentCoordinator) {
  Job job(3);
  job.silent_.insert("p0");
  job.Give("p2", PodSuspected{"p0", "silent"});
  EXPECT_EQ(job.ViewOf("p2").epoch, MakeEpoch(1, 1)) << "p1 is ahead of p2";
  job.Give("p1", PodSuspected{"p0", "silent"});
  EXPECT_EQ(job.Pods("p1"), (Uids{"p1", "p2"}));
  EXPECT_TRUE(job["p1"].is_coordinator());
}

TEST(MemberTest, TheSecondInOrderCampaignsWhenTheFirstDoesNot) {
  Job job(4);
  job.silent_ = {"p0"};
  job.Give("p2", PodSuspected{"p0", "silent"});
  job.Pass(milliseconds(400));
  EXPECT_EQ(job.Pods("p2"), (Uids{"p1", "p2", "p3"}));
}

TEST(MemberTest, OneOfTwoPodsGoesOnWithTheRecord) {
  Job job(2);
  job.silent_ = {"p0"};
  job.Give("p1", PodSuspected{"p0", "silent"});
  EXPECT_EQ(job.Pods("p1"), (Uids{"p1"}));
  EXPECT_EQ(job["p1"].counters().decided_by_record, 1u);
  EXPECT_EQ(job.record_.view->epoch, job.ViewOf("p1").epoch) << "decided views are copied to R";
}

TEST(MemberTest, OneOfTwoPodsWaitsWhileTheRecordIsAway) {
  Job job(2);
  job.record_up_ = false;
  job.silent_ = {"p0"};
  job.Give("p1", PodSuspected{"p0", "silent"});
  job.Pass(milliseconds(3000));
  EXPECT_EQ(job.Pods("p1"), (Uids{"p0", "p1"}));
  job.record_up_ = true;
  job.Pass(milliseconds(2000));
  EXPECT_EQ(job.Pods("p1"), (Uids{"p1"}));
}

TEST(MemberTest, AMinorityDecidesNothingAndGoesOnWhenTheOthersAreHeardAgain) {
  Job job(3);
  job.silent_ = {"p1", "p2"};
  job.Give("p0", PodSuspected{"p1", "silent"});
  job.silent_ = {};
  job.Give("p0", PodHeard{"p1", 0});
  Job other(3);
  other.silent_ = {"p1", "p2"};
  other.Give("p0", PodSuspected{"p1", "silent"});
  other.Give("p0", PodSuspected{"p2", "silent"});
  other.Pass(milliseconds(2000));
  EXPECT_EQ(other.ViewOf("p0").epoch, MakeEpoch(1, 1));
}

// A machine with two pods of four is gone. The third pod misses them a little before the
// coordinator does. If it were left out for that, nobody could go on: two of the three members of
// the next view would be dead.
TEST(MemberTest, WhoMissesAMachineFirstIsNotLeftOut) {
  Job job(4);
  job.silent_ = {"p1", "p3"};
  job.stops_ = false;  // so that the second suspicion comes before anything is decided
  job.Give("p2", PodSuspected{"p1", "silent"});
  job.Give("p2", PodSuspected{"p3", "silent"});
  job.stops_ = true;
  for (const char* pod : {"p0", "p2"}) job.Give(pod, WorkersStopped{MakeEpoch(1, 1)});
  job.Pass(milliseconds(250));
  EXPECT_NE(job.ViewOf("p0").FindPod("p2"), -1);
  job.Give("p0", PodSuspected{"p1", "silent"});
  job.Give("p0", PodSuspected{"p3", "silent"});
  job.Pass(milliseconds(2000));
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p2"}));
  EXPECT_EQ(job.Pods("p2"), (Uids{"p0", "p2"}));
}

// Its first accusation counts at once, the others only after a while.
TEST(MemberTest, WhoAloneDoesNotHearSeveralIsLeftOutAfterAWhile) {
  Job job(5);
  job.stops_ = job.boundary_ = false;  // no boundary: p2 is not let in again within this test
  for (const char* pod : {"p1", "p3", "p4"}) job.Give("p2", PodSuspected{pod, "silent"});
  job.Pass(milliseconds(600));
  job.stops_ = true;
  for (const char* pod : {"p0", "p1", "p2", "p3", "p4"})
    job.Give(pod, WorkersStopped{MakeEpoch(1, 1)});
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1", "p3", "p4"}));
}

TEST(MemberTest, AWronglyDroppedPodLearnsOfItAndRejoins) {
  Job job(3);
  job.silent_ = {"p2"};
  job.Give("p0", PodSuspected{"p2", "silent"});
  job.silent_ = {};
  job.Give("p0", PodHeard{"p2", MakeEpoch(1, 1)});
  EXPECT_EQ(job.Pods("p2"), (Uids{"p0", "p1", "p2"}));
  EXPECT_EQ(job.ViewOf("p2").reason, Reason::kRejoin);
  EXPECT_TRUE(job.ViewOf("p2").ranks[2].joined);
}

TEST(MemberTest, ADrainedPodLeavesAtTheBoundaryAndACoordinatorNamesItsSuccessor) {
  Job job(3);
  job.Give("p0", DrainRequested{{"p0"}, std::nullopt});
  EXPECT_EQ(job.Pods("p1"), (Uids{"p1", "p2"}));
  EXPECT_EQ(job.ViewOf("p1").reason, Reason::kPodDrained);
  EXPECT_TRUE(job.ViewOf("p1").planned);
  EXPECT_EQ(job.ViewOf("p1").coordinator, "p1");
  EXPECT_EQ(job["p0"].role(), Role::kLeft);
  EXPECT_EQ(job.log_["p0"].back() == "left" || job["p0"].done(), true);
}

TEST(MemberTest, NothingIsProposedBeforeAllStandAtTheBoundary) {
  Job job(3);
  job.boundary_ = false;
  job.Give("p0", DrainRequested{{"p2"}, std::nullopt});
  job.Pass(milliseconds(1000));
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 1));
  for (const char* pod : {"p0", "p1", "p2"}) {
    EXPECT_EQ(std::count(job.log_[pod].begin(), job.log_[pod].end(), "stop"), 0);
    job.Give(pod, BoundaryReached{MakeEpoch(1, 1)});
  }
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1"}));
}

TEST(MemberTest, AFaultCancelsThePlanAndAdmitsNobody) {
  Job job(3);
  job.boundary_ = false;
  job.Start(job.NewCandidate(3, 1));
  job.Give("p3", ViewDecided{job.first_});
  job.KillWorker("p1", 0);
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p2"}));
  EXPECT_FALSE(job.ViewOf("p0").planned);
}

TEST(MemberTest, ADrainThatReachesNoBoundaryResignsAtItsDeadline) {
  Job job(3);
  job.boundary_ = false;
  job.Give("p2", DrainRequested{{"p2"}, job.now_ + milliseconds(500)});
  job.Pass(milliseconds(400));
  EXPECT_EQ(job.ViewOf("p0").pods.size(), 3u);
  job.Pass(milliseconds(200));
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1"}));
  EXPECT_EQ(job["p2"].role(), Role::kLeft);
  EXPECT_EQ(job.ViewOf("p0").reason, Reason::kPodDrained) << "nothing was lost that was to stay";
  EXPECT_FALSE(job.ViewOf("p0").planned);
}

TEST(MemberTest, OfTwoDeadlinesOfADrainTheEarlierCounts) {
  for (const int first : {500, 20000}) {
    Job job(3);
    job.boundary_ = false;
    job.Give("p2", DrainRequested{{"p2"}, job.now_ + milliseconds(first)});
    job.Give("p2", DrainRequested{{"p2"}, job.now_ + milliseconds(20500 - first)});
    job.Pass(milliseconds(600));
    EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1"})) << first;
  }
}

TEST(MemberTest, TheDeadlineOfAnotherPodsDrainIsNotItsOwn) {
  Job job(3);
  job.boundary_ = false;
  job.Give("p2", DrainRequested{{"p2"}, job.now_ + milliseconds(20000)});
  job.Give("p2", DrainRequested{{"p1"}, job.now_ + milliseconds(500)});
  job.Pass(milliseconds(1000));
  EXPECT_NE(job["p2"].role(), Role::kLeft);
}

TEST(NextViewTest, AViewThatEndedThoughNobodyWentIsNoDrain) {
  const View view = Job(3).ViewOf("p0");
  Change change;
  change.gone = change.draining = std::vector<bool>(view.pods.size(), false);
  change.lost_worker.assign(view.ranks.size(), false);
  EXPECT_EQ(NextView(view, change)->reason, Reason::kWorkerLost);
  change.gone[2] = change.draining[2] = true;
  EXPECT_EQ(NextView(view, change)->reason, Reason::kPodDrained);
}

TEST(MemberTest, AWorkerLostBesideADrainIsALostWorker) {
  Job job(3);
  job.boundary_ = false;
  job.Give("p0", DrainRequested{{"p2"}, std::nullopt});
  job.KillWorker("p1", 0);
  EXPECT_EQ(job.ViewOf("p0").reason, Reason::kWorkerLost);
}

TEST(MemberTest, JoinsThatComeTogetherMakeOneView) {
  Job job(2);
  job.boundary_ = false;
  for (int i : {2, 3}) {
    job.Start(job.NewCandidate(i, 1));
    job.Give(Job::Uid(i), ViewDecided{job.first_});
  }
  for (const char* pod : {"p0", "p1"}) job.Give(pod, BoundaryReached{MakeEpoch(1, 1)});
  EXPECT_EQ(job.ViewOf("p3").epoch, MakeEpoch(1, 2));
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1", "p2", "p3"}));
  EXPECT_EQ(job.ViewOf("p0").reason, Reason::kPodJoined);
}

TEST(MemberTest, BelowMinPodsTheViewIsHeldAndReleasedByAJoiner) {
  Job job(2, 1, 2);
  EXPECT_TRUE(job.ViewOf("p0").train);
  job.KillWorker("p1", 0);
  EXPECT_FALSE(job.ViewOf("p0").train);
  EXPECT_EQ(job.log_["p0"].back() == "install" || job.log_["p0"].back() == "arm", true);
  job.StartWorker("p1", 0, 2);
  EXPECT_TRUE(job.ViewOf("p0").train);
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1"}));
}

TEST(MemberTest, AMemberStoresBeforeItAccepts) {
  Job job(3);
  job.log_.clear();
  job.KillWorker("p2", 0);
  const auto& log = job.log_["p1"];
  auto accepted = std::find(log.begin(), log.end(), "accepted");
  ASSERT_NE(accepted, log.end());
  EXPECT_EQ(*(accepted - 1), "persist");
  EXPECT_NE(std::find(log.begin(), accepted, "stop"), accepted);
}

TEST(MemberTest, AMemberAcceptsOnlyAfterItsWorkersHaveStopped) {
  Job job(3);
  job.stops_ = false;
  job.KillWorker("p2", 0);
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 1));
  job.Give("p0", WorkersStopped{MakeEpoch(1, 1)});
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 1));
  job.Give("p1", WorkersStopped{MakeEpoch(1, 1)});
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 2));
}

TEST(MemberTest, APodThatLostItsFileComesBackAsAJoiner) {
  Job job(3);
  Candidate again = job.NewCandidate(2, 1);
  job.Start(again, {2});
  job.Give("p2", ViewDecided{job.first_});
  job.Pass(milliseconds(1000));
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1", "p2"}));
  EXPECT_EQ(job.ViewOf("p0").pods[2].incarnation, 2u);
  EXPECT_TRUE(job.ViewOf("p0").ranks[2].joined);
}

TEST(MemberTest, ARestartedSidecarGoesOnFromItsFile) {
  Job job(3);
  job.Start(job.NewCandidate(1, 1), job.disk_["p1"]);
  EXPECT_EQ(job["p1"].role(), Role::kMember);
  job.KillWorker("p2", 0);
  EXPECT_EQ(job.Pods("p1"), (Uids{"p0", "p1"}));
}

TEST(MemberTest, ASidecarThatIsRestartedKnowsThatItsJoinerHoldsTheState) {
  Job job(2);
  job.KillWorker("p0", 0);
  job.StartWorker("p0", 0, 2);
  ASSERT_TRUE(job.ViewOf("p0").ranks[1].joined);
  Candidate again = job.NewCandidate(0, 1);
  again.workers[0].incarnation = 2;
  job.operations_ = false;
  job.Start(again, job.disk_["p0"]);
  job.silent_.insert("p1");
  job.Give("p0", PodSuspected{"p1", "silent"});
  job.Pass(milliseconds(2000));
  EXPECT_EQ(job.Pods("p0"), Uids{"p0"}) << "nobody else has the state any more";
}

// The donor is gone before the first operation of the view that let the joiner in.
TEST(MemberTest, AJoinerThatHasGotTheStateGoesOnWithoutItsDonor) {
  for (const bool got_it : {true, false}) {
    Job job(1);
    job.operations_ = false;
    Candidate newcomer = job.NewCandidate(1, 1);
    job.Start(newcomer);
    job.Give("p1", ViewDecided{job.first_});
    job.Pass(milliseconds(2000));
    ASSERT_EQ(job.Pods("p1"), (Uids{"p0", "p1"}));
    ASSERT_TRUE(job.ViewOf("p1").ranks[1].joined);
    if (got_it) newcomer.workers[0].holds = job.ViewOf("p1").epoch;
    job.Give("p1", WorkersChanged{newcomer.workers});
    job.KillWorker("p0", 0);
    job.Pass(milliseconds(2000));
    EXPECT_EQ(job.Pods("p1"), got_it ? Uids({"p1"}) : Uids({"p0", "p1"}));
    EXPECT_EQ(job["p1"].state_lost(), !got_it);
    EXPECT_EQ(job.ViewOf("p1").ranks[0].joined, false);
  }
}

TEST(MemberTest, TheDeadlineOfADrainIsVoidOnceTheJobFinishes) {
  Job job(3);
  job.boundary_ = false;
  job.Give("p2", DrainRequested{{"p2"}, job.now_ + milliseconds(500)});
  job.Give("p0", Finishing{MakeEpoch(1, 1)});
  job.Give("p2", Finishing{MakeEpoch(1, 1)});
  job.Pass(milliseconds(1000));
}

TEST(MemberTest, NothingWakesAMemberToAFaultOnceTheJobFinishes) {
  Job job(3);
  job.silent_ = {"p0", "p1"};
  job.Give("p2", PodSuspected{"p0", "silent"});  // p2's turn to campaign comes after p1's
  job.Give("p2", Finishing{MakeEpoch(1, 1)});
  job.Pass(milliseconds(3000));
}

TEST(MemberTest, NobodyIsLetInOnceTheJobFinishes) {
  Job job(2);
  job.boundary_ = false;
  job.Give("p0", Finishing{MakeEpoch(1, 1)});
  job.Start(job.NewCandidate(2, 1));
  job.Give("p2", ViewDecided{job.first_});
  job.Pass(milliseconds(3000));
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 1));
}

TEST(MemberTest, APodThatHasLeftWaitsOnlyForTheRecord) {
  Job job(3);
  job.record_up_ = false;
  job.Give("p0", DrainRequested{{"p0"}, job.now_ + milliseconds(500)});
  job.Give("p1", DrainRequested{{"p1"}, job.now_ + milliseconds(700)});
  job.Pass(milliseconds(3000));
  EXPECT_EQ(job["p0"].role(), Role::kLeft);
  EXPECT_FALSE(job["p0"].done());
}

TEST(MemberTest, ProposalsOfAStrangerAndForARoundThatIsNotItsOwnAreIgnored) {
  Job job(3);
  Message message;
  message.kind = MessageKind::kPropose;
  message.from = "p1";
  message.incarnation = 1;
  message.view = MakeEpoch(1, 1);
  message.ballot = {0, "p1"};  // only the coordinator may use round 0
  auto value = std::make_shared<View>(*job.first_);
  value->epoch = MakeEpoch(1, 2);
  value->parent = MakeEpoch(1, 1);
  message.value = value;
  EXPECT_TRUE(job["p2"].Step(MessageReceived{message, ""}, job.now_).empty());
  message.ballot = {0, "p0"};
  message.from = "p0";
  message.incarnation = 7;
  EXPECT_TRUE(job["p2"].Step(MessageReceived{message, ""}, job.now_).empty());
}

TEST(MemberTest, WhenTheJobFinishesNothingIsRebuilt) {
  Job job(3);
  job.Give("p0", Finishing{MakeEpoch(1, 1)});
  job.KillWorker("p2", 0);
  job.Give("p1", PodSuspected{"p2", "gone"});
  job.Pass(milliseconds(1000));
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 1));
}

}  // namespace
}  // namespace ringmaster::membership
