// Members give up their views for a new lineage when the quorum is lost (rule 9).
#include "common/membership/test_job.h"

namespace ringmaster::membership {
namespace {

TEST(MakeWayTest, AskedToMakeWayItStopsStoresThePromiseAndReports) {
  Job job(3);
  job.log_.clear();
  job.Give("p0", RecoveryAsked{2});
  EXPECT_EQ(job.log_["p0"], (Uids{"persist", "stop", "persist", "report"}));
  EXPECT_EQ(job.disk_["p0"].lineage, 2u);
  EXPECT_EQ(job.reports_["p0"].lineage, 2u);
  EXPECT_EQ(*job.reports_["p0"].view, *job.first_);
  EXPECT_FALSE(job.reports_["p0"].resigned);
  EXPECT_TRUE(job.reports_["p0"].ran);
  EXPECT_EQ(job.reports_["p0"].candidate.workers.size(), 1u);
}

TEST(MakeWayTest, ItReportsOnlyWhenItsWorkersHaveStopped) {
  Job job(3);
  job.stops_ = false;
  job.Give("p0", RecoveryAsked{2});
  EXPECT_FALSE(job.reports_.contains("p0"));
  EXPECT_EQ(job.disk_["p0"].lineage, 0u);
  job.Give("p0", WorkersStopped{MakeEpoch(1, 1)});
  EXPECT_FALSE(job.reports_.contains("p0"));
  job.Give("p0", WorkersStopped{MakeEpoch(2, 0)});
  EXPECT_TRUE(job.reports_.contains("p0"));
}

TEST(MakeWayTest, WhoHasMadeWayTakesPartInNothingOfALowerLineage) {
  Job job(3);
  job.Give("p0", RecoveryAsked{2});
  job.Give("p1", RecoveryAsked{2});
  job.Give("p2", PodSuspected{"p0", "silent"});
  job.Give("p2", PodSuspected{"p1", "silent"});
  job.KillWorker("p1", 0);
  job.Pass(milliseconds(3000));
  EXPECT_EQ(job.ViewOf("p2").epoch, MakeEpoch(1, 1));
  // It does not even enter a view of the lower lineage that is said to be decided.
  Message decided;
  decided.kind = MessageKind::kDecided;
  decided.from = "p2";
  decided.incarnation = 1;
  View next = *job.first_;
  next.epoch = MakeEpoch(1, 2);
  next.parent = MakeEpoch(1, 1);
  decided.value = std::make_shared<const View>(next);
  job.Give("p0", MessageReceived{decided, ""});
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 1));
  EXPECT_EQ(job["p0"].NextDeadline(), std::nullopt);
}

TEST(MakeWayTest, TheFirstViewOfTheLineageIsInstalledAndDecidesItsSuccessorAsAnyOther) {
  Job job(4);
  for (const char* dead : {"p1", "p2", "p3"}) job.silent_.insert(dead);
  for (const char* dead : {"p1", "p2", "p3"}) job.Give("p0", PodSuspected{dead, "silent"});
  job.Pass(milliseconds(2000));
  EXPECT_FALSE(job["p0"].able());
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 1));
  job.record_ = BeginRecovery(job.record_, 2);
  job.Give("p0", RecoveryAsked{2});
  const RecoveryResult result = RecoverFromQuorumLoss(2, {"p0"}, {&job.reports_["p0"]}, Sizes{});
  ASSERT_NE(result.view, nullptr);
  job.record_ = FinishRecovery(job.record_, result.view);
  job.Give("p0", ViewDecided{result.view});
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(2, 1));
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0"}));
  EXPECT_TRUE(job["p0"].able());
  job.Start(job.NewCandidate(7, 1));
  job.Give("p7", ViewDecided{result.view});
  job.Pass(milliseconds(500));
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p7"}));
  EXPECT_EQ(job.ViewOf("p7").epoch, MakeEpoch(2, 2));
}

TEST(MakeWayTest, ASidecarThatIsRestartedKeepsItsPromiseAndReportsWhenAskedAgain) {
  Job job(2);
  job.Give("p0", RecoveryAsked{2});
  job.reports_.clear();
  job.Start(job.NewCandidate(0, 1), job.disk_["p0"]);
  job.Give("p0", PodSuspected{"p1", "silent"});
  job.Pass(milliseconds(2000));
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 1)) << "R would have voted";
  EXPECT_TRUE(job.reports_.empty());
  job.Give("p0", RecoveryAsked{2});
  EXPECT_TRUE(job.reports_.contains("p0"));
}

TEST(MakeWayTest, AWorkerThatDiesAfterTheReportChangesTheReport) {
  Job job(2);
  job.Give("p0", RecoveryAsked{2});
  job.KillWorker("p0", 0);
  EXPECT_TRUE(job.reports_["p0"].candidate.workers.empty());
}

TEST(MakeWayTest, APodThatHasLostItsFileStopsItsWorkersTooBeforeItReports) {
  Job job(2);
  job.stops_ = false;
  job.Start(job.NewCandidate(1, 1), {2});  // its worker trains on in view 1.1
  job.Give("p1", RecoveryAsked{2});
  EXPECT_EQ(job.log_["p1"].back(), "stop");
  EXPECT_FALSE(job.reports_.contains("p1"));
  job.Give("p1", WorkersStopped{MakeEpoch(2, 0)});
  EXPECT_TRUE(job.reports_.contains("p1"));
}

TEST(MakeWayTest, WhoIsInNoViewMakesWayToo) {
  Job job(2);
  job.Start(job.NewCandidate(5, 1));
  job.Give("p5", RecoveryAsked{2});
  ASSERT_TRUE(job.reports_.contains("p5"));
  EXPECT_EQ(job.reports_["p5"].view, nullptr);
  EXPECT_FALSE(job.reports_["p5"].ran);
  job.Give("p5", ViewDecided{job.first_});
  EXPECT_EQ(job["p5"].role(), Role::kWaiting);
}

TEST(MakeWayTest, AskedAgainItReportsAgainAndStoresNothingNew) {
  Job job(3);
  job.Give("p0", RecoveryAsked{2});
  job.log_.clear();
  job.Give("p0", RecoveryAsked{2});
  EXPECT_EQ(job.log_["p0"], (Uids{"report"}));
}

TEST(MakeWayTest, ItMakesWayForTheHighestLineageThatItWasAskedFor) {
  Job job(3);
  job.stops_ = false;
  job.Give("p0", RecoveryAsked{3});
  job.Give("p0", RecoveryAsked{2});
  job.Give("p0", WorkersStopped{MakeEpoch(3, 0)});
  EXPECT_EQ(job.reports_["p0"].lineage, 3u);
  job.Give("p0", RecoveryAsked{2});
  EXPECT_EQ(job.reports_["p0"].lineage, 3u) << "to a lower one it has nothing to say any more";
}

TEST(MakeWayTest, AResignationIsInTheReport) {
  Job job(3);
  job.silent_ = {"p1", "p2"};  // otherwise they would decide a view without p0
  job.KillWorker("p0", 0);
  job.Give("p0", RecoveryAsked{2});
  EXPECT_TRUE(job.reports_["p0"].resigned);
}

TEST(MakeWayTest, AViewOfTheLineageThatComesFirstNeedsNoReport) {
  Job job(2);
  job.stops_ = false;
  job.Give("p0", RecoveryAsked{2});
  View first = *job.first_;
  first.epoch = MakeEpoch(2, 1);
  job.Give("p0", ViewDecided{std::make_shared<const View>(first)});
  job.Give("p0", WorkersStopped{MakeEpoch(2, 0)});
  EXPECT_FALSE(job.reports_.contains("p0"));
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(2, 1));
}

TEST(MakeWayTest, ItReportsNothingBeforeItKnowsItsWorkers) {
  Config config;
  config.self = {"p0", "p0", 1, "n", "z", "p0:1", "", ""};
  Member member(config, {1});
  const TimePoint now(milliseconds(1000));
  const auto reports = [&](const Event& event) {
    const std::vector<Action> actions = member.Step(event, now);
    return std::any_of(actions.begin(), actions.end(), [](const Action& action) {
      return std::holds_alternative<ReportToOperator>(action);
    });
  };
  EXPECT_FALSE(reports(Started{}));
  EXPECT_FALSE(reports(RecoveryAsked{2}));
  EXPECT_FALSE(reports(WorkersStopped{MakeEpoch(2, 0)})) << "it would report them as dead";
}

}  // namespace
}  // namespace ringmaster::membership
