#include "operator/cli/job_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/cli/testing/sidecar_in_view.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kFirst = (uint64_t{1} << 40) + 1;

Json Job() {
  return {
      {"metadata", {{"name", "digits"}, {"namespace", "default"}}},
      {"status",
       {{"conditions", {{{"type", "Succeeded"}, {"status", "True"}, {"message", "in words"}}}}}}};
}

class JobSummaryTest : public testing::Test {
 protected:
  JobRun run_{"default", "digits"};
};

TEST_F(JobSummaryTest, SummaryHasEveryViewAndTheLargerCountOfLostSteps) {
  run_.OnStatus(View(kFirst, "Bootstrap", 2), TimePoint{});
  run_.OnStatus(View(kFirst + 1, "PodLost", 1), TimePoint{});
  Json job = Job();
  job["status"]["stepsLost"] = 2;
  run_.OnJob(job, false);
  Json summary = JobSummary(run_, "Succeeded", 1.5);
  EXPECT_EQ(summary["steps"], 40);
  EXPECT_EQ(summary["stepsLost"], 2);
  EXPECT_EQ(summary["worldSize"], 1);
  EXPECT_EQ(summary["exitReason"], "Succeeded");
  ASSERT_EQ(summary["views"].size(), 2u);
  EXPECT_EQ(summary["views"][1]["reason"], "PodLost");
  EXPECT_EQ(summary["views"][1]["members"], Json({"p0"}));
  EXPECT_THAT(JobSummaryLines(run_, "Succeeded", 1.5),
              Contains(AllOf(HasSubstr("1.2"), HasSubstr("2 -> 1"))));
}

TEST_F(JobSummaryTest, OfVeryManyChangesTheLastAreLinesAndAllAreInTheFile) {
  for (std::uint64_t n = 0; n < 32; ++n)
    run_.OnStatus(View(kFirst + n, n == 0 ? "Bootstrap" : "PodLost", 2), TimePoint{});
  const std::vector<std::string> lines = JobSummaryLines(run_, "Succeeded", 1.5);
  EXPECT_THAT(lines, testing::SizeIs(1 + 2 + 20));
  EXPECT_THAT(lines, Contains("  and 11 changes before these"));
  EXPECT_THAT(lines.back(), HasSubstr("1.32"));
  const Json summary = JobSummary(run_, "Succeeded", 1.5);
  EXPECT_EQ(summary["views"].size(), 32u);
  EXPECT_EQ(summary["olderViews"], 0);
}

TEST_F(JobSummaryTest, SummarySaysHowOftenTheJobBeganAgainFromItsCheckpoint) {
  run_.OnJob(Job(), false);
  EXPECT_EQ(JobSummary(run_, "Succeeded", 1.5)["restartsFromCheckpoint"], 0);
  EXPECT_THAT(JobSummaryLines(run_, "Succeeded", 1.5), Not(Contains(HasSubstr("checkpoint"))));
  Json job = Job();
  for (const auto& [count, text] :
       {std::pair{1, "checkpoint once: "}, {3, "checkpoint 3 times: "}}) {
    job["status"]["restartsFromCheckpoint"] = count;
    run_.OnJob(job, false);
    EXPECT_EQ(JobSummary(run_, "Succeeded", 1.5)["restartsFromCheckpoint"], count);
    EXPECT_THAT(JobSummaryLines(run_, "Succeeded", 1.5), Contains(HasSubstr(text)));
  }
}

TEST_F(JobSummaryTest, LastValuesAreThoseThatAreMeasured) {
  inspection::SidecarStatus status = View(kFirst, "Bootstrap", 2);
  EXPECT_THAT(JobSummaryLines(run_, "Succeeded", 1.5), Not(Contains(HasSubstr("last values"))));
  status.values = {{"loss", 0.25}, {"samples", 9}, {"total_steps", 40}};
  run_.OnStatus(status, TimePoint{});
  EXPECT_THAT(JobSummaryLines(run_, "Succeeded", 1.5), Contains("  last values:  loss 0.25"));
}

TEST_F(JobSummaryTest, SaysWhoseItIsAndWhy) {
  run_.OnStatus(View(kFirst, "Bootstrap", 1), TimePoint{});
  run_.OnJob(Job(), false);
  const Json summary = JobSummary(run_, "Succeeded", 1.5);
  EXPECT_EQ(summary["job"], "digits");
  EXPECT_EQ(summary["namespace"], "default");
  EXPECT_EQ(summary["message"], "in words");
  EXPECT_EQ(JobSummaryLines(run_, "Succeeded", 1.5),
            std::vector<std::string>{
                "digits: Succeeded after 1.5 s, 40 steps, 0 lost, 1 worker at the end"});
}

TEST_F(JobSummaryTest, OfAScriptWithoutStepsNoneAreCounted) {
  inspection::SidecarStatus status = View(kFirst, "Bootstrap", 1);
  status.step = 0;
  run_.OnStatus(status, TimePoint{});
  Json job = Job();
  run_.OnJob(job, false);
  EXPECT_EQ(JobSummaryLines(run_, "Succeeded", 1.5),
            std::vector<std::string>{"digits: Succeeded after 1.5 s, 1 worker at the end"});
  EXPECT_EQ(JobSummary(run_, "Succeeded", 1.5)["steps"], 0) << "a program finds it as ever";
  job["status"]["stepsLost"] = 2;
  run_.OnJob(job, false);
  EXPECT_THAT(JobSummaryLines(run_, "Succeeded", 1.5), Contains(HasSubstr(", 0 steps, 2 lost,")));
}

TEST_F(JobSummaryTest, OneStepIsNoPlural) {
  inspection::SidecarStatus status = View(kFirst, "Bootstrap", 1);
  status.step = 1;
  run_.OnStatus(status, TimePoint{});
  EXPECT_THAT(JobSummaryLines(run_, "Failed", 1.5), Contains(HasSubstr(" 1 step, 0 lost")));
}

}  // namespace
}  // namespace ringmaster::cli
