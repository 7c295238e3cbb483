#include "operator/page/waiting_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "operator/page/pod_priorities.h"

namespace ringmaster::page {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

const api::Time kNow = *api::ParseTime("2026-01-31T12:10:00Z");

json Scheduled(const char* reason, const char* since = "2026-01-31T12:00:00Z") {
  return {{"type", "Scheduled"},
          {"status", std::string(reason) == "AllPodsScheduled" ? "True" : "False"},
          {"reason", reason},
          {"message", "pods with a node: 0 of 4; 0/2 nodes are available"},
          {"lastTransitionTime", since}};
}

// `minute`: minutes after twelve.
json Job(const std::string& name, const char* state, const json& scheduled, int minute,
         int pods = 0) {
  return {{"metadata", {{"namespace", "team"}, {"name", name}, {"uid", name}}},
          {"spec", {{"elasticPolicy", {{"minReplicas", 2}}}, {"worker", {{"replicas", 4}}}}},
          {"status",
           {{"state", state},
            {"startTime", "2026-01-31T12:0" + std::to_string(minute) + ":00Z"},
            {"replicaStatuses", {{"Worker", {{"active", pods}}}}},
            {"conditions", json::array({scheduled})}}}};
}

json Waiting(const std::string& name, int minute) {
  return Job(name, "Pending", Scheduled("WaitingForRoom"), minute);
}

json LineOf(const std::vector<json>& jobs, const std::map<std::string, int>& priorities = {},
            std::size_t most = 100) {
  const auto priority_of = [&](const json& job) -> std::optional<int> {
    const auto known = priorities.find(job["metadata"]["uid"]);
    if (known == priorities.end()) return std::nullopt;
    return known->second;
  };
  return WaitingLine(jobs, priority_of, kNow, most);
}

std::vector<std::string> Names(const json& line) {
  std::vector<std::string> names;
  for (const json& entry : line) names.push_back(entry["name"]);
  return names;
}

TEST(WaitingLineTest, ThoseOfHigherPriorityComeFirstThenThoseWhoHaveWaitedLonger) {
  const json line = LineOf({Waiting("late", 5), Waiting("early", 1), Waiting("important", 8)},
                           {{"important", 7}});
  EXPECT_THAT(Names(line), ElementsAre("important", "early", "late"));
  EXPECT_EQ(line[0]["priority"], 7);
  EXPECT_EQ(line[1]["priority"], nullptr);
  EXPECT_EQ(line[0]["place"], 1);
  EXPECT_EQ(line[2]["place"], 3);
  EXPECT_EQ(line[0]["waited"], 120.0);
  EXPECT_EQ(line[0]["reason"], "WaitingForRoom");
  EXPECT_EQ(line[0]["lacks"], "pods with a node: 0 of 4; 0/2 nodes are available");
}

TEST(WaitingLineTest, WhoHoldsTooFewPodsComesBeforeMoreImportantOnesAndWhoGrowsBehindItsEquals) {
  const json line =
      LineOf({Job("grows", "Running", Scheduled("WaitingForRoom"), 0, 3), Waiting("waits", 5),
              Waiting("important", 6), Job("short", "Held", Scheduled("WaitingForRoom"), 7, 1)},
             {{"important", 7}});
  EXPECT_THAT(Names(line), ElementsAre("short", "important", "waits", "grows"));
  EXPECT_EQ(line[0]["grows"], false);
  EXPECT_EQ(line[3]["grows"], true);
  EXPECT_EQ(line[3]["pods"], 3);
  EXPECT_EQ(line[3]["least"], 2);
  EXPECT_EQ(line[3]["wanted"], 4);
}

TEST(WaitingLineTest, WhoGrowsHasWaitedSinceItLackedPods) {
  const json line =
      LineOf({Job("grows", "Running", Scheduled("WaitingForRoom", "2026-01-31T12:09:00Z"), 0, 3)});
  EXPECT_EQ(line[0]["waited"], 60.0);
}

TEST(WaitingLineTest, ForWhomOthersLeaveComesBeforeThose) {
  const json line =
      LineOf({Waiting("first", 1), Job("takes", "Pending", Scheduled("Preempting"), 2)});
  EXPECT_THAT(Names(line), ElementsAre("takes", "first"));
}

TEST(WaitingLineTest, WhoGaveBackWhatItHadStandsWhereItIsSinceThen) {
  json gave = Waiting("gave", 0);
  gave["status"]["lastGivenBackTime"] = "2026-01-31T12:06:00Z";
  EXPECT_THAT(Names(LineOf({gave, Waiting("other", 5)})), ElementsAre("other", "gave"));
}

TEST(WaitingLineTest, WhoHasEndedOrIsSuspendedOrHasItsNodesDoesNotWait) {
  const json scheduled = Scheduled("AllPodsScheduled");
  EXPECT_THAT(LineOf({Job("a", "Succeeded", Scheduled("WaitingForRoom"), 0),
                      Job("b", "Suspended", Scheduled("WaitingForRoom"), 0),
                      Job("c", "Running", scheduled, 0, 4), Job("d", "Starting", scheduled, 0),
                      Job("e", "Invalid", scheduled, 0)}),
              IsEmpty());
}

TEST(WaitingLineTest, JobsOfAQueueOfKueueComeLastAndWithoutAPlace) {
  json queued = Job("queued", "Queued", Scheduled("WaitingForQueue"), 0);
  queued["spec"]["runPolicy"]["schedulingPolicy"] = {{"queue", "gpus"}, {"priorityClass", "high"}};
  const json line = LineOf({queued, Waiting("waits", 5)}, {{"queued", 9}});
  EXPECT_THAT(Names(line), ElementsAre("waits", "queued"));
  EXPECT_EQ(line[1]["place"], nullptr);
  EXPECT_EQ(line[1]["queue"], "gpus");
  EXPECT_EQ(line[1]["priorityClass"], "high");
  EXPECT_EQ(line[0]["queue"], "");
}

TEST(WaitingLineTest, AJobThatNobodyHasTakenUpWaitsSinceItWasMade) {
  const json made = {{"metadata",
                      {{"namespace", "team"},
                       {"name", "new"},
                       {"uid", "new"},
                       {"creationTimestamp", "2026-01-31T12:09:30Z"}}}};
  const json line = LineOf({made});
  EXPECT_EQ(line[0]["waited"], 30.0);
  EXPECT_EQ(line[0]["lacks"], "the operator has not looked at it yet");
  EXPECT_EQ(line[0]["least"], 1);
}

TEST(WaitingLineTest, WhatKeepsPodsFromBeingMadeIsWhatItLacks) {
  json job = Waiting("job", 0);
  job["status"]["conditions"].push_back({{"type", "Created"},
                                         {"status", "False"},
                                         {"reason", "QuotaExceeded"},
                                         {"message", "exceeded quota: gpus"}});
  EXPECT_EQ(LineOf({job})[0]["lacks"], "exceeded quota: gpus");
}

TEST(WaitingLineTest, OnlyTheFirstAreTold) {
  EXPECT_THAT(Names(LineOf({Waiting("b", 2), Waiting("a", 1), Waiting("c", 3)}, {}, 2)),
              ElementsAre("a", "b"));
}

TEST(WaitingLineTest, WithAllowedSizesTheLeastIsTheOneThatIsNotBelowMinReplicas) {
  json job = Waiting("job", 0);
  job["spec"]["elasticPolicy"]["allowedSizes"] = {1, 4, 8};
  EXPECT_EQ(LineOf({job})[0]["least"], 4);
}

TEST(PodPrioritiesTest, AreThoseOfThePodsThatAJobOwns) {
  const auto pod = [](const char* job, bool controls, int priority) -> json {
    return {{"metadata",
             {{"labels", {{"ringmaster.dev/job-uid", job}}},
              {"ownerReferences", {{{"uid", job}, {"controller", controls}}}}}},
            {"spec", {{"priority", priority}}}};
  };
  PodPriorities priorities;
  priorities.Remember(std::vector<json>{pod("a", true, 5), pod("b", false, 9)});
  const auto of = [&](const char* uid) { return priorities.Of({{"metadata", {{"uid", uid}}}}); };
  EXPECT_EQ(of("a"), 5);
  EXPECT_EQ(of("b"), std::nullopt) << "anybody can put a label on a pod of his own";
  EXPECT_EQ(of("c"), std::nullopt);
}

TEST(PodPrioritiesTest, AJobWithoutPodsHasTheOneThatItsStatusSays) {
  EXPECT_EQ(PodPriorities().Of({{"metadata", {{"uid", "a"}}}, {"status", {{"priority", -3}}}}), -3);
}

}  // namespace
}  // namespace ringmaster::page
