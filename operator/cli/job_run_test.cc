#include "operator/cli/job_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/cli/table.h"

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

SidecarStatus View(uint64_t epoch, const char* reason, int ranks) {
  SidecarStatus status;
  status.pod = "p0";
  status.epoch = epoch;
  status.view_reason = reason;
  status.step = 40;
  for (int i = 0; i < ranks; ++i) {
    status.pods.push_back("p" + std::to_string(i));
    status.ranks.push_back({status.pods.back(), 0, 1});
  }
  return status;
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

TEST_F(JobRunTest, AsksNoPodThatIsGone) {
  run_.OnPod(Pod("p0", "Running"), false);
  run_.OnPod(Pod("p1", "Running"), false);
  run_.OnPod(Pod("p0", "Running"), true);
  EXPECT_THAT(run_.SidecarAddresses(), ElementsAre(Key("p1")));
}

TEST_F(JobRunTest, BlamesThePodsThatFailed) {
  run_.OnPod(Pod("p0", "Running"), false);
  EXPECT_THAT(run_.PodsToBlame(), ElementsAre("p0"));
  run_.OnPod(Pod("p1", "Failed", 3), false);
  EXPECT_THAT(run_.PodsToBlame(), ElementsAre("p1"));
  EXPECT_EQ(run_.progress().HowEnded("p1"), "exited with code 3");
}

TEST_F(JobRunTest, SummaryHasEveryViewAndTheLargerCountOfLostSteps) {
  run_.OnStatus(View(kFirst, "Bootstrap", 2), TimePoint{});
  run_.OnStatus(View(kFirst + 1, "PodLost", 1), TimePoint{});
  Json job = Job("Succeeded");
  job["status"]["stepsLost"] = 2;
  run_.OnJob(job, false);
  Json summary = run_.Summary("Succeeded", 1.5);
  EXPECT_EQ(summary["steps"], 40);
  EXPECT_EQ(summary["stepsLost"], 2);
  EXPECT_EQ(summary["worldSize"], 1);
  EXPECT_EQ(summary["exitReason"], "Succeeded");
  ASSERT_EQ(summary["views"].size(), 2u);
  EXPECT_EQ(summary["views"][1]["reason"], "PodLost");
  EXPECT_EQ(summary["views"][1]["members"], Json({"p0"}));
  EXPECT_THAT(run_.SummaryLines("Succeeded", 1.5),
              Contains(AllOf(HasSubstr("1.2"), HasSubstr("2 -> 1"))));
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
  std::string table = JobsTable({job}, true, true);
  EXPECT_THAT(table, AllOf(HasSubstr("p0 (coordinator)"), HasSubstr("4711"), HasSubstr("standby"),
                           HasSubstr("1.1"), HasSubstr("Running"), HasSubstr("Pending")));
  EXPECT_THAT(JobsTable({job}, false, false), Not(HasSubstr("4711")));
  EXPECT_EQ(JobsTable({}, false, false), "no jobs\n");
}

}  // namespace
}  // namespace ringmaster::cli
