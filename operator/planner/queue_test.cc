// Jobs in a queue of Kueue.
#include <gmock/gmock.h>

#include <algorithm>

#include "operator/planner/planner.h"

namespace ringmaster::planner {
namespace {

using kueue::Stage;
using testing::HasSubstr;

class QueueTest : public testing::Test {
 protected:
  QueueTest() {
    in_.now = *api::ParseTime("2026-01-31T12:00:00Z");
    in_.job.name = "digits";
    in_.job.uid = "job-uid";
    in_.job.queue = "gpus";
    in_.job.spec.worker.replicas = 4;
    in_.job.spec.elastic_policy.min_replicas = 2;
  }
  void AddPods(int pods) {
    for (int i = 0; i < pods; ++i) {
      PodFacts pod;
      pod.index = i;
      pod.name = PodName("digits", i);
      pod.uid = "uid-" + std::to_string(i);
      pod.phase = PodPhase::kRunning;
      pod.scheduled = true;
      pod.created = in_.now;
      in_.pods.push_back(pod);
    }
  }
  void StandsAs(Stage stage, const std::string& reason, int pods = 0) {
    in_.queue = kueue::QueueState{
        .queue = "gpus", .stage = stage, .reason = reason, .message = "queue gpus: words"};
    in_.queue->pods = pods;
    if (stage == Stage::kAdmitted) {
      in_.queue->changes = std::make_shared<const kueue::PodChanges>(
          kueue::PodChanges{.node_selector = {{"pool", "spot"}}});
    }
  }
  static std::vector<std::string> EventReasons(const Decision& decision) {
    std::vector<std::string> reasons;
    for (const Event& event : decision.events) reasons.push_back(event.reason);
    return reasons;
  }

  Snapshot in_;
};

TEST_F(QueueTest, WithoutAnAdmissionThereAreNoPodsAndTheStatusSaysWhoHoldsThem) {
  StandsAs(Stage::kWaits, kueue::kWaitingForQueue);
  const Decision decision = Plan(in_);
  EXPECT_TRUE(decision.creates.empty());
  EXPECT_EQ(decision.status.state, "Queued");
  const api::Condition* scheduled = decision.status.Find("Scheduled");
  ASSERT_NE(scheduled, nullptr);
  EXPECT_FALSE(scheduled->status);
  EXPECT_EQ(scheduled->reason, "WaitingForQueue");
  EXPECT_EQ(scheduled->message, "queue gpus: words");
  EXPECT_EQ(decision.status.Find("Running")->reason, "WaitingForQueue");
  EXPECT_TRUE(decision.status.Is("Suspended"));
  EXPECT_EQ(decision.status.start_time, "") << "its time has not begun";
  EXPECT_THAT(EventReasons(decision), testing::ElementsAre("WaitingForQueue"));
  in_.job.status = decision.status;
  in_.now += std::chrono::seconds(5);
  const Decision again = Plan(in_);
  EXPECT_EQ(again.status, decision.status) << "nothing has changed, and nothing is written";
  EXPECT_TRUE(again.events.empty());
}

TEST_F(QueueTest, WhatIsAdmittedBoundsTheSizeAndReachesEachPod) {
  StandsAs(Stage::kAdmitted, "", 3);
  const Decision decision = Plan(in_);
  ASSERT_EQ(decision.creates.size(), 3u);
  for (const PodCreate& create : decision.creates) {
    EXPECT_EQ(create.of_queue, in_.queue->changes);
  }
  EXPECT_THAT(decision.status.Find("Scheduled")->message, HasSubstr("queue gpus: words"));
}

TEST_F(QueueTest, MorePodsThanAreStillGrantedLeave) {
  AddPods(4);
  StandsAs(Stage::kAdmitted, "", 3);
  const Decision decision = Plan(in_);
  ASSERT_EQ(decision.drains.size(), 1u);
  EXPECT_EQ(decision.drains[0].name, "digits-worker-3");
}

TEST_F(QueueTest, AnEvictionTakesAllPods) {
  AddPods(3);
  StandsAs(Stage::kLeaves, kueue::kEvictedByQueue);
  const Decision decision = Plan(in_);
  EXPECT_EQ(decision.deletes.size(), 3u);
  EXPECT_EQ(decision.status.state, "Queued");
  EXPECT_THAT(EventReasons(decision), testing::Contains("EvictedByQueue"));
}

TEST_F(QueueTest, PodsThatAllGoAreToldSoThatTheyLeaveAtTheSameStep) {
  AddPods(2);
  membership::View view;
  for (const PodFacts& pod : in_.pods) {
    membership::Pod member;
    member.uid = pod.uid;
    member.name = pod.name;
    view.pods.push_back(member);
    SidecarFacts sidecar;
    sidecar.pod_uid = pod.uid;
    sidecar.connected = true;
    in_.sidecars.push_back(sidecar);
  }
  view.epoch = membership::MakeEpoch(1, 1);
  in_.view = std::make_shared<const membership::View>(view);
  StandsAs(Stage::kLeaves, kueue::kEvictedByQueue);
  const Decision decision = Plan(in_);
  ASSERT_EQ(decision.notices.size(), 2u);
  for (const PodNotice& notice : decision.notices) {
    const auto* drain = std::get_if<DrainNotice>(&notice.notice);
    ASSERT_NE(drain, nullptr);
    EXPECT_THAT(*drain->pod_uids, testing::ElementsAre("uid-0", "uid-1"));
    EXPECT_EQ(drain->reason, "EvictedByQueue");
    EXPECT_EQ(drain->deadline_unix_ms, std::chrono::duration_cast<std::chrono::milliseconds>(
                                           (in_.now + std::chrono::seconds(30)).time_since_epoch())
                                           .count());
  }
}

TEST_F(QueueTest, AJobWhoseRanksHaveAgreedToEndIsLetEnd) {
  AddPods(3);
  in_.job.status.finished_epoch = 1;
  StandsAs(Stage::kLeaves, kueue::kEvictedByQueue);
  EXPECT_TRUE(Plan(in_).deletes.empty());
}

// All pods of the job have ended well, and its status doesn't say so yet.
void EndAll(Snapshot* in) {
  for (PodFacts& pod : in->pods) {
    pod.phase = PodPhase::kSucceeded;
    pod.all_terminated = true;
    pod.exit_code = 0;
  }
}

TEST_F(QueueTest, AJobThatHasJustEndedHasEndedWhateverItsQueueSays) {
  for (const Stage stage : {Stage::kLeaves, Stage::kWaits, Stage::kUnknown}) {
    for (const std::uint64_t agreed : {1, 0}) {
      in_.pods.clear();
      AddPods(3);
      EndAll(&in_);
      in_.job.status.finished_epoch = agreed;
      StandsAs(stage, kueue::kEvictedByQueue);
      EXPECT_TRUE(EndComesFirst(in_));
      const Decision decision = Plan(in_);
      EXPECT_TRUE(decision.status.Is("Succeeded")) << static_cast<int>(stage) << " " << agreed;
      EXPECT_TRUE(decision.deletes.empty());
    }
  }
}

TEST_F(QueueTest, AJobThatHasJustFailedHasFailedWhateverItsQueueSays) {
  for (const Stage stage : {Stage::kLeaves, Stage::kWaits, Stage::kUnknown}) {
    in_.pods.clear();
    AddPods(3);
    EndAll(&in_);
    in_.pods.front().phase = PodPhase::kFailed;
    in_.pods.front().exit_code = 3;
    StandsAs(stage, kueue::kEvictedByQueue);
    EXPECT_TRUE(Plan(in_).status.Is("Failed")) << static_cast<int>(stage);
  }
}

TEST_F(QueueTest, ThatAllRanksHaveAgreedToEndIsHeardOfSidecarsToo) {
  AddPods(3);
  SidecarFacts sidecar;
  sidecar.pod_uid = "uid-0";
  sidecar.finished_epoch = 1;
  in_.sidecars.push_back(sidecar);
  StandsAs(Stage::kLeaves, kueue::kEvictedByQueue);
  EXPECT_TRUE(Plan(in_).deletes.empty());
  in_.sidecars.front().pod_uid = "of an earlier pod";
  EXPECT_EQ(Plan(in_).deletes.size(), 3u);
}

TEST_F(QueueTest, WhatPodsDoThatWereToldToGoIsNotTheEndOfTheJob) {
  AddPods(2);
  StandsAs(Stage::kLeaves, kueue::kEvictedByQueue);
  in_.job.status = Plan(in_).status;
  EndAll(&in_);
  for (PodFacts& pod : in_.pods) pod.deleting = true;
  for (const Stage stage : {Stage::kLeaves, Stage::kWaits, Stage::kUnknown}) {
    StandsAs(stage, kueue::kEvictedByQueue);
    EXPECT_FALSE(EndComesFirst(in_));
    EXPECT_EQ(Plan(in_).status.state, "Queued") << static_cast<int>(stage);
  }
}

TEST_F(QueueTest, AJobThatDoesNotEndHasTheGracePeriodSinceTheEviction) {
  AddPods(2);
  in_.pods.front().grace_seconds = 60;
  in_.job.status.finished_epoch = 1;
  StandsAs(Stage::kLeaves, kueue::kEvictedByQueue);
  in_.queue->evicted_at = in_.now - std::chrono::seconds(59);
  const Decision waits = Plan(in_);
  EXPECT_TRUE(waits.deletes.empty());
  ASSERT_TRUE(waits.look_again);
  EXPECT_LE(*waits.look_again, std::chrono::seconds(2));
  in_.now += std::chrono::seconds(1);
  EXPECT_EQ(Plan(in_).deletes.size(), 2u);
  EndAll(&in_);
  EXPECT_TRUE(Plan(in_).status.Is("Succeeded")) << "it has ended after all";
}

TEST_F(QueueTest, PodsStayAsTheyAreWhileNobodyCanSayWhatTheQueueWants) {
  AddPods(2);
  StandsAs(Stage::kUnknown, kueue::kQueueUnavailable);
  const Decision with_pods = Plan(in_);
  EXPECT_TRUE(with_pods.deletes.empty());
  EXPECT_TRUE(with_pods.drains.empty());
  EXPECT_TRUE(with_pods.creates.empty());
  in_.pods.clear();
  const Decision without = Plan(in_);
  EXPECT_TRUE(without.creates.empty());
  EXPECT_EQ(without.status.Find("Scheduled")->reason, "QueueUnavailable");
}

TEST_F(QueueTest, ASuspendedJobIsSuspendedAndNotQueued) {
  in_.job.spec.run_policy.suspend = true;
  StandsAs(Stage::kWaits, kueue::kWaitingForQueue);
  const Decision decision = Plan(in_);
  EXPECT_EQ(decision.status.state, "Suspended");
  EXPECT_EQ(decision.status.Find("Scheduled"), nullptr);
}

TEST_F(QueueTest, AJobThatWasSuspendedAndChangedUnseenGivesItsAdmissionBack) {
  AddPods(4);
  for (PodFacts& pod : in_.pods) pod.made_from = "before";
  in_.job.spec.pods_digest = "now";
  StandsAs(Stage::kAdmitted, "", 4);
  EXPECT_EQ(Plan(in_).status.state, "Suspended");
  in_.job.status = Plan(in_).status;
  EXPECT_TRUE(kueue::GivesUpAdmission(in_.job));
  StandsAs(Stage::kWaits, kueue::kAdmissionGivenBack);
  const Decision decision = Plan(in_);
  EXPECT_EQ(decision.deletes.size(), 4u);
  in_.job.status = decision.status;
  EXPECT_TRUE(kueue::GivesUpAdmission(in_.job));
  in_.pods.clear();
  StandsAs(Stage::kAdmitted, "", 4);
  EXPECT_EQ(Plan(in_).creates.size(), 4u);
}

TEST_F(QueueTest, WhyPodsOfBeforeHaveGoneIsSaidUntilTheyHave) {
  AddPods(1);
  StandsAs(Stage::kLeaves, kueue::kEvictedByQueue);
  in_.job.status = Plan(in_).status;
  in_.pods.front().phase = PodPhase::kFailed;
  in_.pods.front().deleting = true;
  in_.pods.front().delete_at = in_.now + std::chrono::seconds(30);
  StandsAs(Stage::kAdmitted, "", 4);
  const Decision decision = Plan(in_);
  EXPECT_TRUE(decision.creates.empty());
  EXPECT_EQ(decision.status.Find("Suspended")->reason, kueue::kEvictedByQueue);
}

TEST_F(QueueTest, TheEventOfAnAdmissionSaysWhoseItIs) {
  StandsAs(Stage::kWaits, kueue::kWaitingForQueue);
  in_.job.status = Plan(in_).status;
  StandsAs(Stage::kAdmitted, "", 4);
  const Decision decision = Plan(in_);
  EXPECT_THAT(EventReasons(decision), testing::Contains("Admitted"));
  EXPECT_FALSE(decision.status.Is("Suspended"));
  EXPECT_EQ(decision.creates.size(), 4u);
}

TEST_F(QueueTest, AJobThatHasEndedStaysAsItEnded) {
  in_.job.status.conditions.push_back(
      {"Succeeded", true, "AllRanksDone", "done", "2026-01-31T11:00:00Z", 0});
  StandsAs(Stage::kLeaves, kueue::kWaitingForQueue);
  const Decision decision = Plan(in_);
  EXPECT_EQ(decision.status.state, "Succeeded");
  EXPECT_EQ(decision.status.Find("Suspended"), nullptr);
}

}  // namespace
}  // namespace ringmaster::planner
