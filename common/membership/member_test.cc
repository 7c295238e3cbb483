// The rules one by one, on two to four members with a network that the test holds in its hand.
#include "common/membership/member.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "common/membership/next_view.h"
#include "common/membership/quorum_record.h"

namespace ringmaster::membership {
namespace {

using std::chrono::milliseconds;

// Delivers at once and in order what is sent, except to those who are cut off; workers stop, reach
// boundaries and complete operations as soon as they are asked.
class Job {
 public:
  explicit Job(int pods, int slots = 1, std::uint32_t min_pods = 1) : min_pods_(min_pods) {
    std::vector<Candidate> candidates;
    for (int i = 0; i < pods; ++i) candidates.push_back(NewCandidate(i, slots));
    first_ = std::make_shared<const View>(BootstrapView(candidates, min_pods));
    record_ = NewRecord(first_);
    for (const Candidate& candidate : candidates) Start(candidate);
    for (const Candidate& candidate : candidates) Give(candidate.pod.uid, ViewDecided{first_});
  }

  static std::string Uid(int i) { return "p" + std::to_string(i); }

  Candidate NewCandidate(int i, int slots) {
    Candidate candidate;
    candidate.pod = {Uid(i), "job-worker-" + std::to_string(i), 1, "n", "z", Uid(i) + ":1", "", ""};
    for (int s = 0; s < slots; ++s) {
      candidate.workers.push_back({static_cast<std::uint32_t>(s), 1, "", "", true});
    }
    return candidate;
  }

  void Start(const Candidate& candidate, PersistentState state = {1}) {
    Config config;
    config.self = candidate.pod;
    config.min_pods = min_pods_;
    members_.erase(candidate.pod.uid);
    members_.emplace(candidate.pod.uid, Member(config, std::move(state)));
    workers_[candidate.pod.uid] = candidate.workers;
    Give(candidate.pod.uid, Started{});
    Give(candidate.pod.uid, WorkersChanged{candidate.workers});
  }

  void Give(const std::string& uid, const Event& event) {
    queue_.push_back({uid, event});
    Run();
  }

  void Run() {
    while (!queue_.empty()) {
      auto [uid, event] = queue_.front();
      queue_.pop_front();
      if (silent_.contains(uid)) continue;
      for (Action& action : members_.at(uid).Step(event, now_)) Do(uid, action);
    }
  }

  void Pass(milliseconds time) {
    for (milliseconds step{0}; step < time; step += milliseconds(10)) {
      now_ += milliseconds(10);
      for (auto& [uid, member] : members_) {
        if (auto at = member.NextDeadline(); at && *at <= now_) Give(uid, Tick{});
      }
    }
  }

  void KillWorker(const std::string& uid, std::uint32_t slot) {
    std::erase_if(workers_[uid], [&](const Worker& worker) { return worker.slot == slot; });
    Give(uid, WorkersChanged{workers_[uid]});
  }
  void StartWorker(const std::string& uid, std::uint32_t slot, std::uint64_t incarnation) {
    workers_[uid].push_back({slot, incarnation, "", "", true});
    Give(uid, WorkersChanged{workers_[uid]});
  }

  const View& ViewOf(const std::string& uid) { return *members_.at(uid).current(); }
  Member& operator[](const std::string& uid) { return members_.at(uid); }

  std::vector<std::string> Pods(const std::string& uid) {
    std::vector<std::string> pods;
    for (const Pod& pod : ViewOf(uid).pods) pods.push_back(pod.uid);
    return pods;
  }

  std::set<std::string> silent_;  // cut off
  bool boundary_ = true;          // workers reach it when armed
  bool stops_ = true;             // workers stop when asked
  bool record_up_ = true;
  int to_record_ = 0;
  std::map<std::string, PersistentState> disk_;
  std::map<std::string, std::vector<std::string>> log_;  // kinds of actions, in order
  std::map<std::string, RecoveryReport> reports_;
  ViewPtr first_;
  QuorumRecord record_;
  TimePoint now_ = TimePoint(milliseconds(1000));

 private:
  void Do(const std::string& uid, Action& action) {
    if (auto* persist = std::get_if<Persist>(&action)) {
      disk_[uid] = persist->state;
      log_[uid].push_back("persist");
    } else if (auto* send = std::get_if<Send>(&action)) {
      log_[uid].push_back(std::string(MessageKindText(send->message.kind)));
      if (!members_.contains(send->to) || silent_.contains(send->to)) return;
      queue_.push_back({send->to, MessageReceived{send->message, uid + ":1"}});
    } else if (auto* ask = std::get_if<SendToRecord>(&action)) {
      if (ask->message.kind != MessageKind::kDecided) ++to_record_;
      if (!record_up_) return;
      RecordResult result = AnswerAsRecord(record_, ask->message);
      record_ = result.state;
      queue_.push_back({uid, RecordAnswered{result.answer}});
    } else if (auto* stop = std::get_if<StopWorkers>(&action)) {
      log_[uid].push_back("stop");
      if (stops_) queue_.push_back({uid, WorkersStopped{stop->epoch}});
    } else if (auto* arm = std::get_if<ArmWorkers>(&action)) {
      log_[uid].push_back("arm");
      if (boundary_) queue_.push_back({uid, BoundaryReached{arm->epoch}});
    } else if (auto* install = std::get_if<InstallView>(&action)) {
      log_[uid].push_back("install");
      queue_.push_back({uid, FirstOperationDone{install->view->epoch}});
    } else if (std::get_if<LeftByPlan>(&action)) {
      log_[uid].push_back("left");
    } else if (auto* report = std::get_if<ReportToOperator>(&action)) {
      log_[uid].push_back("report");
      reports_[uid] = report->report;
    }
  }

  std::uint32_t min_pods_;
  std::map<std::string, Member> members_;
  std::map<std::string, std::vector<Worker>> workers_;
  std::deque<std::pair<std::string, Event>> queue_;
};

using Uids = std::vector<std::string>;

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

TEST(MemberTest, ProposalsOfAStrangerAndForARoundThatIsNotItsOwnAreIgnored) {
  Job job(3);
  Message message;
  message.kind = MessageKind::kPropose;
  message.from = "p1";
  message.incarnation = 1;
  message.view = MakeEpoch(1, 1);
  message.ballot = {0, "p1"};  // round 0 is the coordinator's
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

// ---- Rule 9

TEST(MemberTest, AskedToMakeWayItStopsStoresThePromiseAndReports) {
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

TEST(MemberTest, ItReportsOnlyWhenItsWorkersHaveStopped) {
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

TEST(MemberTest, WhoHasMadeWayTakesPartInNothingOfALowerLineage) {
  Job job(3);
  job.Give("p0", RecoveryAsked{2});
  job.Give("p1", RecoveryAsked{2});
  job.Give("p2", PodSuspected{"p0", "silent"});
  job.Give("p2", PodSuspected{"p1", "silent"});
  job.KillWorker("p1", 0);
  job.Pass(milliseconds(3000));
  EXPECT_EQ(job.ViewOf("p2").epoch, MakeEpoch(1, 1));
  // Not even if somebody says that it has been decided.
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

TEST(MemberTest, TheFirstViewOfTheLineageIsInstalledAndDecidesItsSuccessorAsAnyOther) {
  Job job(4);
  for (const char* dead : {"p1", "p2", "p3"}) job.silent_.insert(dead);
  for (const char* dead : {"p1", "p2", "p3"}) job.Give("p0", PodSuspected{dead, "silent"});
  job.Pass(milliseconds(2000));
  EXPECT_FALSE(job["p0"].able());
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 1));
  job.record_ = BeginRecovery(job.record_, 2);
  job.Give("p0", RecoveryAsked{2});
  const RecoveryResult result = RecoverFromQuorumLoss(2, {"p0"}, {&job.reports_["p0"]}, 1);
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

TEST(MemberTest, ASidecarThatIsRestartedKeepsItsPromiseAndReportsWhenAskedAgain) {
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

TEST(MemberTest, AWorkerThatDiesAfterTheReportChangesTheReport) {
  Job job(2);
  job.Give("p0", RecoveryAsked{2});
  job.KillWorker("p0", 0);
  EXPECT_TRUE(job.reports_["p0"].candidate.workers.empty());
}

TEST(MemberTest, APodThatHasLostItsFileStopsItsWorkersTooBeforeItReports) {
  Job job(2);
  job.stops_ = false;
  job.Start(job.NewCandidate(1, 1), {2});  // its worker trains on in view 1.1
  job.Give("p1", RecoveryAsked{2});
  EXPECT_EQ(job.log_["p1"].back(), "stop");
  EXPECT_FALSE(job.reports_.contains("p1"));
  job.Give("p1", WorkersStopped{MakeEpoch(2, 0)});
  EXPECT_TRUE(job.reports_.contains("p1"));
}

TEST(MemberTest, WhoIsInNoViewMakesWayToo) {
  Job job(2);
  job.Start(job.NewCandidate(5, 1));
  job.Give("p5", RecoveryAsked{2});
  ASSERT_TRUE(job.reports_.contains("p5"));
  EXPECT_EQ(job.reports_["p5"].view, nullptr);
  EXPECT_FALSE(job.reports_["p5"].ran);
  job.Give("p5", ViewDecided{job.first_});
  EXPECT_EQ(job["p5"].role(), Role::kWaiting);
}

TEST(MemberTest, AskedAgainItReportsAgainAndStoresNothingNew) {
  Job job(3);
  job.Give("p0", RecoveryAsked{2});
  job.log_.clear();
  job.Give("p0", RecoveryAsked{2});
  EXPECT_EQ(job.log_["p0"], (Uids{"report"}));
}

TEST(MemberTest, ItMakesWayForTheHighestLineageThatItWasAskedFor) {
  Job job(3);
  job.stops_ = false;
  job.Give("p0", RecoveryAsked{3});
  job.Give("p0", RecoveryAsked{2});
  job.Give("p0", WorkersStopped{MakeEpoch(3, 0)});
  EXPECT_EQ(job.reports_["p0"].lineage, 3u);
  job.Give("p0", RecoveryAsked{2});
  EXPECT_EQ(job.reports_["p0"].lineage, 3u) << "to a lower one it has nothing to say any more";
}

TEST(MemberTest, AResignationIsInTheReport) {
  Job job(3);
  job.silent_ = {"p1", "p2"};  // or they would decide without it
  job.KillWorker("p0", 0);
  job.Give("p0", RecoveryAsked{2});
  EXPECT_TRUE(job.reports_["p0"].resigned);
}

TEST(MemberTest, AViewOfTheLineageThatComesFirstNeedsNoReport) {
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

TEST(MemberTest, ItReportsNothingBeforeItKnowsItsWorkers) {
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
