#include "operator/kueue/next_write.h"

#include <gmock/gmock.h>

#include "operator/kueue/testing/workloads.h"

namespace ringmaster::kueue {
namespace {

using Kind = Write::Kind;
using testing::AdmittedWith;
using testing::Evicted;
using testing::Pod;
using testing::QueuedJob;
using testing::SetCondition;
using testing::Waiting;

const api::Time kNow = *api::ParseTime("2026-01-31T12:00:00Z");

JobNeeds Needs() { return {.wanted = 4, .least = 2, .now = kNow}; }
JobNeeds WithPods(int running) {
  JobNeeds needs = Needs();
  needs.pods_left = true;
  needs.pods_alive = needs.pods_running = running;
  return needs;
}
Json Wanted() { return BuildWorkload(QueuedJob(), Pod(), std::nullopt); }
Json Admitted(int pods = 4) { return AdmittedWith(QueuedJob(), pods); }
Write Next(const JobNeeds& needs, const Json& live) { return NextWrite(needs, &live, Wanted()); }

// A condition in a write, as "True Started"; empty if it is absent.
std::string Said(const Write& write, const char* type) {
  const Json* condition = FindCondition(write.body, type);
  if (condition == nullptr) return "";
  return (*condition)["status"].get<std::string>() + " " +
         (*condition)["reason"].get<std::string>();
}

TEST(NextWriteTest, AJobInAQueueGetsAWorkload) {
  const Write write = NextWrite(Needs(), nullptr, Wanted());
  EXPECT_EQ(write.kind, Kind::kCreate);
  EXPECT_EQ(write.body, Wanted());
}

TEST(NextWriteTest, NoneIsMadeForAJobThatIsSuspendedOrEndedOrStillHasPods) {
  JobNeeds suspended = Needs();
  suspended.wants_quota = false;
  EXPECT_EQ(NextWrite(suspended, nullptr, Wanted()).kind, Kind::kNothing);
  JobNeeds ended = Needs();
  ended.failed = true;
  EXPECT_EQ(NextWrite(ended, nullptr, Wanted()).kind, Kind::kNothing);
  EXPECT_EQ(NextWrite(WithPods(2), nullptr, Wanted()).kind, Kind::kNothing);
}

TEST(NextWriteTest, AnotherSizeIsAskedForWhileItWaitsAndNotWhileItHoldsQuota) {
  const Json smaller =
      BuildWorkload(QueuedJob({{"worker", {{"replicas", 3}}}}), Pod(), std::nullopt);
  const Json waiting = Waiting(QueuedJob());
  EXPECT_EQ(NextWrite(Needs(), &waiting, Wanted()).kind, Kind::kNothing);
  const Write write = NextWrite(Needs(), &waiting, smaller);
  EXPECT_EQ(write.kind, Kind::kChange);
  EXPECT_EQ(write.body["metadata"]["resourceVersion"], "7");
  EXPECT_EQ(write.body["spec"]["podSets"][0]["count"], 3);
  EXPECT_EQ(write.body["spec"]["priorityClassRef"], nullptr);
  EXPECT_FALSE(write.body["spec"].contains("active")) << "that is people's";
  const Json admitted = Admitted();
  EXPECT_NE(NextWrite(Needs(), &admitted, smaller).kind, Kind::kChange);
}

TEST(NextWriteTest, PodsAreReadyWhenTheJobCanTrain) {
  EXPECT_EQ(Said(Next(WithPods(1), Admitted()), kPodsReady), "False WaitForStart");
  const Write started = Next(WithPods(2), Admitted());
  EXPECT_EQ(started.kind, Kind::kChangeStatus);
  EXPECT_EQ(Said(started, kPodsReady), "True Started");
  EXPECT_EQ(Said(started, kAdmitted), "True Any") << "the others are kept";
  Json ready = Admitted();
  SetCondition(&ready, kPodsReady, true, "Started");
  EXPECT_EQ(Next(WithPods(3), ready).kind, Kind::kNothing);
  EXPECT_EQ(Said(Next(WithPods(1), ready), kPodsReady), "False WaitForRecovery");
  SetCondition(&ready, kPodsReady, false, "WaitForRecovery");
  EXPECT_EQ(Next(WithPods(1), ready).kind, Kind::kNothing);
  EXPECT_EQ(Said(Next(WithPods(2), ready), kPodsReady), "True Recovered");
}

TEST(NextWriteTest, QuotaIsReleasedWhenTheLastPodOfAnEvictedJobHasEnded) {
  const Json evicted = Evicted(Admitted(), "Preempted");
  EXPECT_EQ(Next(WithPods(2), evicted).kind, Kind::kNothing);
  const Write write = Next(Needs(), evicted);
  ASSERT_EQ(write.kind, Kind::kChangeStatus);
  EXPECT_EQ(write.body["status"]["admission"], nullptr);
  EXPECT_TRUE(write.body["status"].at("reclaimablePods").is_null()) << "nothing of it is left over";
  EXPECT_EQ(Said(write, kQuotaReserved), "False Pending");
  EXPECT_EQ(Said(write, kAdmitted), "False NoReservation");
  EXPECT_EQ(Said(write, kRequeued), "True Preempted");
  EXPECT_EQ(Said(write, kPodsReady), "False WaitForStart");
  EXPECT_EQ(Said(write, kEvicted), "True Preempted") << "that is Kueue's";
}

TEST(NextWriteTest, WhatIsEvictedForItselfStandsInLineWhenKueueSaysSo) {
  for (const char* reason :
       {"PodsReadyTimeout", "Deactivated", "AdmissionCheck", "ClusterQueueStopped"}) {
    EXPECT_EQ(Said(Next(Needs(), Evicted(Admitted(), reason)), kRequeued),
              std::string("False ") + reason);
  }
  EXPECT_EQ(Said(Next(Needs(), Evicted(Admitted(), "NodeFailures")), kRequeued),
            "True NodeFailures");
}

TEST(NextWriteTest, ASmallerJobGivesQuotaBackAndNeverTakesItAgain) {
  Json live = Admitted();
  SetCondition(&live, kPodsReady, true, "Started");
  JobNeeds smaller = WithPods(3);
  smaller.wanted = 3;
  const Write write = Next(smaller, live);
  ASSERT_EQ(write.kind, Kind::kChangeStatus);
  EXPECT_EQ(write.body["status"]["reclaimablePods"], Json({{{"name", "worker"}, {"count", 1}}}));
  live["status"]["reclaimablePods"] = write.body["status"]["reclaimablePods"];
  EXPECT_EQ(Next(WithPods(3), live).kind, Kind::kNothing) << "four are wanted again";
}

// Six of eight pods are admitted. Kueue counts six of them until more than two of the eight are
// reclaimable.
TEST(NextWriteTest, WhatIsGivenBackIsCountedFromWhatTheJobAsksFor) {
  const api::HorovodJob job = QueuedJob({{"worker", {{"replicas", 8}}}});
  Json live = AdmittedWith(job, 6);
  SetCondition(&live, kPodsReady, true, "Started");
  JobNeeds needs = WithPods(4);
  needs.wanted = 4;
  const Write write = NextWrite(needs, &live, live);
  ASSERT_EQ(write.kind, Kind::kChangeStatus);
  EXPECT_EQ(write.body["status"]["reclaimablePods"], Json({{{"name", "worker"}, {"count", 4}}}));
  live["status"]["reclaimablePods"] = write.body["status"]["reclaimablePods"];
  EXPECT_EQ(ReadWorkload(live).Granted(), 4);
  EXPECT_EQ(NextWrite(needs, &live, live).kind, Kind::kNothing);
  live["status"]["reclaimablePods"][0]["count"] = 1;
  EXPECT_EQ(ReadWorkload(live).Granted(), 6);
}

TEST(NextWriteTest, QuotaOfPodsThatStillRunIsNotGivenBack) {
  Json live = Admitted();
  SetCondition(&live, kPodsReady, true, "Started");
  JobNeeds needs = WithPods(4);
  needs.wanted = 3;
  EXPECT_EQ(Next(needs, live).kind, Kind::kNothing);
}

TEST(NextWriteTest, TheNextAdmissionIsForAllPodsAgain) {
  Json live = Waiting(QueuedJob());
  live["status"]["reclaimablePods"] = {{{"name", "worker"}, {"count", 1}}};
  const Write write = Next(Needs(), live);
  ASSERT_EQ(write.kind, Kind::kChangeStatus);
  EXPECT_EQ(write.body["status"]["reclaimablePods"], nullptr);
}

TEST(NextWriteTest, ASuspendedJobGivesItsWorkloadUpWhenItsPodsHaveEnded) {
  for (const Json& live : {Admitted(), Waiting(QueuedJob()), Evicted(Admitted(), "Preempted")}) {
    JobNeeds needs = WithPods(2);
    needs.wants_quota = false;
    EXPECT_EQ(Next(needs, live).kind, Kind::kNothing);
    needs.pods_left = false;
    EXPECT_EQ(Next(needs, live).kind, Kind::kDelete);
  }
}

TEST(NextWriteTest, AnAdmissionOfNoUseIsGivenBack) {
  Json other_queue = Admitted();
  other_queue["spec"]["queueName"] = "cpus";
  Json not_admitted_yet = other_queue;
  SetCondition(&not_admitted_yet, kAdmitted, false);
  for (const Json& live : {Admitted(1), other_queue, not_admitted_yet}) {
    EXPECT_EQ(Next(WithPods(2), live).kind, Kind::kNothing);
    EXPECT_EQ(Next(Needs(), live).kind, Kind::kDelete);
  }
}

TEST(NextWriteTest, AJobThatWasSuspendedGivesBackTheQuotaThatItHad) {
  JobNeeds needs = WithPods(2);
  needs.gives_up_admission = true;
  EXPECT_EQ(Next(needs, Admitted()).kind, Kind::kNothing);
  needs.pods_left = false;
  EXPECT_EQ(Next(needs, Admitted()).kind, Kind::kDelete);
  EXPECT_EQ(Next(needs, Waiting(QueuedJob())).kind, Kind::kNothing);
}

TEST(NextWriteTest, TheEndOfTheJobIsSaidOnce) {
  JobNeeds needs = Needs();
  needs.succeeded = true;
  needs.end = "all ranks are done";
  EXPECT_EQ(Said(Next(needs, Admitted()), kFinished), "True Succeeded");
  needs.succeeded = false;
  needs.failed = true;
  EXPECT_EQ(Said(Next(needs, Evicted(Admitted(), "Preempted")), kFinished), "True Failed");
  needs.pods_left = true;
  EXPECT_EQ(Next(needs, Admitted()).kind, Kind::kNothing) << "they use the quota";
  needs.pods_left = false;
  Json finished = Admitted();
  SetCondition(&finished, kFinished, true, "Failed");
  EXPECT_EQ(Next(needs, finished).kind, Kind::kNothing);
}

}  // namespace
}  // namespace ringmaster::kueue
