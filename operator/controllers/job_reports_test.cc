#include "operator/controllers/job_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::controllers {
namespace {

using membership::MakeEpoch;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

membership::ViewPtr View(std::uint64_t number) {
  membership::View view;
  view.epoch = MakeEpoch(1, number);
  return std::make_shared<const membership::View>(view);
}

job::Rebuild Figures(std::uint64_t epoch, const char* reason, double decide,
                     std::int64_t steps_lost) {
  return {
      .epoch = epoch, .reason = reason, .seconds = {{"decide", decide}}, .steps_lost = steps_lost};
}

job::WorkerExit Exit(int slot, std::uint64_t incarnation, int code = 1) {
  return {.slot = slot, .exit_code = code, .incarnation = incarnation};
}

planner::Time At(int second) { return planner::Time() + seconds(second); }

void Connect(JobReports* reports, const std::string& pod, int second = 0) {
  reports->Connected({.pod_name = pod + "-name", .pod_uid = pod}, At(second));
}

planner::SidecarFacts Facts(const JobReports& reports, const std::string& pod) {
  for (const planner::SidecarFacts& sidecar : reports.Facts().sidecars) {
    if (sidecar.pod_uid == pod) return sidecar;
  }
  ADD_FAILURE() << "nothing is known of " << pod;
  return {};
}

TEST(JobReportsTest, EveryReportIsInTheFactsOfItsSidecar) {
  JobReports reports;
  Connect(&reports, "a", 1);
  Connect(&reports, "b", 2);
  reports.Take("a", ReadinessReport{true, {3}, {.pod = {.uid = "a"}}}, At(3));
  reports.Take("a", HealthReport{true, seconds(2)}, At(4));
  reports.Take("a", StallsReport{{{}, {}}}, At(5));
  reports.Take("a", StepAwaitedReport{seconds(1)}, At(6));
  reports.Take("a", AllLeaveReport{}, At(6));
  reports.Take("a", FailingGpusReport{{{.slot = 1}}}, At(6));
  reports.Take("a", FinishedReport{7}, At(7));
  reports.Take("a", membership::RecoveryReport{.lineage = 2}, At(8));
  const planner::SidecarFacts a = Facts(reports, "a"), b = Facts(reports, "b");
  EXPECT_TRUE(a.connected && a.ready && a.able);
  EXPECT_EQ(a.ready_since, At(3));
  EXPECT_THAT(a.missing_slots, ElementsAre(3));
  EXPECT_EQ(a.candidate.pod.uid, "a");
  EXPECT_EQ(a.unable_since, At(2));
  EXPECT_THAT(a.stalls, SizeIs(2));
  EXPECT_EQ(a.stalls_at, At(5));
  EXPECT_EQ(a.step_awaited_since, At(5));
  EXPECT_EQ(a.failing_gpus.at(0).slot, 1);
  EXPECT_EQ(a.finished_epoch, 7u);
  EXPECT_TRUE(a.knows_that_all_leave);
  EXPECT_EQ(a.report->lineage, 2u);
  EXPECT_TRUE(b.connected);
  EXPECT_FALSE(b.ready || b.able || b.report || b.step_awaited_since || b.knows_that_all_leave);
  EXPECT_EQ(b.unable_since, At(2)) << "from when it came";
}

TEST(JobReportsTest, ReadySinceIsWhenItBecameReadyAndAnEndedStepIsNotAwaited) {
  JobReports reports;
  Connect(&reports, "a");
  for (const int second : {1, 2}) {
    reports.Take("a", ReadinessReport{.ready = true}, At(second));
    EXPECT_EQ(Facts(reports, "a").ready_since, At(1));
  }
  reports.Take("a", ReadinessReport{}, At(3));
  EXPECT_FALSE(Facts(reports, "a").ready_since);
  reports.Take("a", StepAwaitedReport{seconds(1)}, At(4));
  reports.Take("a", StepAwaitedReport{seconds(0)}, At(5));
  EXPECT_FALSE(Facts(reports, "a").step_awaited_since);
  reports.Take("a", FinishedReport{7}, At(6));
  reports.Take("a", FinishedReport{5}, At(7));
  EXPECT_EQ(Facts(reports, "a").finished_epoch, 7u) << "it only rises";
}

TEST(JobReportsTest, OfASidecarThatComesBackOnlyWhatCannotBeTakenBackHolds) {
  for (const bool keep : {false, true}) {
    JobReports reports(keep);
    Connect(&reports, "a");
    reports.Take("a", ReadinessReport{.ready = true}, At(1));
    reports.Take("a", HealthReport{true, seconds(0)}, At(1));
    reports.Take("a", FinishedReport{7}, At(1));
    reports.Take("a", StallsReport{{{}}}, At(1));
    reports.Take("a", StepAwaitedReport{seconds(1)}, At(1));
    reports.Take("a", Exit(0, 1, 139), At(1));
    reports.Take("a", membership::RecoveryReport{.lineage = 2}, At(1));
    reports.Disconnected("a", At(2));
    const planner::SidecarFacts gone = Facts(reports, "a");
    EXPECT_FALSE(gone.connected || gone.ready || gone.ready_since || gone.able);
    EXPECT_FALSE(gone.step_awaited_since);
    EXPECT_THAT(gone.stalls, IsEmpty());
    EXPECT_EQ(gone.unable_since, At(2));
    EXPECT_EQ(gone.report.has_value(), keep);
    Connect(&reports, "a", 3);
    const planner::SidecarFacts back = Facts(reports, "a");
    EXPECT_TRUE(back.connected);
    EXPECT_EQ(back.finished_epoch, 7u);
    EXPECT_EQ(back.last_exit, 139);
    EXPECT_EQ(back.report.has_value(), keep);
    EXPECT_EQ(back.unable_since, At(3));
  }
}

TEST(JobReportsTest, TheNewestViewCountsAndTheSlowestFiguresOfEach) {
  JobReports reports;
  Connect(&reports, "a");
  reports.Take("a", ViewReport::Whole(View(3), Figures(3, "PodLost", .2, 1)), At(0));
  reports.Take("a", ViewReport::Whole(View(2), Figures(3, "", .1, 4)), At(0));
  const JobFacts facts = reports.Facts();
  EXPECT_EQ(facts.view->epoch, MakeEpoch(1, 3));
  EXPECT_EQ(facts.sidecars.at(0).epoch, MakeEpoch(1, 3));
  ASSERT_THAT(facts.rebuilds, SizeIs(1));
  EXPECT_EQ(facts.rebuilds[0].reason, "PodLost");
  EXPECT_EQ(job::TotalSeconds(facts.rebuilds[0].seconds), .2);
  EXPECT_EQ(facts.rebuilds[0].steps_lost, 4);
}

TEST(JobReportsTest, AViewMayBeKnownByItsEpochAloneAndSinceItWasFirstHeardOf) {
  JobReports reports;
  Connect(&reports, "a", 1);
  EXPECT_EQ(reports.Facts().told_view.epoch, 0u);
  reports.Take("a", ViewReport::Whole(View(2), std::nullopt), At(2));
  reports.Take("a", ViewReport{MakeEpoch(1, 3), nullptr, Figures(3, "PodLost", .2, 1)}, At(3));
  reports.Take("a", ViewReport{MakeEpoch(1, 3), nullptr, std::nullopt}, At(4));
  const JobFacts facts = reports.Facts();
  EXPECT_EQ(facts.view->epoch, MakeEpoch(1, 2));
  EXPECT_EQ(facts.told_view.epoch, MakeEpoch(1, 3));
  EXPECT_EQ(facts.told_view.since, At(3));
  EXPECT_EQ(facts.sidecars.at(0).epoch, MakeEpoch(1, 3));
  EXPECT_THAT(facts.rebuilds, SizeIs(1));
}

TEST(JobReportsTest, ASidecarThatConnectsTellsOfItsView) {
  JobReports reports;
  job::Registration registration;
  registration.pod_uid = "a";
  registration.epoch = MakeEpoch(1, 7);
  reports.Connected(registration, At(5));
  EXPECT_EQ(reports.Facts().told_view.epoch, MakeEpoch(1, 7));
  EXPECT_EQ(reports.Facts().told_view.since, At(5));
}

TEST(JobReportsTest, AnExitIsKeptOnceUntilItIsCounted) {
  JobReports reports;
  Connect(&reports, "a");
  for (const std::uint64_t incarnation : {1, 1, 2, 1}) {
    EXPECT_TRUE(reports.Take("a", Exit(0, incarnation), At(0)));
  }
  ASSERT_THAT(reports.Facts().exits, SizeIs(2));
  EXPECT_EQ(reports.Facts().exits[0].pod_name, "a-name");
  reports.ExitsCounted(1);
  ASSERT_THAT(reports.Facts().exits, SizeIs(1));
  EXPECT_EQ(reports.Facts().exits[0].incarnation, 2u);
  reports.ExitsCounted(9);
  EXPECT_THAT(reports.Facts().exits, IsEmpty());
  job::WorkerExit asked_for = Exit(0, 3, 143);
  asked_for.by_us = true;
  reports.Take("a", asked_for, At(0));
  EXPECT_EQ(Facts(reports, "a").last_exit, 1) << "the end that was asked for tells nothing";
}

TEST(JobReportsTest, OfExitsThatAreToldAgainTheUnknownOnesAreKept) {
  JobReports reports;
  Connect(&reports, "a");
  reports.Take("a", Exit(0, 1), At(0));
  reports.ExitsCounted(1);
  EXPECT_TRUE(reports.Take("a", EarlierExits{{Exit(0, 1), Exit(0, 2, 139), Exit(1, 1)}}, At(0)));
  const auto exits = reports.Facts().exits;
  ASSERT_THAT(exits, SizeIs(2));
  for (const job::WorkerExit& exit : exits) {
    EXPECT_TRUE(exit.told_before);
    EXPECT_EQ(exit.pod_uid, "a");
    EXPECT_EQ(exit.pod_name, "a-name");
  }
  EXPECT_EQ(exits[0].incarnation, 2u);
  EXPECT_EQ(Facts(reports, "a").last_exit, 1);
  reports.Take("a", Exit(1, 2), At(0));
  EXPECT_FALSE(reports.Facts().exits.back().told_before);
  EXPECT_FALSE(reports.Take("a", EarlierExits{{Exit(0, 3), Exit(1'024, 1)}}, At(0)));
}

TEST(JobReportsTest, WhatIsKeptIsBounded) {
  JobReports reports;
  Connect(&reports, "a");
  EXPECT_FALSE(reports.Take("a", Exit(-1, 1), At(0)));
  EXPECT_FALSE(reports.Take("a", Exit(1'024, 1), At(0)));
  for (std::uint64_t i = 1; i <= 5'000; ++i) {
    reports.Take("a", Exit(1'023, i), At(0));
    reports.Take("a", ViewReport::Whole(nullptr, Figures(i, "", 0, 0)), At(0));
  }
  EXPECT_THAT(reports.Facts().exits, SizeIs(4'096));
  ASSERT_THAT(reports.Facts().rebuilds, SizeIs(64));
  EXPECT_EQ(reports.Facts().rebuilds.back().epoch, 5'000u) << "the newest";
}

TEST(JobReportsTest, AJobIsFullForPodsThatItDoesNotKnow) {
  JobReports reports;
  for (std::size_t i = 0; i < JobReports::kMostSidecars; ++i) {
    EXPECT_FALSE(reports.IsFullFor("another"));
    Connect(&reports, std::to_string(i));
  }
  EXPECT_TRUE(reports.IsFullFor("another"));
  EXPECT_FALSE(reports.IsFullFor("0"));
}

TEST(JobReportsTest, ThoseThatAreConnectedOrHaveAPodAreRetained) {
  JobReports reports;
  for (const char* pod : {"connected", "has-a-pod", "gone"}) {
    Connect(&reports, pod);
    reports.Take(pod, Exit(0, 1), At(0));
  }
  reports.Disconnected("has-a-pod", At(0));
  reports.Disconnected("gone", At(0));
  reports.Retain({"has-a-pod"});
  std::vector<std::string> left;
  for (const auto& sidecar : reports.Facts().sidecars) left.push_back(sidecar.pod_uid);
  EXPECT_THAT(left, ElementsAre("connected", "has-a-pod"));
  reports.ExitsCounted(3);
  for (const char* pod : {"has-a-pod", "gone"}) {
    Connect(&reports, pod);
    reports.Take(pod, Exit(0, 1), At(0));
  }
  EXPECT_THAT(reports.Facts().exits, SizeIs(1)) << "of the pod that is gone nothing is remembered";
}

}  // namespace
}  // namespace ringmaster::controllers
