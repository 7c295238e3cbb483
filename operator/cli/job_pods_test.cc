#include "operator/cli/job_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

Json Pod(const std::string& name, const char* index = "0", const char* phase = "Running") {
  return {{"metadata",
           {{"name", name},
            {"labels", {{"training.kubeflow.org/replica-index", index}}},
            {"annotations", {{"ringmaster.dev/http", name + ":1"}}}}},
          {"status", {{"phase", phase}}}};
}

Json Failed(const std::string& name, const char* at, const char* list = "containerStatuses") {
  Json pod = Pod(name, "0", "Failed");
  pod["status"][list] = {{{"state", {{"terminated", {{"exitCode", 0}}}}}},
                         {{"state", {{"terminated", {{"exitCode", 3}, {"finishedAt", at}}}}}}};
  return pod;
}

class JobPodsTest : public testing::Test {
 protected:
  JobPods pods_;
};

TEST_F(JobPodsTest, OnlyPodsThatExistRunAndHaveAnAddress) {
  pods_.Observe(Pod("p0"), false);
  pods_.Observe(Pod("p1"), false);
  pods_.Observe(Pod("p2", "0", "Pending"), false);
  pods_.Observe(Pod("p0"), true);
  EXPECT_EQ(pods_.CountRunning(), 1);
  EXPECT_THAT(pods_.SidecarAddresses(), ElementsAre(Pair("p1", "p1:1"), Pair("p2", "p2:1")));
  Json silent = Pod("p1");
  silent["metadata"].erase("annotations");
  pods_.Observe(silent, false);
  pods_.Observe(Pod("p2"), true);
  EXPECT_THAT(pods_.SidecarAddresses(), IsEmpty());
}

TEST_F(JobPodsTest, NameAndIndexOfAPodStayWhenItGoes) {
  EXPECT_EQ(pods_.First(), "");
  EXPECT_EQ(pods_.IndexOf("a"), std::nullopt);
  pods_.Observe(Pod("a", "2"), false);
  pods_.Observe(Pod("b", "1"), false);
  pods_.Observe(Pod("b", "1"), true);
  EXPECT_TRUE(pods_.Had("b"));
  EXPECT_FALSE(pods_.Had("c"));
  EXPECT_EQ(pods_.IndexOf("b"), 1);
  EXPECT_EQ(pods_.First(), "b") << "the lowest index, not the first name";
}

TEST_F(JobPodsTest, ATextNamesAPodByAWholeWord) {
  pods_.Observe(Pod("p1"), false);
  pods_.Observe(Pod("p10"), true);
  EXPECT_EQ(pods_.NamedIn("worker 0 of pod p10 was ended"), "p10");
  EXPECT_EQ(pods_.NamedIn("p1"), "p1");
  EXPECT_EQ(pods_.NamedIn("p100 failed"), "");
}

TEST_F(JobPodsTest, TheFirstToFailIsTheOneWhoseContainerEndedFirst) {
  pods_.Observe(Pod("p0"), false);
  EXPECT_EQ(pods_.FailedFirst(), "");
  pods_.Observe(Failed("p1", "2026-01-31T12:00:05Z"), false);
  pods_.Observe(Failed("p2", "2026-01-31T12:00:04Z"), false);
  pods_.Observe(Failed("p3", "2026-01-31T12:00:03Z"), true);
  EXPECT_EQ(pods_.FailedFirst(), "p2");
}

TEST_F(JobPodsTest, AFailedContainerIsOneThatEndedWithAnotherCodeThanZero) {
  EXPECT_EQ(ExitCodeOfFailed(Pod("p0")), std::nullopt);
  EXPECT_EQ(ExitCodeOfFailed(Failed("p0", "")), 3);
  EXPECT_EQ(ExitCodeOfFailed(Failed("p0", "", "initContainerStatuses")), 3);
}

}  // namespace
}  // namespace ringmaster::cli
