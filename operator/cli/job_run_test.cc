#include "operator/cli/job_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/cli/table.h"
#include "operator/cli/testing/sidecar_in_view.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;

constexpr uint64_t kFirst = (uint64_t{1} << 40) + 1;

Json Job(const char* type = "", const char* status = "True") {
  Json job = {{"metadata", {{"name", "digits"}, {"namespace", "default"}}},
              {"spec", {{"worker", {{"replicas", 2}}}}}};
  if (*type) {
    job["status"]["conditions"] = Json::array(
        {{{"type", type}, {"status", status}, {"reason", "Because"}, {"message", "in words"}}});
  }
  return job;
}

Json Pod(const std::string& name, const std::string& phase, int exit_code = 0) {
  Json pod = {{"metadata", {{"name", name}}}, {"status", {{"phase", phase}}}};
  pod["metadata"]["annotations"]["ringmaster.dev/http"] = "127.0.0.1:1";
  if (exit_code) {
    pod["status"]["containerStatuses"] =
        Json::array({{{"state", {{"terminated", {{"exitCode", exit_code}}}}}}});
  }
  return pod;
}

class JobRunTest : public testing::Test {
 protected:
  JobRun run_{"default", "digits"};
};

TEST_F(JobRunTest, EndsWithTheConditionThatIsTrueAndNotWithOneThatIsFalse) {
  run_.OnJob(Job("Failed", "False"), false);
  EXPECT_FALSE(run_.end().has_value());
  run_.OnJob(Job("Failed"), false);
  ASSERT_TRUE(run_.end().has_value());
  EXPECT_FALSE(run_.end()->succeeded);
  EXPECT_EQ(run_.end()->message, "in words");
}

TEST_F(JobRunTest, DeletedJobIsAnEndButNotAfterItSucceeded) {
  JobRun other{"default", "digits"};
  other.OnJob(Job(), true);
  EXPECT_EQ(other.end()->reason, "Deleted");
  run_.OnJob(Job("Succeeded"), false);
  run_.OnJob(Job(), true);
  EXPECT_TRUE(run_.end()->succeeded);
}

TEST_F(JobRunTest, BeforeTheFirstViewTheLineSaysWhatIsWaitedFor) {
  run_.OnJob(Job(), false);
  run_.OnPod(Pod("p0", "Running"), false);
  EXPECT_EQ(run_.ProgressLine(10), "starting: 1 of 2 pods run");
  run_.OnPod(Pod("p1", "Running"), false);
  EXPECT_EQ(run_.ProgressLine(10), "waiting for the workers to call init()");
}

TEST_F(JobRunTest, WhatHoldsTheJobUpIsSaidInTheWordsOfItsCondition) {
  run_.OnJob(Job("Scheduled", "False"), false);
  EXPECT_EQ(run_.ProgressLine(10), "starting: in words");
  run_.OnStatus(View(kFirst, "Bootstrap", 2), TimePoint{});
  EXPECT_THAT(run_.ProgressLine(10), HasSubstr("view 1.1  in words"));
}

TEST_F(JobRunTest, AsksNoPodThatIsGone) {
  run_.OnPod(Pod("p0", "Running"), false);
  run_.OnPod(Pod("p1", "Running"), false);
  run_.OnPod(Pod("p0", "Running"), true);
  EXPECT_THAT(run_.pods().SidecarAddresses(), ElementsAre(Key("p1")));
}

TEST_F(JobRunTest, BlamesThePodThatFailedFirst) {
  run_.OnPod(Pod("p0", "Running"), false);
  EXPECT_EQ(run_.PodToBlame(), "");
  for (const auto& [name, at] :
       {std::pair{"p1", "2026-01-31T12:00:05Z"}, std::pair{"p2", "2026-01-31T12:00:04Z"}}) {
    Json pod = Pod(name, "Failed", 3);
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = at;
    run_.OnPod(pod, false);
  }
  EXPECT_EQ(run_.PodToBlame(), "p2");
  EXPECT_EQ(run_.progress().HowEnded("p1"), "exited with code 3");
}

TEST_F(JobRunTest, BlamesThePodThatTheConditionNames) {
  run_.OnPod(Pod("p1", "Failed", 3), false);
  run_.OnPod(Pod("p10", "Running"), false);
  Json job = Job("Failed");
  job["status"]["conditions"][0]["message"] = "worker 0 of pod p10 was ended by signal 11";
  run_.OnJob(job, false);
  EXPECT_EQ(run_.PodToBlame(), "p10");
  run_.OnPod(Pod("p10", "Running"), true);
  EXPECT_EQ(run_.PodToBlame(), "p10") << "also when it was deleted because the job has failed";
}

TEST_F(JobRunTest, BlamesAPodOfWhichNothingWasHeard) {
  Json job = Job("Failed");
  const std::string pod = run_.name() + "-worker-3";
  job["status"]["conditions"][0]["message"] = "pod " + pod + " failed: its worker exited with 127";
  job["spec"]["slotsPerWorker"] = 2;
  run_.OnJob(job, false);
  EXPECT_EQ(run_.PodToBlame(), pod);
  EXPECT_EQ(run_.FirstNumberOf(pod), 6);
}

Json Numbered(const std::string& name, const char* index) {
  Json pod = Pod(name, "Running");
  pod["metadata"]["labels"]["training.kubeflow.org/replica-index"] = index;
  return pod;
}

TEST_F(JobRunTest, ShowsWhatTheWorkerWithRankZeroPrintsWhereverItIs) {
  run_.OnJob(Job(), false);
  run_.OnPod(Numbered("p0", "0"), false);
  run_.OnPod(Numbered("p1", "1"), false);
  EXPECT_EQ(run_.OutputOfRankZero("p0", "loss 1"), "[0] loss 1");
  EXPECT_EQ(run_.OutputOfRankZero("p1", "loss 1"), std::nullopt);
  EXPECT_EQ(run_.OutputOfRankZero("p0", "ringmaster-launcher: terminating"), std::nullopt);
  EXPECT_EQ(run_.OutputOfRankZero("p0", "ringmaster-launcher: error: no such file"),
            "[0] ringmaster-launcher: error: no such file");
  run_.OnStatus(View(kFirst, "Bootstrap", 2), TimePoint{});
  EXPECT_EQ(run_.OutputOfRankZero("p0", "loss 1"), "[0] loss 1");
  inspection::SidecarStatus second = View(kFirst + 1, "PodLost", 2);
  second.ranks.erase(second.ranks.begin());
  run_.OnStatus(second, TimePoint{});
  run_.OnPod(Numbered("p1", "1"), true);
  EXPECT_EQ(run_.OutputOfRankZero("p1", "loss 1"), "[1] loss 1") << "also when the pod is gone";
  EXPECT_EQ(run_.OutputOfRankZero("p0", "loss 1"), std::nullopt);
}

TEST_F(JobRunTest, OfAPodWithSeveralWorkersOnlyTheLinesOfTheOneWithRankZero) {
  Json job = Job();
  job["spec"]["slotsPerWorker"] = 2;
  run_.OnJob(job, false);
  run_.OnPod(Numbered("p1", "1"), false);
  inspection::SidecarStatus view = View(kFirst, "Bootstrap", 2);
  view.ranks = {{"p1", 1, 1}};
  run_.OnStatus(view, TimePoint{});
  EXPECT_EQ(run_.OutputOfRankZero("p1", "[3] loss 1"), "[3] loss 1");
  EXPECT_EQ(run_.OutputOfRankZero("p1", "[2] loss 1"), std::nullopt);
  EXPECT_EQ(run_.OutputOfRankZero("p1", "ringmaster-launcher: x"), std::nullopt);
}

TEST(JobsTableTest, ShowsWorkersWithTheirProcessesAndPodsWithoutAny) {
  Json job = Job("Running");
  job["status"]["epoch"] = kFirst;
  job["status"]["pods"] = {
      {{"name", "p0"},
       {"phase", "Running"},
       {"coordinator", true},
       {"state", "Training"},
       {"workers",
        {{{"slot", 0}, {"rank", 0}, {"step", 7}, {"pid", 4711}, {"standby", false}},
         {{"slot", 0}, {"rank", -1}, {"step", 0}, {"pid", 4712}, {"standby", true}}}}},
      {{"name", "p1"}, {"phase", "Pending"}, {"workers", Json::array()}}};
  std::string table = JobsTable({job}, {.pods = true, .wide = true});
  EXPECT_THAT(table, AllOf(HasSubstr("p0 (coordinator)"), HasSubstr("4711"),
                           HasSubstr("standby   -      0"), HasSubstr("1.1"), HasSubstr("Running"),
                           HasSubstr("Pending")));
  EXPECT_THAT(JobsTable({job}, {}), Not(HasSubstr("4711")));
  EXPECT_EQ(JobsTable({}, {}), "no jobs\n");
  // How far it came nobody tells any more.
  EXPECT_THAT(JobsTable({Job("Succeeded")}, {}),
              testing::ContainsRegex("Succeeded +[^ ]+ +[^ ]+ +[^ ]+ +- "));
  EXPECT_THAT(JobsTable({job}, {.namespaces = true}),
              AllOf(HasSubstr("NAMESPACE   JOB"), HasSubstr("default")));
}

TEST(JobsTableTest, BelowTheJobsStandsAllThatIsWrongWithOneAndWhatExplainsItForMany) {
  const api::Time now = *api::ParseTime("2026-11-24T10:00:04Z");
  Json job = Job("Running");
  EXPECT_THAT(JobsTable({job}, {.pods = true, .now = now}), Not(HasSubstr("digits: ")));
  const auto condition = [](const char* type, const char* status, const char* message) {
    return Json{{"type", type},
                {"status", status},
                {"reason", std::string(type) + "Why"},
                {"message", message},
                {"lastTransitionTime", "2026-11-24T10:00:00Z"}};
  };
  job["status"]["conditions"] = {condition("RanksMissing", "True", "'x': not by rank 1"),
                                 condition("NoStepEnds", "True", "the join waits"),
                                 condition("Scheduled", "False", "no room"),
                                 condition("Started", "True", "")};
  EXPECT_THAT(JobsTable({job}, {.pods = true, .now = now}),
              HasSubstr("\n\ndigits: no room (ScheduledWhy, for 4s)\n"
                        "digits: the join waits (NoStepEndsWhy, for 4s)\n"
                        "digits: 'x': not by rank 1 (RanksMissingWhy, for 4s)\n"));
  const std::string list = JobsTable({Job("Running"), job}, {.namespaces = true, .now = now});
  EXPECT_THAT(list, testing::EndsWith("\n\ndefault/digits: no room (ScheduledWhy, for 4s); also "
                                      "NoStepEndsWhy, RanksMissingWhy\n"));
}

TEST(WatchTableTest, ARowIsNewWhenMoreThanTheStepHasChanged) {
  Json job = Job("Running");
  job["status"]["pods"] = {{{"workers", {{{"step", 7}}}}}};
  const std::string before = WatchKey(job, "");
  job["status"]["pods"][0]["workers"][0]["step"] = 8;
  EXPECT_EQ(WatchKey(job, ""), before);
  job["status"]["worldSize"] = 3;
  EXPECT_NE(WatchKey(job, ""), before);
  EXPECT_NE(WatchKey(job, "Deleted"), WatchKey(job, ""));
}

TEST(WatchTableTest, TheHeadComesOnceAndColumnsKeepTheirPlace) {
  WatchTable table(false);
  EXPECT_THAT(table.Row(Job("Running"), ""),
              AllOf(HasSubstr("JOB"), HasSubstr("digits   Running")));
  const std::string second = table.Row(Job("Failed"), "");
  EXPECT_THAT(second, AllOf(Not(HasSubstr("JOB")), HasSubstr("digits   Failed    0/2")));
}

}  // namespace
}  // namespace ringmaster::cli
