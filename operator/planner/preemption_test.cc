#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Four pods train, and two would be enough.
class PreemptionPlanTest : public testing::Test {
 protected:
  PreemptionPlanTest() { world_.in.job.spec.elastic_policy.min_replicas = 2; }
  void Demand(const std::vector<int>& indexes) {
    for (const int i : indexes) {
      world_.in.demands.push_back({World::Uid(i), "default/high", 5, 3});
    }
  }
  Decision Decide() { return Plan(world_.in); }
  std::vector<std::string> Offered() {
    std::vector<std::string> pods;
    const Decision decision = Decide();
    if (!decision.holding) return {"none"};
    for (const auto& pod : decision.holding->pods) pods.push_back(pod.name);
    return pods;
  }
  World world_ = World::Training(4);
};

TEST_F(PreemptionPlanTest, PodsThatOthersNeedAreDrainedAndTheirLikeStandInLine) {
  world_.in.gang_fit = scheduler::GangFit{.fit = 0, .why = "no room"};
  Demand({1, 3});
  const Decision decision = Decide();
  EXPECT_THAT(Drained(decision), ElementsAre("digits-worker-3", "digits-worker-1"));
  EXPECT_EQ(decision.drains.front().reason, "Preempted");
  EXPECT_THAT(Created(decision), IsEmpty());
  EXPECT_EQ(decision.kept_back, 2);
  const api::Condition* preempted = decision.status.Find("Preempted");
  ASSERT_NE(preempted, nullptr);
  EXPECT_TRUE(preempted->status);
  EXPECT_EQ(preempted->message,
            "digits-worker-3, digits-worker-1 leave for job default/high of priority 5, which "
            "needs 3 pods to start; 2 pods stay");
  EXPECT_TRUE(std::any_of(decision.events.begin(), decision.events.end(), [&](const Event& event) {
    return event.reason == "Preempted" && event.message == preempted->message && !event.warning;
  }));
}

TEST_F(PreemptionPlanTest, ItNeverFallsBelowItsLeastWhateverIsAskedOfIt) {
  Demand({0, 1, 2, 3});
  EXPECT_EQ(Drained(Decide()).size(), 2u);
  world_.in.job.spec.elastic_policy.min_replicas = 4;
  EXPECT_THAT(Drained(Decide()), IsEmpty());
}

TEST_F(PreemptionPlanTest, PodsThatLeaveAreNotAskedAgain) {
  Demand({3});
  world_.Pod(3).drain_reason = "Preempted";
  world_.Pod(3).drain_since = kNow;
  const Decision decision = Decide();
  EXPECT_THAT(Drained(decision), IsEmpty());
  EXPECT_THAT(Offered(), ElementsAre("digits-worker-2", "digits-worker-1", "digits-worker-0",
                                     "digits-worker-3"))
      << "it may still be taken, and is not needed";
}

TEST_F(PreemptionPlanTest, WhatItGivesIsOfferedUntilItHasGone) {
  Demand({3});
  EXPECT_THAT(Drained(Decide()), ElementsAre("digits-worker-3"));
  const std::vector<scheduler::GivablePod> pods = Decide().holding->pods;
  ASSERT_EQ(pods.size(), 4u);
  EXPECT_EQ(pods.back(), (scheduler::GivablePod{World::Uid(3), "digits-worker-3", false}))
      << "the line may not have seen it leave";
  EXPECT_TRUE(pods.front().trains);
}

TEST_F(PreemptionPlanTest, WhatLeavesForOtherReasonsIsNotOffered) {
  world_.Pod(3).drain_reason = "Requested";
  world_.Pod(3).drain_since = kNow;
  EXPECT_THAT(Offered(), ElementsAre("digits-worker-2", "digits-worker-1", "digits-worker-0"));
}

TEST_F(PreemptionPlanTest, ThePreemptionIsOverWhenItHasItsPodsAgain) {
  Demand({3});
  world_.in.job.status = Decide().status;
  ASSERT_TRUE(world_.in.job.status.Is("Preempted"));
  world_.in.demands.clear();
  world_.Pod(3).drain_reason = "Preempted";
  EXPECT_TRUE(Decide().status.Is("Preempted"));
  world_.Pod(3).drain_reason.clear();
  const api::Status status = Decide().status;
  EXPECT_FALSE(status.Is("Preempted"));
  EXPECT_EQ(status.Find("Preempted")->reason, "GrownBack");
}

TEST_F(PreemptionPlanTest, AJobThatEndsIsNotPreemptedAnyMore) {
  Demand({3});
  world_.in.job.status = Decide().status;
  world_.in.job.spec.run_policy.suspend = true;
  EXPECT_EQ(Decide().status.Find("Preempted")->reason, "NotRunning");
}

TEST_F(PreemptionPlanTest, WhatItOffersBeginsWithWhatDoesNotTrainYet) {
  world_.in.job.spec.worker.replicas = 5;
  world_.Running(4).Ready(4);
  world_.Members(2, {0, 1, 2, 4});
  EXPECT_THAT(Offered(), ElementsAre("digits-worker-3", "digits-worker-4", "digits-worker-2",
                                     "digits-worker-1", "digits-worker-0"));
  EXPECT_FALSE(Decide().holding->pods.front().trains);
  EXPECT_EQ(Decide().holding->least, 2);
}

TEST_F(PreemptionPlanTest, AllowedSizesAreToldFromTheLeastOn) {
  world_.in.job.spec.elastic_policy.allowed_sizes = {4, 1, 3};
  const Decision decision = Decide();
  ASSERT_TRUE(decision.holding);
  EXPECT_EQ(decision.holding->least, 3);
  EXPECT_THAT(decision.holding->sizes, ElementsAre(3, 4));
}

TEST_F(PreemptionPlanTest, AJobThatHasTooFewPodsOffersNothing) {
  world_.in.job.spec.elastic_policy.min_replicas = 5;
  EXPECT_THAT(Offered(), ElementsAre("none"));
}

TEST_F(PreemptionPlanTest, AJobThatRecoversFromQuorumLossOffersAndGivesNothing) {
  world_.in.lineage = 2;
  Demand({3});
  const Decision decision = Decide();
  EXPECT_TRUE(std::none_of(decision.drains.begin(), decision.drains.end(),
                           [](const PodDrain& drain) { return drain.reason == "Preempted"; }));
  EXPECT_THAT(Offered(), ElementsAre("none"));
}

TEST_F(PreemptionPlanTest, AJobThatHasNotBegunIsOfferedAsTheYoungest) {
  World begins(2);
  begins.Running(0).Running(1);
  for (PodFacts& pod : begins.in.pods) pod.running_since.reset();
  ASSERT_TRUE(Plan(begins.in).holding);
  EXPECT_TRUE(Plan(begins.in).holding->whole);
  EXPECT_EQ(Plan(begins.in).holding->since, Time::max());
  world_.in.job.status.running_since = api::FormatTime(kNow);
  EXPECT_EQ(Decide().holding->since, kNow);
}

// Two pods train, and both are needed.
class WholeJobPlanTest : public testing::Test {
 protected:
  WholeJobPlanTest() {
    world_.in.job.spec.elastic_policy.min_replicas = 2;
    world_.in.job.status.start_time = "2026-01-31T11:00:00Z";
    world_.in.job.status.running_since = "2026-01-31T11:30:00Z";
  }
  void DemandAll() {
    for (const int i : {0, 1}) {
      world_.in.demands.push_back({World::Uid(i), "default/high", 5, 3, true});
    }
  }
  Decision Decide() { return Plan(world_.in); }
  // One reconcile: its decision is carried out, the sidecars hear their notices, and time passes.
  Decision Look() {
    Decision decision = Decide();
    world_.in.job.status = decision.status;
    for (SidecarFacts& sidecar : world_.in.sidecars) {
      const auto to_all = [&](const PodNotice& notice) {
        const auto* drain = std::get_if<DrainNotice>(&notice.notice);
        return notice.pod_uid == sidecar.pod_uid && drain != nullptr && drain->pod_uids->size() > 1;
      };
      if (std::any_of(decision.notices.begin(), decision.notices.end(), to_all))
        sidecar.knows_that_all_leave = true;
    }
    for (const PodDelete& gone : decision.deletes) {
      for (PodFacts& pod : world_.in.pods) {
        if (pod.uid != gone.uid) continue;
        pod.deleting = true;
        pod.delete_at = world_.in.now + std::chrono::seconds(30);
      }
    }
    world_.in.now += std::chrono::seconds(1);
    return decision;
  }
  const api::Condition& Preempted() { return *world_.in.job.status.Find("Preempted"); }
  static int Told(const Decision& decision) {
    return static_cast<int>(
        std::count_if(decision.events.begin(), decision.events.end(),
                      [](const Event& event) { return event.reason == "Preempted"; }));
  }
  World world_ = World::Training(2);
};

TEST_F(WholeJobPlanTest, AllItsPodsGoTogetherAndAreToldSo) {
  DemandAll();
  const Decision decision = Look();
  EXPECT_THAT(decision.deletes, IsEmpty()) << "their sidecars hear first that all leave";
  EXPECT_THAT(decision.creates, IsEmpty());
  ASSERT_EQ(decision.notices.size(), 2u);
  for (const PodNotice& notice : decision.notices) {
    ASSERT_TRUE(std::holds_alternative<DrainNotice>(notice.notice));
    const auto& drain = std::get<DrainNotice>(notice.notice);
    EXPECT_THAT(*drain.pod_uids, ElementsAre(World::Uid(0), World::Uid(1)));
    EXPECT_EQ(drain.reason, "Preempted");
  }
  EXPECT_TRUE(Preempted().status);
  EXPECT_EQ(Preempted().reason, "JobLeaves");
  EXPECT_EQ(Preempted().message,
            "all pods leave for job default/high of priority 5, which needs 3 pods to start; this "
            "job stands in line again and then starts from its checkpoint");
  EXPECT_EQ(Told(decision), 1);
  EXPECT_EQ(decision.status.state, "Pending");
  EXPECT_EQ(decision.status.Find("Running")->reason, "Preempted");
  EXPECT_EQ(decision.status.Find("Suspended"), nullptr);
  EXPECT_EQ(decision.status.start_time, "2026-01-31T11:00:00Z") << "it keeps its place in line";
  EXPECT_EQ(decision.status.running_since, "") << "its time begins anew";
  ASSERT_TRUE(decision.holding);
  EXPECT_EQ(decision.holding->pods.size(), 2u) << "the line may not have seen them leave";
  // What they were told holds, whoever asks for their room.
  world_.in.demands.clear();
  const Decision next = Look();
  EXPECT_THAT(Deleted(next), ElementsAre("digits-worker-0", "digits-worker-1"));
  EXPECT_EQ(next.deletes.front().reason, "Preempted");
}

TEST_F(WholeJobPlanTest, ItStandsInLineAgainOnceTheyHaveGone) {
  DemandAll();
  Look();
  Look();
  world_.in.demands.clear();
  Decision decision = Look();
  EXPECT_THAT(decision.creates, IsEmpty()) << "the pods of before still end";
  EXPECT_THAT(decision.deletes, IsEmpty());
  EXPECT_EQ(Preempted().reason, "JobLeaves");
  EXPECT_EQ(Told(decision), 0) << "once";
  world_.Remove(0).Remove(1);
  world_.in.gang_fit = scheduler::GangFit{.fit = 0, .why = "no room"};
  decision = Look();
  EXPECT_EQ(decision.kept_back, 2);
  EXPECT_EQ(decision.gang_state, scheduler::GangState::kWaits);
  EXPECT_EQ(decision.in_line_since, *api::ParseTime("2026-01-31T11:00:00Z"));
  EXPECT_FALSE(decision.holding);
  EXPECT_TRUE(Preempted().status);
  EXPECT_EQ(Preempted().reason, "JobWaits");
  EXPECT_THAT(Preempted().message, HasSubstr("default/high"));
  EXPECT_EQ(decision.status.state, "Pending");
  EXPECT_EQ(decision.status.faults, 0);
}

TEST_F(WholeJobPlanTest, ThePreemptionIsOverWhenItHasPodsToStartWith) {
  DemandAll();
  Look();
  world_.in.demands.clear();
  world_.Remove(0).Remove(1);
  Look();
  ASSERT_EQ(Preempted().reason, "JobWaits");
  world_.Running(0).Running(1);
  Look();
  EXPECT_FALSE(Preempted().status);
  EXPECT_EQ(Preempted().reason, "StartsAgain");
  world_.Pod(1).deleting = true;
  world_.Pod(1).delete_at = world_.in.now + std::chrono::seconds(30);
  EXPECT_THAT(Look().deletes, IsEmpty()) << "a pod that goes takes no other one along any more";
}

TEST_F(WholeJobPlanTest, AJobWhoseRanksHaveAgreedToEndEnds) {
  DemandAll();
  world_.Sidecar(0).finished_epoch = world_.in.view->epoch;
  EXPECT_THAT(Decide().deletes, IsEmpty());
}

TEST_F(WholeJobPlanTest, ADemandForPodsThatAreGoneIsNone) {
  world_.in.demands.push_back({"uid-of-before", "default/high", 5, 3, true});
  EXPECT_THAT(Decide().deletes, IsEmpty());
}

TEST_F(WholeJobPlanTest, AJobThatIsSuspendedMeanwhileIsSuspended) {
  DemandAll();
  Look();
  world_.in.job.spec.run_policy.suspend = true;
  const Decision decision = Look();
  EXPECT_EQ(decision.status.state, "Suspended");
  EXPECT_FALSE(decision.status.Is("Preempted"));
}

TEST_F(WholeJobPlanTest, AJobWhosePodsAreOfATemplateOfBeforeIsSuspended) {
  DemandAll();
  world_.Pod(0).made_from = "before";
  world_.in.job.spec.pods_digest = "now";
  const Decision decision = Look();
  EXPECT_EQ(decision.status.state, "Suspended");
  EXPECT_FALSE(decision.status.Is("Preempted"));
}

// A job that others make room for.
Snapshot JobThatNeedsRoom(int replicas) {
  Snapshot in;
  in.now = kNow;
  in.job.name = "high";
  in.job.uid = "high-uid";
  in.job.spec.worker.replicas = in.job.spec.elastic_policy.min_replicas = replicas;
  return in;
}

TEST_F(PreemptionPlanTest, AJobThatOthersMakeRoomForSaysWho) {
  Snapshot in = JobThatNeedsRoom(2);
  in.gang_fit = scheduler::GangFit{.why = "0/1 nodes are available: 1 Insufficient gpu.",
                                   .leavers = {{"ns/low", "low-worker-1", true},
                                               {"ns/mid", "mid-worker-7"},
                                               {"ns/mid", "mid-worker-6"}}};
  const std::string leavers =
      "3 pods of less important jobs leave for it: low-worker-1 of job ns/low (all that it "
      "has), mid-worker-7, mid-worker-6 of job ns/mid";
  Decision decision = Plan(in);
  const api::Condition* scheduled = decision.status.Find("Scheduled");
  ASSERT_NE(scheduled, nullptr);
  EXPECT_EQ(scheduled->reason, "Preempting");
  EXPECT_THAT(scheduled->message, HasSubstr("Insufficient gpu"));
  EXPECT_THAT(scheduled->message, HasSubstr(leavers));
  const auto tells = [&](const Decision& of) {
    return std::count_if(of.events.begin(), of.events.end(), [&](const Event& event) {
      return event.reason == "Preempting" && event.message == leavers;
    });
  };
  EXPECT_EQ(tells(decision), 1);
  in.job.status = decision.status;
  EXPECT_EQ(tells(Plan(in)), 0) << "once";
  in.gang_fit->fit = 2;
  in.gang_fit->leavers.clear();
  EXPECT_EQ(Plan(in).status.Find("Scheduled")->reason, "WaitingForPods");
}

TEST_F(PreemptionPlanTest, OfManyJobsThatMakeRoomTheLargestAreNamed) {
  Snapshot in = JobThatNeedsRoom(1);
  in.gang_fit = scheduler::GangFit{.why = "0/1 nodes are available: 1 Insufficient gpu."};
  for (int i = 0; i < 1000; ++i) {
    in.gang_fit->leavers.push_back({"ns/j" + std::to_string(i), "p-" + std::to_string(i)});
  }
  in.gang_fit->leavers.push_back({"ns/j999", "q"});
  const api::Condition scheduled = *Plan(in).status.Find("Scheduled");
  EXPECT_THAT(scheduled.message, HasSubstr("1001 pods of less important jobs leave for it: p-999"));
  EXPECT_THAT(scheduled.message, HasSubstr(" and of 995 more jobs"));
  EXPECT_LT(scheduled.message.size(), 500u);
}

}  // namespace
}  // namespace ringmaster::planner
