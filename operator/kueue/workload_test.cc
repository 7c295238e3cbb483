#include "operator/kueue/workload.h"

#include <gmock/gmock.h>

#include "operator/api/labels.h"
#include "operator/kueue/testing/workloads.h"

namespace ringmaster::kueue {
namespace {

using testing::AdmittedWith;
using testing::Pod;
using testing::QueuedJob;
using testing::Waiting;

TEST(WorkloadTest, AsksForAllPodsAndSaysWithHowFewTheJobTrains) {
  const Json workload = BuildWorkload(QueuedJob(), Pod(), std::nullopt);
  EXPECT_EQ(workload["apiVersion"], "kueue.x-k8s.io/v1beta2");
  EXPECT_EQ(workload["metadata"]["name"], "horovodjob-train");
  EXPECT_EQ(workload["metadata"]["ownerReferences"][0]["uid"], "job-uid");
  EXPECT_EQ(workload["spec"]["queueName"], "gpus");
  ASSERT_EQ(workload["spec"]["podSets"].size(), 1u);
  const Json& set = workload["spec"]["podSets"][0];
  EXPECT_EQ(set["name"], "worker");
  EXPECT_EQ(set["count"], 4);
  EXPECT_EQ(set["minCount"], 2);
  EXPECT_FALSE(workload["spec"].contains("priority"));
}

TEST(WorkloadTest, AJobThatNeedsAllOfItsPodsIsNotAdmittedWithFewer) {
  const auto job = QueuedJob({{"elasticPolicy", {{"minReplicas", 4}}}});
  EXPECT_FALSE(BuildWorkload(job, Pod(), std::nullopt)["spec"]["podSets"][0].contains("minCount"));
}

TEST(WorkloadTest, TheTemplateHasWhatPodsTakeAndNotWhatTheyRun) {
  const Json spec =
      BuildWorkload(QueuedJob(), Pod(), std::nullopt)["spec"]["podSets"][0]["template"]["spec"];
  EXPECT_EQ(spec["nodeSelector"], Json({{"arch", "a100"}}));
  EXPECT_EQ(spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], "1");
  EXPECT_EQ(spec.dump().find("secret"), std::string::npos);
  EXPECT_EQ(spec.dump().find("train.py"), std::string::npos);
}

TEST(WorkloadTest, ThePriorityClassIsNamedWithItsValue) {
  const auto reference = [](bool of_workloads) {
    return BuildWorkload(QueuedJob(), Pod(), Priority{"urgent", of_workloads, 100})["spec"];
  };
  EXPECT_EQ(reference(false)["priority"], 100);
  EXPECT_EQ(reference(false)["priorityClassRef"],
            Json({{"group", "scheduling.k8s.io"}, {"kind", "PriorityClass"}, {"name", "urgent"}}));
  EXPECT_EQ(
      reference(true)["priorityClassRef"],
      Json({{"group", "kueue.x-k8s.io"}, {"kind", "WorkloadPriorityClass"}, {"name", "urgent"}}));
  const Json only_value = BuildWorkload(QueuedJob(), Pod(), Priority{"", false, 5})["spec"];
  EXPECT_EQ(only_value["priority"], 5);
  EXPECT_FALSE(only_value.contains("priorityClassRef"));
}

TEST(WorkloadTest, WhatOthersFillInDoesNotMakeItAskForSomethingElse) {
  const auto job = QueuedJob();
  const Json wanted = BuildWorkload(job, Pod(), std::nullopt);
  Json stored = wanted;
  stored["spec"]["active"] = true;
  stored["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Always";
  EXPECT_TRUE(AskTheSame(stored, wanted));
  const Json smaller =
      BuildWorkload(QueuedJob({{"worker", {{"replicas", 3}}}}), Pod(), std::nullopt);
  EXPECT_FALSE(AskTheSame(stored, smaller));
}

TEST(WorkloadTest, ReadsWhatWasAdmitted) {
  Json workload = AdmittedWith(QueuedJob(), 3);
  workload["status"]["reclaimablePods"] = {{{"name", kPodSet}, {"count", 1}}};
  workload["status"]["admissionChecks"] = {
      {{"name", "nodes"},
       {"state", "Ready"},
       {"podSetUpdates", {{{"name", kPodSet}, {"labels", {{"a", "b"}}}}, {{"name", "other"}}}}}};
  const WorkloadFacts facts = ReadWorkload(workload);
  EXPECT_TRUE(facts.admitted);
  EXPECT_EQ(facts.cluster_queue, "cluster");
  EXPECT_EQ(facts.count, 3);
  EXPECT_EQ(facts.Granted(), 3) << "one of the four that it asks for is not needed";
  EXPECT_THAT(facts.flavors, ::testing::ElementsAre("spot"));
  EXPECT_EQ(facts.updates.size(), 1u);
}

TEST(WorkloadTest, WhatIsOfAnotherTypeCountsAsNotSaid) {
  for (const char* text : {"null", "[]", "3", R"({"status": 3, "spec": [], "metadata": "x"})",
                           R"({"status": {"conditions": [3, {}], "admission": []}})"}) {
    const WorkloadFacts facts = ReadWorkload(Json::parse(text));
    EXPECT_FALSE(facts.admitted) << text;
    EXPECT_TRUE(facts.active) << text;
  }
}

}  // namespace
}  // namespace ringmaster::kueue
