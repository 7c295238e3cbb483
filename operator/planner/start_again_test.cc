// No pod has the state any more: the job starts again from its checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/testing/stalled.h"

namespace ringmaster::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(StartAgainTest, WhenNobodyOfTheViewLivesNothingIsWaitedForAndTheJobStartsAgain) {
  Stalled job(2);
  job.ProvenDead(0).ProvenDead(1).in.view_since = kNow;
  EXPECT_EQ(Plan(job.in).recover, 2u);
  job.QuorumLost({}).Add(2).Sidecar(2).ready = false;
  job.Add(3);
  EXPECT_EQ(Plan(job.in).first_view, nullptr) << "they have not reported";
  job.QuorumLost({2, 3});
  Decision out = Plan(job.in);
  EXPECT_EQ(out.status.Find("Rebuilding")->reason, "StartingAgain");
  job.Sidecar(2).ready = true;
  out = Plan(job.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.first_view->epoch, membership::MakeEpoch(2, 1));
  EXPECT_EQ(out.first_view->reason, membership::Reason::kBootstrap);
  EXPECT_THAT(PodsOf(out.first_view), ElementsAre("digits-worker-2", "digits-worker-3"));
  EXPECT_THAT(Reasons(out), testing::Contains("StartedAgain"));
}

TEST(StartAgainTest, WhoDoesNotComeToInitThenFailsTheJobInItsTime) {
  Stalled job(1);
  job.ProvenDead(0).QuorumLost({}).Add(1).Sidecar(1).ready = false;
  job.in.job.status = Plan(job.in).status;
  EXPECT_FALSE(job.in.job.status.Is("Failed"))
      << "the pod has run for longer than that, but others trained";
  job.in.now += seconds(job.in.job.spec.init_timeout_seconds);
  const api::Status late = Plan(job.in).status;
  ASSERT_TRUE(late.Is("Failed"));
  EXPECT_EQ(late.Find("Failed")->reason, "InitTimeout");
}

TEST(StartAgainTest, AMemberThatMayLiveForbidsToStartAgain) {
  Stalled job(2);
  job.ProvenDead(0).Silent(1).Add(2).Add(3);
  EXPECT_EQ(Plan(job.in).recover, 0u);
  job.QuorumLost({2, 3});
  EXPECT_EQ(Plan(job.in).first_view, nullptr);
}

TEST(StartAgainTest, WorkersThatHaveBeenInAViewAreStartedAgainBeforeTheJobIs) {
  Stalled job(2);
  job.ProvenDead(1).QuorumLost({0}).Sidecar(0).report->resigned = true;
  Decision out = Plan(job.in);
  EXPECT_EQ(out.first_view, nullptr);
  const auto asked = std::find_if(
      out.notices.begin(), out.notices.end(),
      [](const PodNotice& sent) { return std::holds_alternative<RecoverNotice>(sent.notice); });
  ASSERT_NE(asked, out.notices.end());
  EXPECT_TRUE(std::get<RecoverNotice>(asked->notice).fresh_workers);
  job.Sidecar(0).candidate.workers = {{0, 2, "t", "s", true, false}};
  job.QuorumLost({0}).Sidecar(0).report->resigned = true;
  EXPECT_NE(Plan(job.in).first_view, nullptr);
}

TEST(StartAgainTest, AForkIsSaidWhereTheJobStartsAgainToo) {
  Stalled job(2);
  job.Silent(0).Silent(1).Fork().Add(2).Add(3).QuorumLost({2, 3});
  for (const int i : {2, 3}) job.Sidecar(i).report->view = nullptr;
  job.in.job.spec.worker.replicas = 4;
  const Decision out = Plan(job.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_THAT(Reasons(out), testing::IsSupersetOf({"StartedAgain", "ForkPossible"}));
}

TEST(StartAgainTest, FreshWorkersAreNotStartedAgain) {
  Stalled job(2);
  job.ProvenDead(1).Add(2).QuorumLost({0, 2}).Sidecar(0).report->resigned = true;
  for (const PodNotice& sent : Plan(job.in).notices) {
    const auto* notice = std::get_if<RecoverNotice>(&sent.notice);
    if (notice == nullptr) continue;
    EXPECT_EQ(notice->fresh_workers, sent.pod_uid == "uid-0");
  }
}

// All workers of a ring of two ended with this code, in living pods; their successors exist.
Stalled KilledInPlace(int exit_code) {
  Stalled job(2);
  job.QuorumLost({0, 1});
  for (const int index : {0, 1}) {
    SidecarFacts& sidecar = job.Sidecar(index);
    sidecar.candidate.workers = {{0, 2, "t", "s", true, false}};
    sidecar.report->candidate = sidecar.candidate;
    sidecar.report->resigned = true;
    sidecar.last_exit = exit_code;
  }
  return job;
}

// The record has the view that was decided for `job`.
Decision Begun(Stalled job) {
  const Decision out = Plan(job.in);
  EXPECT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.status.faults, 0) << "not written yet, and may be decided again";
  job.in.view = out.first_view;
  return Plan(job.in);
}

TEST(StartAgainTest, ThatAllWorkersWereKilledIsOneFaultOnceTheJobHasBegunAgain) {
  Stalled job = KilledInPlace(137);
  const Decision out = Begun(job);
  EXPECT_EQ(out.status.faults, 1);
  job.in.job.status = out.status;
  job.in.view = Plan(KilledInPlace(137).in).first_view;
  EXPECT_EQ(Plan(job.in).status.faults, 1) << "counted once";
}

TEST(StartAgainTest, EveryStartFromTheCheckpointIsCountedOnce) {
  Stalled lost(2);
  lost.ProvenDead(0).ProvenDead(1).Add(2).Add(3).QuorumLost({2, 3});
  Decision out = Plan(lost.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.status.restarts_from_checkpoint, 0) << "not written yet, and may be decided again";
  const membership::ViewPtr first = out.first_view;
  lost.in.job.status = out.status;
  lost.in.view = first;
  out = Plan(lost.in);
  EXPECT_EQ(out.status.restarts_from_checkpoint, 1);
  EXPECT_EQ(Begun(KilledInPlace(137)).status.restarts_from_checkpoint, 1);
  lost.in.job.status = out.status;
  EXPECT_EQ(Plan(lost.in).status.restarts_from_checkpoint, 1) << "counted once";
}

TEST(StartAgainTest, AStartFromTheCheckpointIsCountedWhenItsFirstViewWasNeverSeen) {
  Stalled lost(2);
  lost.ProvenDead(0).ProvenDead(1).Add(2).Add(3).QuorumLost({2, 3});
  Decision out = Plan(lost.in);
  lost.in.job.status = out.status;
  membership::View later = *out.first_view;
  ++later.epoch;
  for (const auto& [reason, counted] :
       {std::pair{membership::Reason::kPodJoined, 1}, {membership::Reason::kQuorumRecovered, 0}}) {
    later.reason = reason;
    lost.in.view = std::make_shared<const membership::View>(later);
    EXPECT_EQ(Plan(lost.in).status.restarts_from_checkpoint, counted)
        << membership::ReasonText(reason);
  }
}

TEST(StartAgainTest, AJobThatGoesOnWithWhatIsLeftDoesNotBeginAgain) {
  Stalled job(3);
  membership::View later = *job.in.view;
  later.epoch = membership::MakeEpoch(2, 1);
  later.reason = membership::Reason::kQuorumRecovered;
  job.in.job.status.epoch = job.in.view->epoch;
  job.in.view = std::make_shared<const membership::View>(later);
  EXPECT_EQ(Plan(job.in).status.restarts_from_checkpoint, 0);
}

TEST(StartAgainTest, AfterTheLastFaultThatBackoffLimitAllowsTheJobFailsInstead) {
  Stalled job = KilledInPlace(137);
  job.in.job.spec.run_policy.backoff_limit = 1;
  EXPECT_NE(Plan(job.in).first_view, nullptr);
  job.in.job.status.faults = 1;
  const Decision out = Plan(job.in);
  EXPECT_EQ(out.first_view, nullptr);
  ASSERT_TRUE(out.status.Is("Failed"));
  EXPECT_EQ(out.status.Find("Failed")->reason, "BackoffLimitExceeded");
  EXPECT_THAT(out.status.Find("Failed")->message,
              HasSubstr("failed 2 times; backoffLimit is 1; the last time: all workers that had"));
  EXPECT_FALSE(out.status.Is("Rebuilding"));
}

TEST(StartAgainTest, WhatIsNobodysFaultOrCountedAlreadyIsNoFaultWhenTheJobStartsAgain) {
  EXPECT_EQ(Begun(KilledInPlace(128 + 11)).status.faults, 0) << "counted as the workers crashed";
  Stalled ignored = KilledInPlace(137);
  ignored.in.job.spec.failure_policy.rules = {
      {.on_exit_codes = {137}, .action = api::FailureAction::kIgnore}};
  EXPECT_EQ(Begun(ignored).status.faults, 0);
  Stalled drained = KilledInPlace(137);
  drained.Pod(0).drain_reason = drained.Pod(1).drain_reason = "Evicted";
  drained.Add(2).Add(3).QuorumLost({2, 3});
  EXPECT_EQ(Begun(drained).status.faults, 0);
  Stalled lost(2);  // lost with their nodes
  lost.ProvenDead(0).ProvenDead(1).Add(2).Add(3).QuorumLost({2, 3});
  lost.Pod(0).reason = lost.Pod(1).reason = "NodeLost";
  EXPECT_EQ(Begun(lost).status.faults, 0);
}

}  // namespace
}  // namespace ringmaster::planner
