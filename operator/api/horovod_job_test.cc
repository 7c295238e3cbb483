#include "operator/api/horovod_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/time.h"

namespace ringmaster::api {
namespace {

using testing::HasSubstr;

Json Minimal() {
  return Json::parse(R"({
    "apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {"name": "digits"},
    "spec": {"worker": {"replicas": 4, "template": {"spec": {"containers": [
      {"name": "worker", "image": "digits", "command": ["python3", "train.py"]}]}}}}})");
}

constexpr char kContainer[] = "/spec/worker/template/spec/containers/0";

TEST(HorovodJobTest, TheSmallestManifestGetsAllDefaults) {
  const auto job = ParseHorovodJob(Minimal());
  ASSERT_TRUE(job) << ToString(job.error());
  EXPECT_EQ(job->Key(), "default/digits");
  EXPECT_EQ(job->spec.slots_per_worker, 1);
  EXPECT_EQ(job->spec.elastic_policy.min_replicas, 1);
  EXPECT_EQ(job->spec.init_timeout_seconds, 600);
  EXPECT_EQ(job->spec.run_policy.backoff_limit, 6);
  EXPECT_EQ(job->spec.collectives["backend"], "Auto");
  EXPECT_EQ(job->spec.collectives["encryption"], "Off");
  EXPECT_EQ(job->spec.collectives["fusionThresholdBytes"], 64 << 20);
  EXPECT_FALSE(job->spec.collectives.contains("visibleGpus")) << "pods stay as they were";
  EXPECT_EQ(job->WantedPods(), 4);
}

TEST(HorovodJobTest, EveryFieldOfTheDesignIsRead) {
  Json json = Minimal();
  json["spec"].merge_patch(Json::parse(R"({
    "slotsPerWorker": 2, "initTimeoutSeconds": 60,
    "elasticPolicy": {"minReplicas": 2, "maxReplicas": 8, "resizeIntervalSeconds": 30,
      "allowedSizes": [2, 4, 8], "onBelowMin": "FailJob", "onQuorumLoss": "RestartFromCheckpoint",
      "standbyPerPod": 1},
    "worker": {"replicas": 5},
    "runPolicy": {"suspend": true, "cleanPodPolicy": "All", "ttlSecondsAfterFinished": 3600,
      "activeDeadlineSeconds": 86400, "backoffLimit": 3, "managedBy": "kueue",
      "schedulingPolicy": {"priorityClass": "high"}},
    "failurePolicy": {"rules": [{"onExitCodes": [137], "action": "RestartWorker"},
      {"onReasons": ["Evicted"], "action": "ReplacePod"}], "nodeCooldownSeconds": 10},
    "collectives": {"backend": "Cpu", "encryption": "On", "fusionThresholdBytes": 1024, "timeline": "Off"}})"));
  const auto job = ParseHorovodJob(json);
  ASSERT_TRUE(job) << ToString(job.error());
  EXPECT_EQ(job->WantedPods(), 4) << "5 is not an allowed size";
  EXPECT_EQ(job->MaxPods(), 8);
  EXPECT_EQ(job->spec.elastic_policy.on_below_min, OnBelowMin::kFailJob);
  EXPECT_EQ(job->spec.run_policy.clean_pod_policy, CleanPodPolicy::kAll);
  EXPECT_EQ(job->spec.failure_policy.rules.size(), 2u);
  EXPECT_EQ(job->spec.failure_policy_json["rules"][0]["onExitCodes"], Json::parse("[137]"));
  EXPECT_EQ(job->spec.collectives["timeline"], "Off");
  EXPECT_EQ(job->spec.collectives["encryption"], "On");
}

TEST(HorovodJobTest, AGpuForEachSlotLeavesNoneToAStandby) {
  Json json = Minimal();
  json["spec"].merge_patch({{"slotsPerWorker", 2}, {"collectives", {{"visibleGpus", "Own"}}}});
  ASSERT_TRUE(ParseHorovodJob(json));
  EXPECT_EQ(ParseHorovodJob(json)->spec.collectives["visibleGpus"], "Own");
  json["spec"]["elasticPolicy"]["standbyPerPod"] = 1;
  const auto job = ParseHorovodJob(json);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error()[0].path, "spec.elasticPolicy.standbyPerPod");
  EXPECT_THAT(job.error()[0].message, HasSubstr("must be 0 where collectives.visibleGpus is Own"));
}

struct BadCase {
  std::string name;
  std::string at;  // JSON pointer
  Json value;
  std::string path;  // the path in the error
  std::string words;
};

class BadManifest : public testing::TestWithParam<BadCase> {};

TEST_P(BadManifest, NamesTheFieldTheValueAndWhatIsAllowed) {
  Json json = Minimal();
  json[Json::json_pointer(GetParam().at)] = GetParam().value;
  const auto job = ParseHorovodJob(json);
  ASSERT_FALSE(job);
  ASSERT_EQ(job.error().size(), 1u) << ToString(job.error());
  EXPECT_EQ(job.error()[0].path, GetParam().path);
  EXPECT_THAT(job.error()[0].message, HasSubstr(GetParam().words));
}

const std::string kC = kContainer;
const std::string kCPath = "spec.worker.template.spec.containers[0]";

INSTANTIATE_TEST_SUITE_P(
    HorovodJobTest, BadManifest,
    testing::Values(
        BadCase{"WrongVersion", "/apiVersion", "v1", "apiVersion",
                "must be ringmaster.dev/v1alpha1"},
        BadCase{"WrongKind", "/kind", "Job", "kind", "\"Job\" must be HorovodJob"},
        BadCase{"NoName", "/metadata/name", nullptr, "metadata.name", "is required"},
        BadCase{"UpperCaseName", "/metadata/name", "Digits", "metadata.name", "lower-case"},
        BadCase{"LongName", "/metadata/name", std::string(51, 'a'), "metadata.name", "at most 50"},
        BadCase{"UnknownTopLevel", "/sepc", 1, "sepc", "did you mean \"spec\"?"},
        BadCase{"UnknownInSpec", "/spec/slotPerWorker", 1, "spec.slotPerWorker",
                "did you mean \"slotsPerWorker\"?"},
        BadCase{"TypoInElasticPolicy", "/spec/elasticPolicy/minreplica", 1,
                "spec.elasticPolicy.minreplica", "did you mean \"minReplicas\"?"},
        BadCase{"StrangeField", "/spec/runPolicy/zzz", 1, "spec.runPolicy.zzz",
                "known here: suspend"},
        BadCase{"ReplicasAsText", "/spec/worker/replicas", "4", "spec.worker.replicas",
                "\"4\" is a string: must be a whole number"},
        BadCase{"FractionOfAPod", "/spec/worker/replicas", 1.5, "spec.worker.replicas", "1.5"},
        BadCase{"NoPods", "/spec/worker/replicas", -1, "spec.worker.replicas", "from 0 to 10000"},
        BadCase{"HugeReplicas", "/spec/worker/replicas", 18446744073709551615u,
                "spec.worker.replicas", "out of range"},
        BadCase{"NoSlots", "/spec/slotsPerWorker", 0, "spec.slotsPerWorker", "0 is out of range"},
        BadCase{"MinAboveReplicas", "/spec/elasticPolicy/minReplicas", 5, "spec.worker.replicas",
                "4 is less than elasticPolicy.minReplicas (5)"},
        BadCase{"MinAboveMax",
                "/spec/elasticPolicy",
                {{"minReplicas", 9}, {"maxReplicas", 8}},
                "spec.elasticPolicy.minReplicas",
                "9 is more than maxReplicas (8)"},
        BadCase{"ReplicasAboveMax", "/spec/elasticPolicy/maxReplicas", 3, "spec.worker.replicas",
                "4 is more than elasticPolicy.maxReplicas (3)"},
        BadCase{"AllowedSizeOutside",
                "/spec/elasticPolicy",
                {{"maxReplicas", 4}, {"allowedSizes", {2, 6, 9}}},
                "spec.elasticPolicy.allowedSizes",
                "[6, 9] is not between"},
        BadCase{"AllowedSizeTwice",
                "/spec/elasticPolicy/allowedSizes",
                {2, 4, 2},
                "spec.elasticPolicy.allowedSizes[2]",
                "2 is there twice"},
        BadCase{"NoAllowedSizeFits",
                "/spec/elasticPolicy/allowedSizes",
                {6},
                "spec.worker.replicas",
                "4 is less than every size"},
        BadCase{"Policy", "/spec/runPolicy/cleanPodPolicy", "Some", "spec.runPolicy.cleanPodPolicy",
                "one of Running, All, None"},
        BadCase{"SuspendAsText", "/spec/runPolicy/suspend", "yes", "spec.runPolicy.suspend",
                "true or false"},
        BadCase{"NoTimeForAStoppedWorker", "/spec/elasticPolicy/stoppedWorkerSeconds", 0,
                "spec.elasticPolicy.stoppedWorkerSeconds", "from 1 to 3600"},
        BadCase{"TwoStandbys", "/spec/elasticPolicy/standbyPerPod", 2,
                "spec.elasticPolicy.standbyPerPod", "from 0 to 1"},
        BadCase{"SpecIsAList", "/spec", Json::array(), "spec", "is a list: must be an object"},
        BadCase{"NoWorker", "/spec/worker", nullptr, "spec.worker", "is required"},
        BadCase{"NoTemplate", "/spec/worker/template", nullptr, "spec.worker.template",
                "is required"},
        BadCase{"ExitCodeZero", "/spec/failurePolicy/rules",
                Json::parse(R"([{"onExitCodes": [0], "action": "FailJob"}])"),
                "spec.failurePolicy.rules[0].onExitCodes[0]", "from 1 to 255"},
        BadCase{"NoAction", "/spec/failurePolicy/rules", Json::parse(R"([{"onExitCodes": [2]}])"),
                "spec.failurePolicy.rules[0].action", "is required"},
        BadCase{"RuleForNothing", "/spec/failurePolicy/rules",
                Json::parse(R"([{"action": "Ignore"}])"), "spec.failurePolicy.rules[0]",
                "onExitCodes or onReasons"},
        BadCase{"NoExitCodes", "/spec/failurePolicy/rules",
                Json::parse(R"([{"onExitCodes": [], "action": "Ignore"}])"),
                "spec.failurePolicy.rules[0].onExitCodes", "at least 1"},
        BadCase{"NoImage", kC + "/image", nullptr, kCPath + ".image", "is required"},
        BadCase{"ImageIsANumber", kC + "/image", 3, kCPath + ".image", "must be a string"},
        BadCase{"NoCommand", kC + "/command", nullptr, kCPath + ".command", "is required"},
        BadCase{"CommandAsText", kC + "/command", "python3 train.py", kCPath + ".command",
                "must be a list"},
        BadCase{"NumberInArgs", kC + "/args", {"--epochs", 3}, kCPath + ".args[1]", "quotes"},
        BadCase{"TypoInContainer",
                kC + "/comand",
                {"x"},
                kCPath + ".comand",
                "did you mean \"command\"?"},
        BadCase{"TypoInResources",
                kC + "/resources",
                {{"limit", Json::object()}},
                kCPath + ".resources.limit",
                "did you mean \"limits\"?"},
        BadCase{"ReservedEnv", kC + "/env",
                Json::parse(R"([{"name": "RINGMASTER_SLOT", "value": "1"}])"),
                kCPath + ".env[0].name", "set by Ringmaster"},
        BadCase{"NoContainerNamedWorker", kC + "/name", "main",
                "spec.worker.template.spec.containers",
                "exactly one container named \"worker\"; found 0"},
        BadCase{"RestartPolicy", "/spec/worker/template/spec/restartPolicy", "Always",
                "spec.worker.template.spec.restartPolicy", "one of Never"},
        BadCase{"TypoInPodSpec", "/spec/worker/template/spec/nodeSelectors", Json::object(),
                "spec.worker.template.spec.nodeSelectors", "did you mean \"nodeSelector\"?"},
        BadCase{"TypoDeepInThePodSpec", "/spec/worker/template/spec/tolerations",
                Json::parse(R"([{"key": "gpu", "efect": "NoSchedule"}])"),
                "spec.worker.template.spec.tolerations[0].efect", "did you mean \"effect\"?"},
        BadCase{"StrangePodField", "/spec/worker/template/spec/quantumEntanglement", true,
                "spec.worker.template.spec.quantumEntanglement", "unknown field"},
        BadCase{"NoQuantity",
                kC + "/resources",
                {{"limits", {{"memory", "4 GB"}}}},
                kCPath + ".resources.limits.memory",
                "\"4 GB\" is not a quantity"},
        BadCase{"PortOutOfRange", kC + "/ports", Json::parse(R"([{"containerPort": 70000}])"),
                kCPath + ".ports[0].containerPort",
                "70000 is out of range: must be from 1 to 65535"},
        BadCase{"PullPolicy", kC + "/imagePullPolicy", "always", kCPath + ".imagePullPolicy",
                "one of Always, Never, IfNotPresent"},
        BadCase{"VariableTwice", kC + "/env", Json::parse(R"([{"name": "A"}, {"name": "A"}])"),
                kCPath + ".env[1]", "{\"name\":\"A\"} is there twice"},
        BadCase{"ReservedVolume", "/spec/worker/template/spec/volumes",
                Json::parse(R"([{"name": "ringmaster-run"}])"),
                "spec.worker.template.spec.volumes[0].name", "are taken"},
        BadCase{"ReservedLabel",
                "/spec/worker/template/metadata",
                {{"labels", {{"ringmaster.dev/job-uid", "1"}}}},
                "spec.worker.template.metadata.labels",
                "are taken"},
        BadCase{"Backend", "/spec/collectives/backend", "gloo", "spec.collectives.backend",
                "one of Auto, Cpu, Nccl, None"}),
    [](const auto& info) { return info.param.name; });

TEST(HorovodJobTest, AllErrorsAreReportedAtOnce) {
  Json json = Minimal();
  json["spec"]["slotsPerWorker"] = 0;
  json["spec"]["runPolicy"]["backoffLimit"] = -1;
  json[Json::json_pointer(std::string(kContainer) + "/command")] = nullptr;
  const auto job = ParseHorovodJob(json);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().size(), 3u) << ToString(job.error());
}

TEST(HorovodJobTest, NothingCountsAsAbsentAndWholeNumbersMayHaveAPoint) {
  Json json = Minimal();
  json["spec"]["elasticPolicy"] = {{"maxReplicas", nullptr}, {"minReplicas", nullptr}};
  json["spec"]["worker"]["template"]["spec"]["nodeSelector"] = nullptr;
  json["spec"]["worker"]["template"]["metadata"] = {{"creationTimestamp", nullptr}};
  json["spec"]["slotsPerWorker"] = 2.0;
  const auto job = ParseHorovodJob(json);
  ASSERT_TRUE(job) << ToString(job.error());
  EXPECT_EQ(job->spec.slots_per_worker, 2);
  EXPECT_EQ(job->MaxPods(), kMaxReplicas);
}

TEST(HorovodJobTest, WhatPodsHaveInCommonChangesOnlyWhileSuspended) {
  const auto with = [](const char* pointer, const Json& value, bool suspended) {
    Json json = Minimal();
    json["spec"]["runPolicy"]["suspend"] = suspended;
    if (!value.is_null()) json[Json::json_pointer(pointer)] = value;
    return ParseHorovodJob(json)->spec;
  };
  const auto changes = [&](const char* pointer, const Json& value, bool suspended) {
    std::vector<std::string> paths;
    for (const FieldError& error :
         CheckUpdate(with(pointer, nullptr, suspended), with(pointer, value, suspended))) {
      paths.push_back(error.path);
    }
    return paths;
  };
  using Paths = std::vector<std::string>;
  const std::string image = std::string(kContainer) + "/image";
  EXPECT_EQ(changes(image.c_str(), "other", false), Paths{"spec.worker.template"});
  EXPECT_EQ(changes(image.c_str(), "other", true), Paths{});
  EXPECT_EQ(changes("/spec/collectives/backend", "Cpu", false), Paths{"spec.collectives"});
  EXPECT_EQ(changes("/spec/collectives/backend", "Cpu", true), Paths{});
  Json together = Minimal();
  together["spec"]["runPolicy"]["suspend"] = true;
  together["spec"]["worker"]["template"]["spec"]["nodeSelector"] = {{"a", "b"}};
  EXPECT_TRUE(
      CheckUpdate(ParseHorovodJob(Minimal())->spec, ParseHorovodJob(together)->spec).empty())
      << "suspended and changed at once, as a queue does it";
  together["spec"]["runPolicy"]["suspend"] = false;
  together["spec"]["worker"]["replicas"] = 0;
  EXPECT_TRUE(
      CheckUpdate(ParseHorovodJob(Minimal())->spec, ParseHorovodJob(together)->spec).empty())
      << "no replicas are a suspension";
  EXPECT_EQ(changes("/spec/slotsPerWorker", 2, true), Paths{"spec.slotsPerWorker"});
  EXPECT_EQ(changes("/spec/runPolicy/managedBy", "x", true), Paths{"spec.runPolicy.managedBy"});
  EXPECT_EQ(changes("/spec/worker/replicas", 5, false), Paths{});
}

TEST(HorovodJobTest, TheDigestOfPodsIsOfWhatMayChangeOnlyWhileSuspended) {
  const auto digest = [](const char* pointer, const Json& value) {
    Json json = Minimal();
    json[Json::json_pointer(pointer)] = value;
    const auto job = ParseHorovodJob(json);
    EXPECT_TRUE(job) << pointer << ": " << ToString(job.error());
    return job ? job->spec.pods_digest : "";
  };
  const std::string digest_of_minimal = ParseHorovodJob(Minimal())->spec.pods_digest;
  EXPECT_EQ(digest_of_minimal.size(), 16u);
  const std::string image = std::string(kContainer) + "/image";
  EXPECT_NE(digest(image.c_str(), "other"), digest_of_minimal);
  EXPECT_NE(digest("/spec/worker/template/metadata/labels/a", "b"), digest_of_minimal);
  EXPECT_NE(digest("/spec/collectives/backend", "Cpu"), digest_of_minimal);
  EXPECT_EQ(digest("/spec/collectives/backend", "Auto"), digest_of_minimal)
      << "an API server writes defaults into the spec, those of later versions too";
  EXPECT_EQ(digest("/spec/worker/replicas", 5), digest_of_minimal);
  EXPECT_EQ(digest("/spec/runPolicy/suspend", true), digest_of_minimal);
  EXPECT_EQ(digest("/spec/initTimeoutSeconds", 5), digest_of_minimal);
}

// Running jobs would be suspended by an operator of another version.
TEST(HorovodJobTest, TheDigestOfPodsIsTheSameInEveryVersion) {
  Json json = Minimal();
  json["spec"]["collectives"] = {{"backend", "Cpu"}, {"fusionThresholdBytes", 1024}};
  EXPECT_EQ(ParseHorovodJob(json)->spec.pods_digest, "ae704c7804b5ba55");
}

TEST(HorovodJobTest, NoReplicasAreASuspension) {
  Json json = Minimal();
  json["spec"]["worker"]["replicas"] = 0;
  json["spec"]["elasticPolicy"] = {{"minReplicas", 2}, {"allowedSizes", {2, 4}}};
  const auto job = ParseHorovodJob(json);
  ASSERT_TRUE(job) << ToString(job.error());
  EXPECT_EQ(job->WantedPods(), 0);
  EXPECT_TRUE(job->Suspended());
}

TEST(HorovodJobTest, AQueueIsThatOfTheSpecOrElseOfKueuesLabel) {
  Json json = Minimal();
  EXPECT_EQ(ParseHorovodJob(json)->queue, "");
  json["metadata"]["labels"] = {{"kueue.x-k8s.io/queue-name", "of-label"},
                                {"kueue.x-k8s.io/priority-class", "urgent"}};
  const auto job = ParseHorovodJob(json);
  ASSERT_TRUE(job) << ToString(job.error());
  EXPECT_EQ(job->queue, "of-label");
  EXPECT_EQ(job->queue_priority_class, "urgent");
  json["spec"]["runPolicy"]["schedulingPolicy"] = {{"queue", "of-spec"}};
  EXPECT_EQ(ParseHorovodJob(json)->queue, "of-spec");
}

TEST(HorovodJobTest, AQueueThatGrantsFewerPodsBoundsTheSize) {
  Json json = Minimal();
  json["spec"]["worker"]["replicas"] = 8;
  json["spec"]["elasticPolicy"] = {{"minReplicas", 2}};
  EXPECT_EQ(ParseHorovodJob(json)->WantedPodsOf(3), 3);
  EXPECT_EQ(ParseHorovodJob(json)->WantedPodsOf(9), 8);
  EXPECT_EQ(ParseHorovodJob(json)->LeastPods(), 2);
  json["spec"]["elasticPolicy"]["allowedSizes"] = {4, 8};
  EXPECT_EQ(ParseHorovodJob(json)->WantedPodsOf(7), 4);
  EXPECT_EQ(ParseHorovodJob(json)->LeastPods(), 4);
}

TEST(HorovodJobTest, ATopologyIsOneLabelThatIsRequiredOrPreferred) {
  const auto read = [](Json topology) {
    Json json = Minimal();
    json["spec"]["runPolicy"]["schedulingPolicy"] = {{"topology", std::move(topology)}};
    return ParseHorovodJob(json);
  };
  const auto policy_of = [&](Json topology) {
    return read(std::move(topology)).value().spec.run_policy.scheduling_policy.topology;
  };
  EXPECT_EQ(policy_of({{"required", "example.com/rack"}}),
            (TopologyPolicy{"example.com/rack", true}));
  EXPECT_EQ(policy_of({{"preferred", "rack"}}), (TopologyPolicy{"rack", false}));
  EXPECT_EQ(policy_of(Json::object()), TopologyPolicy());
  const std::pair<Json, const char*> wrong[] = {
      {{{"required", "a"}, {"preferred", "b"}},
       "topology: has both of the fields required and preferred: leave one out"},
      {{{"required", "my rack"}},
       "topology.required: \"my rack\" is not the key of a label, such as example.com/rack"},
      {{{"preferred", ""}},
       "topology.preferred: \"\" is not the key of a label, such as example.com/rack"},
  };
  for (const auto& [topology, error] : wrong) {
    const auto job = read(topology);
    ASSERT_FALSE(job) << topology;
    EXPECT_EQ(ToString(job.error()), std::string("spec.runPolicy.schedulingPolicy.") + error);
  }
}

TEST(HorovodJobTest, WhatAnEarlierVersionTookStaysRightInAJobThatHasBeenTakenUp) {
  Json json = Minimal();
  json["spec"]["collectives"] = {{"backend", "Mpi"}};
  EXPECT_EQ(ToString(ParseHorovodJob(json).error()),
            "spec.collectives.backend: \"Mpi\" is not allowed: must be one of Auto, Cpu, Nccl, "
            "None. MPI carries collectives only between processes that mpirun starts, and a job "
            "has no mpirun (docs/horovod.md)");
  json["status"] = {{"startTime", "2026-01-31T12:00:00Z"}};
  const auto job = ParseHorovodJob(json);
  ASSERT_TRUE(job) << ToString(job.error());
  EXPECT_EQ(job->spec.collectives["backend"], "Mpi") << "its pods have to be alike";
  json["spec"]["collectives"] = {{"backend", "gloo"}};
  EXPECT_FALSE(ParseHorovodJob(json));
  json["spec"].erase("collectives");
  json[Json::json_pointer(std::string(kContainer) + "/restartPolicy")] = "OnFailure";
  EXPECT_TRUE(ParseHorovodJob(json));
  json.erase("status");
  EXPECT_FALSE(ParseHorovodJob(json));
}

TEST(HorovodJobTest, WhatIsNoObjectIsRefusedWithoutACrash) {
  for (const Json& json : {Json(), Json(3), Json("x"), Json::array({1})}) {
    EXPECT_FALSE(ParseHorovodJob(json));
  }
}

TEST(TimeTest, FormatsAndParsesWhatKubernetesWrites) {
  const auto time = ParseTime("2026-01-31T12:00:01Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(FormatTime(*time), "2026-01-31T12:00:01Z");
  EXPECT_EQ(FormatMicroTime(*ParseTime("2026-01-31T12:00:01.25Z")), "2026-01-31T12:00:01.250000Z");
  EXPECT_FALSE(ParseTime("yesterday"));
  EXPECT_FALSE(ParseTime("2026-01-31T12:00:01+01:00"));
  EXPECT_LT(*ParseTime("0001-01-01T00:00:00Z"), *time) << "Go's zero time";
  EXPECT_GT(*ParseTime("9999-12-31T23:59:59Z"), *time);
}

}  // namespace
}  // namespace ringmaster::api
