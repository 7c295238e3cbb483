// Converts the status to and from JSON. Reading is lenient on purpose: a field of another version
// must not make the rest unreadable.
#include <algorithm>
#include <cmath>

#include "common/fields/fields.h"
#include "common/membership/view.h"
#include "operator/api/horovod_job.h"

namespace ringmaster::api {
namespace {

template <class T>
T Get(const Json& object, const char* name, T fallback = {}) {
  if (!object.is_object()) return fallback;
  const auto at = object.find(name);
  if (at == object.end()) return fallback;
  if constexpr (std::is_same_v<T, std::string>) {
    return at->is_string() ? at->template get<std::string>() : fallback;
  } else {
    return at->is_number() ? at->template get<T>() : fallback;
  }
}

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
  return {.type = Get<std::string>(json, "type"),
          .status = Get<std::string>(json, "status") == "True",
          .reason = Get<std::string>(json, "reason"),
          .message = Get<std::string>(json, "message"),
          .last_transition_time = Get<std::string>(json, "lastTransitionTime"),
          .observed_generation = Get<std::int64_t>(json, "observedGeneration")};
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
  if (!status.last_growth_time.empty()) json["lastGrowthTime"] = status.last_growth_time;
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
  status.state = Get<std::string>(json, "state");
  for (const Json& condition : fields::List(json, "conditions")) {
    status.conditions.push_back(ConditionFromJson(condition));
  }
  const Json& worker = fields::Object(fields::Object(json, "replicaStatuses"), "Worker");
  status.worker = {Get<int>(worker, "active"), Get<int>(worker, "succeeded"),
                   Get<int>(worker, "failed")};
  status.replicas = Get<int>(json, "replicas");
  status.selector = Get<std::string>(json, "selector");
  status.epoch = Get<std::uint64_t>(json, "epoch");
  status.world_size = Get<int>(json, "worldSize");
  status.ring_omitted = Get<int>(json, "ringOmitted");
  for (const Json& entry : fields::List(json, "ring")) {
    status.ring.push_back({Get<int>(entry, "rank"), Get<std::string>(entry, "pod"),
                           Get<int>(entry, "slot"), Get<std::string>(entry, "node")});
  }
  if (json.is_object() && json.contains("lastRebuild")) {
    const Json& rebuild = fields::Object(json, "lastRebuild");
    status.last_rebuild =
        LastRebuild{Get<std::uint64_t>(rebuild, "epoch"), Get<std::string>(rebuild, "reason"),
                    Get<double>(rebuild, "seconds"), Get<std::int64_t>(rebuild, "stepsLost")};
  }
  status.steps_lost = Get<std::int64_t>(json, "stepsLost");
  status.restarts_from_checkpoint = Get<int>(json, "restartsFromCheckpoint");
  status.worker_restarts = Get<int>(json, "workerRestarts");
  status.pods_replaced = Get<int>(json, "podsReplaced");
  status.faults = Get<int>(json, "faults");
  status.finished_epoch = Get<std::uint64_t>(json, "finishedEpoch");
  for (const Json& uid : fields::List(json, "accountedPods")) {
    if (uid.is_string()) status.accounted_pods.push_back(uid.get<std::string>());
  }
  status.last_growth_time = Get<std::string>(json, "lastGrowthTime");
  status.times_given_back = Get<int>(json, "timesGivenBack");
  status.last_given_back_time = Get<std::string>(json, "lastGivenBackTime");
  for (const Json& uid : fields::List(json, "provenDead")) {
    if (uid.is_string()) status.proven_dead.push_back(uid.get<std::string>());
  }
  for (const Json& node : fields::List(json, "troubledNodes")) {
    status.troubled_nodes.push_back({Get<std::string>(node, "name"), Get<int>(node, "failures"),
                                     Get<std::string>(node, "lastFailure"),
                                     Get<std::string>(node, "avoidUntil"),
                                     Get<std::string>(node, "reason")});
  }
  status.start_time = Get<std::string>(json, "startTime");
  status.running_since = Get<std::string>(json, "runningSince");
  status.completion_time = Get<std::string>(json, "completionTime");
  status.observed_generation = Get<std::int64_t>(json, "observedGeneration");
  return status;
}

}  // namespace ringmaster::api
