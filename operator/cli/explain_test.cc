#include "operator/cli/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "operator/inspection/troubles.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const api::Time kNow = *api::ParseTime("2026-01-31T12:10:00Z");

Json Condition(const char* type, const char* status, const char* reason, const char* message) {
  return {{"type", type},
          {"status", status},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", "2026-01-31T12:05:00Z"}};
}

Json Job(std::vector<Json> conditions) {
  return {{"metadata", {{"name", "digits"}, {"namespace", "default"}}},
          {"spec", {{"worker", {{"replicas", 4}}}}},
          {"status",
           {{"conditions", conditions}, {"worldSize", 4}, {"epoch", (uint64_t{1} << 40) + 7}}}};
}

Json Pod(const char* name, const char* phase) {
  return {{"metadata", {{"name", name}, {"creationTimestamp", "2026-01-31T12:07:00Z"}}},
          {"status", {{"phase", phase}}}};
}

inspection::Inspection Trains(uint64_t step) {
  inspection::Inspection found{Job({Condition("Running", "True", "Training", "4 workers train")}),
                               {Pod("p0", "Running")},
                               {},
                               {}};
  inspection::SidecarStatus status;
  status.state = "Training";
  status.workers = {{.slot = 0, .rank = 0, .step = step}, {.slot = 1, .rank = 1, .step = step - 1}};
  found.answers["p0"] = status;
  return found;
}

std::string Why(const inspection::Inspection& found) {
  return WhyText(found, nullptr, 0, {}, kNow);
}

TEST(WhyTest, SaysTheConditionsOwnWordsTheFirstCauseFirst) {
  inspection::Inspection found{
      Job({Condition("Running", "False", "WaitingForInit", "p1 is not in init()"),
           Condition("Scheduled", "False", "WaitingForRoom", "2 pods find no node")}),
      {},
      {},
      {}};
  EXPECT_THAT(Why(found), StartsWith("digits: 2 pods find no node (WaitingForRoom, for 5m)\n"
                                     "  also: p1 is not in init() (WaitingForInit, for 5m)\n"));
}

TEST(WhyTest, OneMessageInTwoConditionsIsSaidOnce) {
  inspection::Inspection found{
      Job({Condition("Running", "False", "WaitingForProof", "p2 is silent"),
           Condition("Rebuilding", "True", "WaitingForProof", "p2 is silent")}),
      {},
      {},
      {}};
  EXPECT_THAT(Why(found), Not(HasSubstr("also")));
}

TEST(WhyTest, AConditionThatThisVersionDoesNotKnowIsSaidToo) {
  inspection::Inspection found{
      Job({Condition("Sleeping", "True", "Tired", "nobody knows why")}), {}, {}, {}};
  EXPECT_THAT(Why(found), HasSubstr("nobody knows why (Tired"));
}

TEST(WhyTest, OfAFailedJobTheReportOfTheFailureIsAll) {
  inspection::Inspection found{Job({Condition("Failed", "True", "WorkerFailed", "pod p1 failed"),
                                    Condition("Running", "False", "JobEnded", "pod p1 failed")}),
                               {},
                               {},
                               {}};
  EXPECT_EQ(WhyText(found, nullptr, 0, {"digits failed: rank 1", "  ValueError: no"}, kNow),
            "digits failed: rank 1\n  ValueError: no\n"
            "More: logs digits, describe digits\n");
  EXPECT_THAT(Why(found), StartsWith("digits: pod p1 failed (WorkerFailed"));
}

TEST(WhyTest, ASuccessHasNoTroubles) {
  inspection::Inspection found{
      Job({Condition("Succeeded", "True", "AllRanksDone", "all ranks ended with 0"),
           Condition("Running", "False", "JobEnded", "all ranks ended with 0")}),
      {},
      {},
      {}};
  EXPECT_EQ(Why(found), "digits has succeeded: all ranks ended with 0\n");
}

TEST(WhyTest, AJobThatNoOperatorKnowsSaysSo) {
  EXPECT_THAT(Why({{{"metadata", {{"name", "digits"}, {"namespace", "lab"}}}}, {}, {}, {}}),
              HasSubstr("Does one run, and does its watchNamespaces have \"lab\"?"));
}

TEST(WhyTest, AJobThatAnotherControllerManagesSaysSo) {
  EXPECT_THAT(Why({{{"metadata", {{"name", "digits"}}},
                    {"spec", {{"runPolicy", {{"managedBy", "kueue.x-k8s.io/multikueue"}}}}}},
                   {},
                   {},
                   {}}),
              HasSubstr("runPolicy.managedBy is \"kueue.x-k8s.io/multikueue\", so "));
}

TEST(WhyTest, TwoLooksTellWhetherStepsAreCompleted) {
  const inspection::Inspection before = Trains(10), same = Trains(10), after = Trains(14);
  EXPECT_THAT(WhyText(after, &before, 2, {}, kNow),
              StartsWith("digits trains: step 14, 4 more in 2 s, 4 workers, view 1.7; nothing "));
  EXPECT_THAT(WhyText(same, &before, 2, {}, kNow),
              AllOf(HasSubstr("stands at step 10: none was completed in 2 s"),
                    HasSubstr("rank 0 at 10, rank 1 at 9")));
}

TEST(WhyTest, AJobThatTrainsWithFewerWorkersThanItWantsSaysSo) {
  inspection::Inspection before = Trains(10), after = Trains(14);
  after.job["spec"] = {{"worker", {{"replicas", 3}}}, {"slotsPerWorker", 2}};
  EXPECT_THAT(WhyText(after, &before, 2, {}, kNow), HasSubstr(" 4 of 6 workers, view 1.7"));
}

// A plain Horovod script calls nothing that completes a step.
TEST(WhyTest, AScriptThatCountsNoStepsTrainsWhileTensorsGoThrough) {
  inspection::Inspection before = Trains(0), after = Trains(0);
  after.answers["p0"].workers[0].times.bytes = 4096;
  EXPECT_THAT(WhyText(after, &before, 2, {}, kNow),
              AllOf(StartsWith("digits trains: 4096 bytes went through collectives in 2 s"),
                    Not(HasSubstr("rank 0 at"))));
}

TEST(PodTroublesTest, APodWhoseScriptHasNoStateSaysThatItCannotJoin) {
  inspection::Inspection found = Trains(3);
  found.answers["p0"].state = "Joining";
  EXPECT_THAT(inspection::PodTroubles(found, kNow),
              testing::ElementsAre("p0  Running; its sidecar is Joining"));
  found.answers["p0"].workers[1].takes_state = false;
  EXPECT_THAT(inspection::PodTroubles(found, kNow),
              testing::ElementsAre(HasSubstr("its sidecar is Joining; can't join those who train: "
                                             "the script registers no state")));
}

TEST(VersionsTest, AMixedJobNamesVersionsAndPodsAndWhatItLacks) {
  inspection::Inspection found = Trains(3);
  const auto one = found.answers.begin()->second;
  found.answers = {{"p0", one}, {"p1", one}, {"p2", one}};
  EXPECT_EQ(inspection::VersionsText(found), "") << "none says its version";
  found.answers["p1"].version = found.answers["p2"].version = "0.2.0";
  EXPECT_THAT(inspection::VersionsText(found),
              StartsWith("its pods have sidecars of several versions: one too "
                         "old to say (p0), 0.2.0 (p1, p2). "));
  EXPECT_THAT(WhyText(found, nullptr, 0, {}, kNow),
              HasSubstr("also: its pods have sidecars of several"));
  EXPECT_THAT(DescribeText(found, kNow), HasSubstr("Versions:    its pods have"));
  found.answers["p0"].version = "0.2.0";
  EXPECT_EQ(inspection::VersionsText(found), "");
}

TEST(VersionsTest, AWorkerWhoseLibraryIsNotOfItsSidecarsVersionIsNamed) {
  inspection::Inspection found = Trains(3);
  for (auto& [pod, status] : found.answers) {
    status.version = "0.2.0";
    for (inspection::WorkerStatus& worker : status.workers) worker.library = "0.2.0";
  }
  EXPECT_EQ(inspection::VersionsText(found), "");
  found.answers["p0"].workers[0].library = "";
  EXPECT_EQ(inspection::VersionsText(found), "") << "it has not said hello yet";
  found.answers["p0"].workers[0].library = "0.1.0";
  EXPECT_THAT(inspection::VersionsText(found),
              StartsWith("workers have libringmaster.so of another version than their sidecar: "
                         "0.1.0 beside a sidecar of 0.2.0 (p0). They train together; "));
  found.answers["p1"].version = "0.1.0";
  EXPECT_THAT(inspection::VersionsText(found),
              HasSubstr("sidecars of several versions: 0.1.0 (p1), 0.2.0 (p0)"))
      << "both are said";
  EXPECT_THAT(inspection::VersionsText(found),
              HasSubstr("; workers have libringmaster.so of another version"));
}

TEST(PodTroublesTest, EachPodThatIsNotWellSaysWhy) {
  inspection::Inspection found = Trains(3);
  found.answers["p0"].missing_slots = {1, 2};
  Json unplaced = Pod("p1", "Pending");
  unplaced["status"]["conditions"] = {{{"type", "PodScheduled"},
                                       {"status", "False"},
                                       {"reason", "Unschedulable"},
                                       {"message", "0/3 nodes are available"}}};
  Json image = Pod("p2", "Pending");
  image["status"]["containerStatuses"] = {
      {{"name", "worker"},
       {"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "not found"}}}}}}};
  Json ended = Pod("p3", "Failed");
  ended["status"]["containerStatuses"] = {
      {{"name", "worker"},
       {"state", {{"terminated", {{"exitCode", 1}, {"message", "Trace\nValueError: no\n"}}}}}}};
  Json leaving = Pod("p4", "Running");
  leaving["metadata"]["annotations"] = {{"ringmaster.dev/drain", "Requested"}};
  found.pods.insert(found.pods.end(), {unplaced, image, ended, leaving});
  EXPECT_THAT(
      inspection::PodTroubles(found, kNow),
      testing::ElementsAre("p0  Running; slots 1, 2 not in init() yet",
                           "p1  Pending for 3m; no node: Unschedulable: 0/3 nodes are available",
                           "p2  Pending for 3m; container worker waits: ErrImagePull not found",
                           "p3  Failed; container worker ended with 1: ValueError: no",
                           "p4  Running; leaves by plan (Requested); its sidecar does not answer, "
                           "though others do"));
  EXPECT_THAT(inspection::PodTroubles(Trains(3), kNow), IsEmpty());
}

TEST(PodTroublesTest, APodTerminatesSinceItWasDeletedAndNotSinceItsGraceIsOver) {
  inspection::Inspection found = Trains(3);
  Json leaving = Pod("p1", "Running");
  leaving["metadata"]["deletionTimestamp"] = api::FormatTime(kNow + std::chrono::seconds(18));
  leaving["metadata"]["deletionGracePeriodSeconds"] = 30;
  found.pods.push_back(leaving);
  EXPECT_THAT(inspection::PodTroubles(found, kNow),
              testing::ElementsAre(HasSubstr("p1  Terminating for 12s")));
}

TEST(PodTroublesTest, ABrokenLinkThatNoPodIsLeftOutForIsSaid) {
  inspection::Inspection found = Trains(3);
  const Json answer = Json::parse(R"({"pod": {"name": "p0"},
      "brokenLinks": [{"pod": "p1", "breaks": 2, "kept": false},
                      {"pod": "p2", "breaks": 4, "kept": true}]})");
  found.answers["p0"].broken_links = inspection::ParseSidecarStatus(answer)->broken_links;
  EXPECT_THAT(inspection::PodTroubles(found, kNow),
              testing::ElementsAre(
                  "p0  Running; the connection to p2 broke 4 times in the last ten minutes; "
                  "neither pod is left out, because the job would be below minReplicas: all "
                  "connect anew, ever more rarely"));
}

TEST(EventLinesTest, TheNewestIsLastAndPodsAreNamed) {
  const auto lines = inspection::EventLines(
      {{{"reason", "B"},
        {"eventTime", "2026-01-31T12:01:00.000000Z"},
        {"series", {{"count", 3}, {"lastObservedTime", "2026-01-31T12:09:00.000000Z"}}},
        {"regarding", {{"kind", "Pod"}, {"name", "p1"}}},
        {"type", "Warning"}},
       {{"reason", "A"},
        {"eventTime", "2026-01-31T12:02:00.000000Z"},
        {"regarding", {{"kind", "HorovodJob"}, {"name", "digits"}}},
        {"related", {{"kind", "Pod"}, {"name", "p2"}}}}});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].reason, "A");
  EXPECT_EQ(lines[0].about, "pod p2");
  EXPECT_EQ(lines[1].about, "pod p1");
  EXPECT_EQ(lines[1].count, 3);
  EXPECT_TRUE(lines[1].warning);
  EXPECT_EQ(inspection::Age(lines[1].at, kNow), "60s");
}

inspection::Inspection WithChanges() {
  inspection::Inspection found = Trains(12);
  const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(kNow.time_since_epoch());
  const auto ago = [&](int minutes) { return at.count() - minutes * 60'000; };
  const uint64_t first = uint64_t{1} << 40;
  found.answers["p0"].rebuilds = {
      {.epoch = first + 1, .reason = "Bootstrap", .at_unix_ms = ago(9), .world_size = 4},
      {.epoch = first + 2,
       .reason = "PodLost",
       .at_unix_ms = ago(5),
       .world_size = 3,
       .left = {"p2"},
       .seconds = {{job::kDetect, 0.03}, {job::kDecide, 0.011}},
       .steps_lost = 1,
       .complete = true},
      {.epoch = first + 3,
       .reason = "PodJoined",
       .planned = true,
       .at_unix_ms = ago(4),
       .world_size = 4,
       .joined = {"p2"}},
      {.epoch = first + 4,
       .reason = "PodDrained",
       .planned = true,
       .at_unix_ms = ago(3),
       .world_size = 3,
       .left = {"p1"}}};
  return found;
}

// A cluster drops events after an hour.
TEST(DescribeTest, TheLastChangesAreToldWithoutAnyEvent) {
  EXPECT_THAT(DescribeText(WithChanges(), kNow),
              HasSubstr("Changes:\n"
                        "     9m ago  view 1.1, 4 workers: Bootstrap\n"
                        "     5m ago  view 1.2, 3 workers: PodLost; p2 lost; paused for 41 ms; 1 "
                        "step lost\n"
                        "     4m ago  view 1.3, 4 workers: PodJoined; p2 joined\n"
                        "     3m ago  view 1.4, 3 workers: PodDrained; p1 left by plan\n"
                        "Events:      none\n"));
}

TEST(DescribeTest, OfManyChangesTheLastTenAreTold) {
  inspection::Inspection found = Trains(12);
  for (uint64_t i = 1; i <= 12; ++i)
    found.answers["p0"].rebuilds.push_back({.epoch = (uint64_t{1} << 40) + i, .reason = "Rejoin"});
  const std::string text = DescribeText(found, kNow);
  EXPECT_THAT(text,
              AllOf(Not(HasSubstr("view 1.2,")), HasSubstr("view 1.3,"), HasSubstr("view 1.12,")));
}

TEST(WhyTest, TheLastLossIsToldWithWhatCameAfterIt) {
  inspection::Inspection found = WithChanges();
  EXPECT_THAT(Why(found),
              AllOf(HasSubstr("Last loss:\n     5m ago  view 1.2, 3 workers: PodLost"),
                    HasSubstr("view 1.3, 4 workers: PodJoined"), Not(HasSubstr("view 1.4,"))));
  found.answers["p0"].rebuilds.erase(found.answers["p0"].rebuilds.begin() + 1);
  EXPECT_THAT(Why(found), Not(HasSubstr("Last loss")));
}

TEST(WhyTest, ThatPodsWereNotReadyIsNoWarning) {
  inspection::Inspection found = Trains(12);
  found.events = {{{"reason", "Unhealthy"},
                   {"note", "Readiness probe failed: HTTP probe failed with statuscode: 503"},
                   {"type", "Warning"},
                   {"eventTime", "2026-01-31T12:08:00.000000Z"}}};
  EXPECT_THAT(Why(found), Not(HasSubstr("Warnings")));
  found.events[0]["note"] = "Liveness probe failed";
  EXPECT_THAT(Why(found), HasSubstr("Warnings:\n"));
}

TEST(DescribeTest, TellsConditionsPodsAndEvents) {
  inspection::Inspection found = Trains(12);
  found.events = {{{"reason", "WorkerRestarted"},
                   {"note", "worker 0 was started again"},
                   {"type", "Warning"},
                   {"eventTime", "2026-01-31T12:08:00.000000Z"}}};
  EXPECT_THAT(DescribeText(found, kNow),
              AllOf(HasSubstr("Name:        digits\n"), HasSubstr("4 workers, view 1.7"),
                    HasSubstr("Running     True   Training"), HasSubstr("4 workers train"),
                    HasSubstr("p0"), HasSubstr("!    2m ago  WorkerRestarted: worker 0 was")));
  EXPECT_THAT(DescribeText({{{"metadata", {{"name", "new"}}}}, {}, {}, {}}, kNow),
              AllOf(HasSubstr("Pods:        none\n"), HasSubstr("Events:      none"),
                    HasSubstr("0 of 1 worker, no view yet\n")));
}

}  // namespace
}  // namespace ringmaster::cli
