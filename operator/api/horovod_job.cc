#include "operator/api/horovod_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <regex>

#include "operator/api/labels.h"
#include "operator/api/object_reader.h"
#include "operator/api/pod_template.h"
#include "operator/api/scheduling_spec.h"

namespace ringmaster::api {
namespace {

constexpr int kYear = 366 * 24 * 3600;
constexpr std::size_t kLongestReason = 128;

bool IsDnsLabel(const std::string& name) {
  static const std::regex kLabel("[a-z0-9]([-a-z0-9]*[a-z0-9])?");
  return std::regex_match(name, kLabel);
}

// Reads labels or annotations.
std::map<std::string, std::string> StringMap(ObjectReader& metadata, const std::string& name) {
  std::map<std::string, std::string> map;
  metadata.Object(name, false, [&](ObjectReader& reader) {
    for (const auto& [key, value] : metadata.Raw(name).items()) {
      reader.String(key, &map[key]);
    }
  });
  return map;
}

// Checks only the fields of metadata that we need: metadata belongs to Kubernetes.
void ReadMetadata(ObjectReader& metadata, HorovodJob* job) {
  std::string creation, deletion;
  metadata.String("name", &job->name);
  metadata.String("namespace", &job->ns);
  metadata.String("uid", &job->uid);
  metadata.String("resourceVersion", &job->resource_version);
  metadata.String("creationTimestamp", &creation);
  metadata.String("deletionTimestamp", &deletion);
  job->deleting = !deletion.empty();
  const Json& generation = metadata.Raw("generation");
  if (generation.is_number_integer()) job->generation = generation.get<std::int64_t>();
  const auto labels = StringMap(metadata, "labels");
  const auto label = [&labels](const char* key) {
    const auto at = labels.find(key);
    return at == labels.end() ? std::string() : at->second;
  };
  job->queue = label(kQueueLabel);
  job->queue_priority_class = label(kQueuePriorityLabel);
  job->annotations = StringMap(metadata, "annotations");
  if (job->name.empty()) {
    const Json& name = metadata.Raw("name");
    if (name.is_null() || name.is_string()) metadata.Error("name", "is required");
  } else if (job->name.size() > kMaxNameLength || !IsDnsLabel(job->name)) {
    metadata.Error("name", fmt::format("\"{}\" must be at most {} lower-case letters, digits and "
                                       "'-', beginning and ending with a letter or digit",
                                       job->name, kMaxNameLength));
  }
  metadata.RefuseTypos({"name", "namespace", "labels", "annotations", "finalizers", "generateName",
                        "ownerReferences"});
}

void ReadElasticPolicy(ObjectReader& elastic, ElasticPolicy* policy) {
  elastic.Int("minReplicas", 1, kMaxReplicas, &policy->min_replicas);
  elastic.OptionalInt("maxReplicas", 1, kMaxReplicas, &policy->max_replicas);
  elastic.Int("resizeIntervalSeconds", 0, kYear, &policy->resize_interval_seconds);
  elastic.IntList("allowedSizes", 1, kMaxReplicas, &policy->allowed_sizes);
  elastic.AtMost("allowedSizes", 64);
  elastic.NoTwins("allowedSizes");
  elastic.Enum("onBelowMin", {{"Wait", OnBelowMin::kWait}, {"FailJob", OnBelowMin::kFailJob}},
               &policy->on_below_min);
  elastic.Enum("onQuorumLoss",
               {{"Wait", OnQuorumLoss::kWait},
                {"RestartFromCheckpoint", OnQuorumLoss::kRestartFromCheckpoint}},
               &policy->on_quorum_loss);
  elastic.Int("standbyPerPod", 0, 1, &policy->standby_per_pod);
  elastic.Int("stoppedWorkerSeconds", 1, 3600, &policy->stopped_worker_seconds);
  elastic.RefuseUnknown();
}

void ReadWorker(ObjectReader& worker, bool taken_up, WorkerSpec* spec) {
  if (!worker.Has("replicas")) worker.Error("replicas", "is required: how many pods to run");
  worker.Int("replicas", 0, kMaxReplicas, &spec->replicas);
  const Json& pod_template = worker.Raw("template");
  if (pod_template.is_null()) {
    worker.Error("template", "is required: a pod template with a container named \"worker\"");
  } else {
    CheckPodTemplate(pod_template, taken_up, worker.errors());
  }
  if (pod_template.is_object()) spec->pod_template = pod_template;
  worker.RefuseUnknown();
}

// A valid label key: an optional domain with a slash, and a name.
bool IsLabelKey(const std::string& key) {
  static const std::regex kKey(
      "([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
      "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?");
  return std::regex_match(key, kKey);
}

void ReadTopology(ObjectReader& topology, TopologyPolicy* policy) {
  constexpr std::size_t kMostKey = 317;
  for (const char* field : {"required", "preferred"}) {
    if (!topology.Has(field)) continue;
    topology.String(field, &policy->label);
    topology.AtMost(field, kMostKey);
    policy->required = field == std::string("required");
    const Json& key = topology.Raw(field);
    if (key.is_string() && policy->label.size() <= kMostKey && !IsLabelKey(policy->label)) {
      topology.Error(field, Show(key) + " is not the key of a label, such as example.com/rack");
    }
  }
  if (topology.Has("required") && topology.Has("preferred")) {
    topology.errors()->push_back(
        {topology.path(), "has both of the fields required and preferred: leave one out"});
  }
  topology.RefuseUnknown();
}

void ReadRunPolicy(ObjectReader& run, RunPolicy* policy) {
  run.Bool("suspend", &policy->suspend);
  run.Enum("cleanPodPolicy",
           {{"Running", CleanPodPolicy::kRunning},
            {"All", CleanPodPolicy::kAll},
            {"None", CleanPodPolicy::kNone}},
           &policy->clean_pod_policy);
  run.OptionalInt("ttlSecondsAfterFinished", 0, kYear, &policy->ttl_seconds_after_finished);
  run.OptionalInt("activeDeadlineSeconds", 1, 10 * kYear, &policy->active_deadline_seconds);
  run.Int("backoffLimit", 0, 1000000, &policy->backoff_limit);
  run.String("managedBy", &policy->managed_by);
  run.AtMost("managedBy", 63);
  run.Object("schedulingPolicy", false, [&](ObjectReader& scheduling) {
    scheduling.String("priorityClass", &policy->scheduling_policy.priority_class);
    scheduling.String("queue", &policy->scheduling_policy.queue);
    scheduling.AtMost("priorityClass", 253);
    scheduling.AtMost("queue", 253);
    scheduling.Object("topology", false, [&](ObjectReader& topology) {
      ReadTopology(topology, &policy->scheduling_policy.topology);
    });
    scheduling.RefuseUnknown();
  });
  run.RefuseUnknown();
}

// Reports a list of a rule that is empty, too long, or contains duplicates.
void CheckMatched(ObjectReader& rule, const char* list, std::size_t most) {
  rule.AtMost(list, most);
  rule.NoTwins(list);
  if (rule.Raw(list).is_array() && rule.Raw(list).empty()) {
    rule.Error(list, "has 0 elements: it needs at least 1");
  }
}

void ReadReasons(ObjectReader& reader, std::vector<std::string>* reasons) {
  reader.StringList("onReasons", reasons);
  CheckMatched(reader, "onReasons", 32);
  const Json& list = reader.Raw("onReasons");
  for (std::size_t i = 0; list.is_array() && i < list.size(); ++i) {
    if (!list[i].is_string()) continue;
    const std::string at = fmt::format("onReasons[{}]", i);
    const std::size_t length = list[i].get_ref<const std::string&>().size();
    if (length == 0) reader.Error(at, "\"\" is empty: it needs a value");
    if (length > kLongestReason) {
      reader.Error(
          at, fmt::format("{} is too long: at most {} characters", Show(list[i]), kLongestReason));
    }
  }
}

void ReadFailureRule(ObjectReader& reader, FailureRule* rule) {
  // 0 is success, and no exit code exceeds 255.
  reader.IntList("onExitCodes", 1, 255, &rule->on_exit_codes);
  CheckMatched(reader, "onExitCodes", 255);
  ReadReasons(reader, &rule->on_reasons);
  if (!reader.Has("action")) {
    reader.Error("action", "is required: one of RestartWorker, ReplacePod, FailJob, Ignore");
  }
  reader.Enum("action",
              {{"RestartWorker", FailureAction::kRestartWorker},
               {"ReplacePod", FailureAction::kReplacePod},
               {"FailJob", FailureAction::kFailJob},
               {"Ignore", FailureAction::kIgnore}},
              &rule->action);
  if (!reader.Has("onExitCodes") && !reader.Has("onReasons")) {
    reader.Error("", "matches nothing: give onExitCodes or onReasons");
  }
  reader.RefuseUnknown();
}

void ReadFailurePolicy(ObjectReader& failure, FailurePolicy* policy) {
  failure.ObjectList("rules", [&](ObjectReader& reader) {
    FailureRule rule;
    ReadFailureRule(reader, &rule);
    policy->rules.push_back(std::move(rule));
  });
  failure.AtMost("rules", 100);
  failure.Int("nodeCooldownSeconds", 0, kYear, &policy->node_cooldown_seconds);
  failure.RefuseUnknown();
}

Json ReadCollectives(ObjectReader& collectives, bool taken_up) {
  std::string backend = "Auto", encryption = "Off", timeline = "On", gpus = "All";
  const std::initializer_list<std::pair<const char*, std::string>> switches = {{"On", "On"},
                                                                               {"Off", "Off"}};
  int fusion = 64 << 20;
  if (taken_up && collectives.Raw("backend") == "Mpi") {
    backend = "Mpi";
  } else if (collectives.Raw("backend") == "Mpi") {
    collectives.Error("backend",
                      "\"Mpi\" is not allowed: must be one of Auto, Cpu, Nccl, None. MPI carries "
                      "collectives only between processes that mpirun starts, and a job has no "
                      "mpirun (docs/horovod.md)");
  } else {
    collectives.Enum("backend",
                     {{"Auto", std::string("Auto")},
                      {"Cpu", std::string("Cpu")},
                      {"Nccl", std::string("Nccl")},
                      {"None", std::string("None")}},
                     &backend);
  }
  collectives.Enum("encryption", switches, &encryption);
  collectives.Int("fusionThresholdBytes", 0, 1 << 30, &fusion);
  collectives.Enum("timeline", switches, &timeline);
  collectives.Enum("visibleGpus", {{"All", std::string("All")}, {"Own", std::string("Own")}},
                   &gpus);
  collectives.RefuseUnknown();
  Json read = {{"backend", backend},
               {"encryption", encryption},
               {"fusionThresholdBytes", fusion},
               {"timeline", timeline}};
  // The default is left out, so that pods of jobs from before this field existed stay as they are.
  if (gpus != "All") read["visibleGpus"] = gpus;
  return read;
}

Json FailurePolicyToJson(const FailurePolicy& policy) {
  Json rules = Json::array();
  for (const FailureRule& rule : policy.rules) {
    Json json = {{"action", ToString(rule.action)}};
    if (!rule.on_exit_codes.empty()) json["onExitCodes"] = rule.on_exit_codes;
    if (!rule.on_reasons.empty()) json["onReasons"] = rule.on_reasons;
    rules.push_back(std::move(json));
  }
  return {{"rules", std::move(rules)}, {"nodeCooldownSeconds", policy.node_cooldown_seconds}};
}

// Checks rules between fields that are each valid.
void CheckSizes(const Spec& spec, FieldErrors* errors) {
  const ElasticPolicy& elastic = spec.elastic_policy;
  const std::string path = "spec.elasticPolicy.";
  const int replicas = spec.worker.replicas;
  if (elastic.max_replicas && elastic.min_replicas > *elastic.max_replicas) {
    errors->push_back(
        {path + "minReplicas", fmt::format("{} is more than maxReplicas ({})", elastic.min_replicas,
                                           *elastic.max_replicas)});
    return;  // comparing replicas with these bounds makes no sense
  }
  const bool none = replicas == 0;  // treated as suspended
  if (std::int64_t{replicas} * spec.slots_per_worker > kMaxWorkers) {
    errors->push_back(
        {"spec.worker.replicas", fmt::format("{} with {} slotsPerWorker is more than {} workers",
                                             replicas, spec.slots_per_worker, kMaxWorkers)});
  }
  if (!none && replicas < elastic.min_replicas) {
    errors->push_back(
        {"spec.worker.replicas", fmt::format("{} is less than elasticPolicy.minReplicas ({})",
                                             replicas, elastic.min_replicas)});
  }
  if (elastic.max_replicas && replicas > *elastic.max_replicas) {
    errors->push_back(
        {"spec.worker.replicas", fmt::format("{} is more than elasticPolicy.maxReplicas ({})",
                                             replicas, *elastic.max_replicas)});
  }
  if (spec.collectives.contains("visibleGpus") && elastic.standby_per_pod > 0 &&
      spec.slots_per_worker > 1) {
    errors->push_back({path + "standbyPerPod",
                       fmt::format("{} must be 0 where collectives.visibleGpus is Own: a standby "
                                   "learns its slot, and so its GPU, when a worker has died",
                                   elastic.standby_per_pod)});
  }
  bool one_fits = none || elastic.allowed_sizes.empty();
  std::vector<int> outside;
  for (const int size : elastic.allowed_sizes) {
    if (size < elastic.min_replicas || (elastic.max_replicas && size > *elastic.max_replicas)) {
      outside.push_back(size);
    }
    one_fits = one_fits || size <= replicas;
  }
  if (!outside.empty()) {
    errors->push_back(
        {path + "allowedSizes",
         fmt::format("[{}] is not between minReplicas and maxReplicas", fmt::join(outside, ", "))});
  }
  if (!one_fits) {
    errors->push_back(
        {"spec.worker.replicas",
         fmt::format("{} is less than every size in elasticPolicy.allowedSizes", replicas)});
  }
}

// `defaults`: of `collectives`.
std::string PodsDigest(const Spec& spec, const Json& defaults) {
  Json chosen = Json::object();
  for (const auto& [name, value] : spec.collectives.items()) {
    if (!defaults.contains(name) || defaults[name] != value) chosen[name] = value;
  }
  return Digest({{"template", spec.worker.pod_template}, {"collectives", std::move(chosen)}});
}

// `taken_up`: an operator has accepted the job. Values that an earlier version accepted but
// ignored, and that this one refuses, stay ignored for such a job.
void ReadSpec(ObjectReader& spec, bool taken_up, HorovodJob* job, FieldErrors* errors) {
  const std::size_t before = CountWrong(*errors);
  Spec& out = job->spec;
  Json collectives = Json::object();
  ObjectReader no_collectives(collectives, "spec.collectives", errors);
  const Json defaults = ReadCollectives(no_collectives, taken_up);
  out.collectives = defaults;
  spec.Int("slotsPerWorker", 1, 1024, &out.slots_per_worker);
  spec.Int("initTimeoutSeconds", 1, kYear, &out.init_timeout_seconds);
  spec.Object("elasticPolicy", false,
              [&](ObjectReader& reader) { ReadElasticPolicy(reader, &out.elastic_policy); });
  spec.Object("worker", true,
              [&](ObjectReader& reader) { ReadWorker(reader, taken_up, &out.worker); });
  spec.Object("runPolicy", false,
              [&](ObjectReader& reader) { ReadRunPolicy(reader, &out.run_policy); });
  spec.Object("failurePolicy", false,
              [&](ObjectReader& reader) { ReadFailurePolicy(reader, &out.failure_policy); });
  spec.Object("collectives", false,
              [&](ObjectReader& reader) { out.collectives = ReadCollectives(reader, taken_up); });
  spec.RefuseUnknown();
  out.failure_policy_json = FailurePolicyToJson(out.failure_policy);
  out.pods_digest = PodsDigest(out, defaults);
  if (CountWrong(*errors) == before) CheckSizes(out, errors);
}

void CheckConstant(ObjectReader& reader, const std::string& name, const std::string& wanted) {
  std::string value;
  const Json& raw = reader.Raw(name);
  if (raw.is_string()) value = raw.get<std::string>();
  if (raw.is_null()) {
    reader.Error(name, fmt::format("is required: {}", wanted));
  } else if (value != wanted) {
    reader.Error(name, fmt::format("{} must be {}", Show(raw), wanted));
  }
}

}  // namespace

const char* ToString(CleanPodPolicy policy) {
  switch (policy) {
    case CleanPodPolicy::kRunning:
      return "Running";
    case CleanPodPolicy::kAll:
      return "All";
    case CleanPodPolicy::kNone:
      return "None";
  }
  return "";
}

int HorovodJob::MaxPods() const { return spec.elastic_policy.max_replicas.value_or(kMaxReplicas); }

int HorovodJob::WantedPods() const { return WantedPodsOf(std::numeric_limits<int>::max()); }

int HorovodJob::LeastPods() const {
  const ElasticPolicy& elastic = spec.elastic_policy;
  int least = elastic.allowed_sizes.empty() ? elastic.min_replicas : WantedPods();
  for (const int size : elastic.allowed_sizes) {
    if (size >= elastic.min_replicas) least = std::min(least, size);
  }
  return least;
}

int HorovodJob::WantedPodsOf(int most) const {
  const ElasticPolicy& elastic = spec.elastic_policy;
  if (spec.worker.replicas == 0) return 0;
  const int wish = std::clamp(std::min(spec.worker.replicas, most), elastic.min_replicas,
                              std::max(elastic.min_replicas, MaxPods()));
  int best = 0;
  for (const int size : elastic.allowed_sizes) {
    if (size <= wish) best = std::max(best, size);
  }
  return best == 0 ? wish : best;
}

FieldErrors CheckUpdate(const Spec& before, const Spec& after) {
  constexpr char kNewJob[] = "can't be changed: make a new job";
  constexpr char kSuspend[] =
      "can't be changed while the job is not suspended: its pods have to be alike";
  FieldErrors errors;
  if (before.slots_per_worker != after.slots_per_worker) {
    errors.push_back({"spec.slotsPerWorker", kNewJob});
  }
  if (before.run_policy.managed_by != after.run_policy.managed_by) {
    errors.push_back({"spec.runPolicy.managedBy", kNewJob});
  }
  for (const Spec* spec : {&before, &after}) {
    if (spec->run_policy.suspend || spec->worker.replicas == 0) return errors;
  }
  if (before.worker.pod_template != after.worker.pod_template) {
    errors.push_back({"spec.worker.template", kSuspend});
  }
  if (before.collectives != after.collectives) errors.push_back({"spec.collectives", kSuspend});
  return errors;
}

tl::expected<HorovodJob, FieldErrors> ParseHorovodJob(const Json& object, UnknownFields unknown) {
  FieldErrors errors;
  HorovodJob job;
  if (!object.is_object()) {
    errors.push_back({"manifest", fmt::format("{} must be an object", Show(object))});
    return tl::unexpected(std::move(errors));
  }
  ObjectReader root(object, "", &errors);
  CheckConstant(root, "apiVersion", kApiVersion);
  CheckConstant(root, "kind", kKind);
  root.Object("metadata", true, [&](ObjectReader& reader) { ReadMetadata(reader, &job); });
  job.status = StatusFromJson(root.Raw("status"));
  root.Object("spec", true,
              [&](ObjectReader& reader) { ReadSpec(reader, job.status.TakenUp(), &job, &errors); });
  root.RefuseUnknown();
  if (unknown == UnknownFields::kIgnore) {
    for (const FieldError& error : errors) {
      if (error.unknown_field) job.ignored_fields.push_back(error.path);
    }
    std::erase_if(errors, [](const FieldError& error) { return error.unknown_field; });
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  const std::string& queue = job.spec.run_policy.scheduling_policy.queue;
  if (!queue.empty()) job.queue = queue;
  return job;
}

}  // namespace ringmaster::api
