#include <gtest/gtest.h>

#include "operator/api/horovod_job.h"

namespace ringmaster::api {
namespace {

TEST(StatusTest, ComesBackFromJsonAsItWas) {
  Status status;
  status.state = "Running";
  status.conditions = {{"Running", true, "AllIn", "4 of 4 pods train", "2026-01-31T12:00:01Z", 3}};
  status.worker = {4, 0, 1};
  status.replicas = 4;
  status.selector = "a=b";
  status.epoch = (1ull << 40) | 7;
  status.world_size = 4;
  status.ring = {{0, "digits-worker-0", 0, "node-1"}};
  status.last_rebuild = LastRebuild{(1ull << 40) | 7, "PodDrained", 0.08, 1};
  status.steps_lost = 1;
  status.restarts_from_checkpoint = 2;
  status.worker_restarts = 2;
  status.pods_replaced = 3;
  status.faults = 1;
  status.finished_epoch = (1ull << 40) | 7;
  status.accounted_pods = {"uid-1"};
  status.counted_exits = {{"uid-3", 0, 2}, {"uid-3", 1, 1}};
  status.counted_exits_omitted = 0;
  status.proven_dead = {"uid-2"};
  status.troubled_nodes = {
      {"node-1", 2, "2026-01-31T12:00:02Z", "2026-01-31T12:10:02Z", "NodeUnreachable"},
      {"node-2", 1, "2026-01-31T12:00:02Z", "", "WorkerDied"}};
  status.priority = -7;
  status.times_given_back = 3;
  status.last_given_back_time = status.running_since = "2026-01-31T12:00:01Z";
  status.start_time = status.last_growth_time = "2026-01-31T12:00:00Z";
  status.completion_time = "2026-01-31T12:10:00Z";
  status.observed_generation = 3;
  EXPECT_EQ(StatusFromJson(StatusToJson(status)), status);
}

TEST(StatusTest, SecondsAreWrittenToTheMillisecond) {
  Status status;
  status.last_rebuild = LastRebuild{1, "WorkerLost", 0.66238373400001, 0};
  EXPECT_EQ(StatusToJson(status)["lastRebuild"]["seconds"].dump(), "0.662");
}

TEST(StatusTest, NonsenseInTheStatusIsReadAsAbsent) {
  const Json odd = Json::parse(R"({"epoch": "x", "ring": 3, "conditions": {}, "lastRebuild": []})");
  EXPECT_EQ(StatusFromJson(odd).epoch, 0u);
  EXPECT_EQ(StatusFromJson(Json("x")), Status{});
}

TEST(StatusTest, ANumberThatDoesNotFitIsReadAsAbsent) {
  const Json huge = Json::parse(R"({
      "worldSize": 5000000000, "stepsLost": 2e89, "epoch": 1e300, "faults": 1e20,
      "conditions": [{"type": "Running", "observedGeneration": 2e89}],
      "ring": [{"rank": -5000000000}]})");
  const Status status = StatusFromJson(huge);
  EXPECT_EQ(status.world_size, 0);
  EXPECT_EQ(status.steps_lost, 0);
  EXPECT_EQ(status.epoch, 0u);
  EXPECT_EQ(status.faults, 0);
  EXPECT_EQ(status.conditions.at(0).observed_generation, 0);
  EXPECT_EQ(status.ring.at(0).rank, 0);
}

}  // namespace
}  // namespace ringmaster::api
