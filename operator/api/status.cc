// Converts the status to and from JSON. Reading is lenient on purpose: a field of another version
// must not make the rest unreadable.
#include <algorithm>
#include <cmath>

#include "common/fields/fields.h"
#include "common/fields/int.h"
#include "common/membership/view.h"
#include "operator/api/horovod_job.h"

namespace ringmaster::api {
namespace {

using fields::Int;

Json ConditionToJson(const Condition& condition) {
  Json json;
  json["type"] = condition.type;
  json["status"] = condition.status ? "True" : "False";
  json["reason"] = condition.reason;
  json["message"] = condition.message;
  json["lastTransitionTime"] = condition.last_transition_time;
  json["observedGeneration"] = condition.observed_generation;
  return json;
}

Json RingEntryToJson(const RingEntry& entry) {
  Json json;
  json["rank"] = entry.rank;
  json["pod"] = entry.pod;
  json["slot"] = entry.slot;
  json["node"] = entry.node;
  return json;
}

Json TroubledNodeToJson(const TroubledNode& node) {
  Json json = {{"name", node.name},
               {"failures", node.failures},
               {"lastFailure", node.last_failure},
               {"reason", node.reason}};
  if (!node.avoid_until.empty()) json["avoidUntil"] = node.avoid_until;
  return json;
}

Condition ConditionFromJson(const Json& json) {
  return {.type = fields::Text(json, "type"),
          .status = fields::Text(json, "status") == "True",
          .reason = fields::Text(json, "reason"),
          .message = fields::Text(json, "message"),
          .last_transition_time = fields::Text(json, "lastTransitionTime"),
          .observed_generation = fields::Integer(json, "observedGeneration")};
}

}  // namespace

const Condition* Status::Find(const std::string& type) const {
  const auto at = std::find_if(conditions.begin(), conditions.end(),
                               [&](const Condition& c) { return c.type == type; });
  return at == conditions.end() ? nullptr : &*at;
}

bool Status::Is(const std::string& type) const {
  const Condition* condition = Find(type);
  return condition != nullptr && condition->status;
}

Json StatusToJson(const Status& status) {
  Json json;
  json["state"] = status.state;
  json["conditions"] = Json::array();
  Json& worker = json["replicaStatuses"]["Worker"];
  worker["active"] = status.worker.active;
  worker["succeeded"] = status.worker.succeeded;
  worker["failed"] = status.worker.failed;
  json["replicas"] = status.replicas;
  json["selector"] = status.selector;
  json["epoch"] = status.epoch;
  json["worldSize"] = status.world_size;
  json["ring"] = Json::array();
  json["stepsLost"] = status.steps_lost;
  if (status.restarts_from_checkpoint != 0)
    json["restartsFromCheckpoint"] = status.restarts_from_checkpoint;
  json["workerRestarts"] = status.worker_restarts;
  json["podsReplaced"] = status.pods_replaced;
  json["faults"] = status.faults;
  json["observedGeneration"] = status.observed_generation;
  if (status.epoch != 0) json["view"] = membership::EpochText(status.epoch);
  for (const Condition& condition : status.conditions) {
    json["conditions"].push_back(ConditionToJson(condition));
  }
  for (const RingEntry& entry : status.ring) json["ring"].push_back(RingEntryToJson(entry));
  if (status.ring_omitted != 0) json["ringOmitted"] = status.ring_omitted;
  if (status.last_rebuild) {
    json["lastRebuild"] = {{"epoch", status.last_rebuild->epoch},
                           {"reason", status.last_rebuild->reason},
                           {"seconds", std::round(status.last_rebuild->seconds * 1e3) / 1e3},
                           {"stepsLost", status.last_rebuild->steps_lost}};
  }
  if (status.finished_epoch != 0) json["finishedEpoch"] = status.finished_epoch;
  if (!status.accounted_pods.empty()) json["accountedPods"] = status.accounted_pods;
  for (const CountedExit& exit : status.counted_exits) {
    json["countedExits"].push_back(
        {{"pod", exit.pod}, {"slot", exit.slot}, {"incarnation", exit.incarnation}});
  }
  if (status.counted_exits_omitted) json["countedExitsOmitted"] = *status.counted_exits_omitted;
  if (!status.last_growth_time.empty()) json["lastGrowthTime"] = status.last_growth_time;
  if (status.priority) json["priority"] = *status.priority;
  if (status.times_given_back != 0) json["timesGivenBack"] = status.times_given_back;
  if (!status.last_given_back_time.empty()) {
    json["lastGivenBackTime"] = status.last_given_back_time;
  }
  if (!status.proven_dead.empty()) json["provenDead"] = status.proven_dead;
  if (!status.troubled_nodes.empty()) {
    json["troubledNodes"] = Json::array();
    for (const TroubledNode& node : status.troubled_nodes) {
      json["troubledNodes"].push_back(TroubledNodeToJson(node));
    }
  }
  if (!status.start_time.empty()) json["startTime"] = status.start_time;
  if (!status.running_since.empty()) json["runningSince"] = status.running_since;
  if (!status.completion_time.empty()) json["completionTime"] = status.completion_time;
  return json;
}

Status StatusFromJson(const Json& json) {
  Status status;
  status.state = fields::Text(json, "state");
  for (const Json& condition : fields::List(json, "conditions")) {
    status.conditions.push_back(ConditionFromJson(condition));
  }
  const Json& worker = fields::Object(fields::Object(json, "replicaStatuses"), "Worker");
  status.worker = {Int(worker, "active"), Int(worker, "succeeded"), Int(worker, "failed")};
  status.replicas = Int(json, "replicas");
  status.selector = fields::Text(json, "selector");
  status.epoch = fields::Unsigned(json, "epoch");
  status.world_size = Int(json, "worldSize");
  status.ring_omitted = Int(json, "ringOmitted");
  for (const Json& entry : fields::List(json, "ring")) {
    status.ring.push_back({Int(entry, "rank"), fields::Text(entry, "pod"), Int(entry, "slot"),
                           fields::Text(entry, "node")});
  }
  if (json.is_object() && json.contains("lastRebuild")) {
    const Json& rebuild = fields::Object(json, "lastRebuild");
    status.last_rebuild =
        LastRebuild{fields::Unsigned(rebuild, "epoch"), fields::Text(rebuild, "reason"),
                    fields::Number(rebuild, "seconds"), fields::Integer(rebuild, "stepsLost")};
  }
  status.steps_lost = fields::Integer(json, "stepsLost");
  status.restarts_from_checkpoint = Int(json, "restartsFromCheckpoint");
  status.worker_restarts = Int(json, "workerRestarts");
  status.pods_replaced = Int(json, "podsReplaced");
  status.faults = Int(json, "faults");
  status.finished_epoch = fields::Unsigned(json, "finishedEpoch");
  status.accounted_pods = fields::Texts(json, "accountedPods");
  for (const Json& exit : fields::List(json, "countedExits")) {
    status.counted_exits.push_back(
        {fields::Text(exit, "pod"), Int(exit, "slot"), fields::Unsigned(exit, "incarnation")});
  }
  if (json.is_object() && json.contains("countedExitsOmitted")) {
    status.counted_exits_omitted = Int(json, "countedExitsOmitted");
  }
  status.last_growth_time = fields::Text(json, "lastGrowthTime");
  if (json.is_object() && json.contains("priority")) status.priority = Int(json, "priority");
  status.times_given_back = Int(json, "timesGivenBack");
  status.last_given_back_time = fields::Text(json, "lastGivenBackTime");
  status.proven_dead = fields::Texts(json, "provenDead");
  for (const Json& node : fields::List(json, "troubledNodes")) {
    status.troubled_nodes.push_back(
        {fields::Text(node, "name"), Int(node, "failures"), fields::Text(node, "lastFailure"),
         fields::Text(node, "avoidUntil"), fields::Text(node, "reason")});
  }
  status.start_time = fields::Text(json, "startTime");
  status.running_since = fields::Text(json, "runningSince");
  status.completion_time = fields::Text(json, "completionTime");
  status.observed_generation = fields::Integer(json, "observedGeneration");
  return status;
}

}  // namespace ringmaster::api
