#include "operator/controllers/pod_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/labels.h"
#include "operator/controllers/pod_facts.h"
#include "operator/controllers/pod_identity.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

api::HorovodJob Job() {
  api::HorovodJob job;
  job.name = "digits";
  job.ns = "team";
  job.uid = "job-uid";
  job.annotations = {{"ringmaster.dev/local-working-dir", "/here"}, {"other", "x"}};
  job.spec.slots_per_worker = 2;
  job.spec.worker.replicas = 4;
  job.spec.worker.pod_template = Json::parse(R"x({"metadata": {"labels": {"team": "a"}},
    "spec": {"nodeSelector": {"gpu": "yes"}, "containers": [{"name": "worker", "image": "i",
      "command": ["python3", "train.py"], "args": ["--lr", "$(RATE)"],
      "env": [{"name": "RATE", "value": "0.1"}, {"name": "PYTHONPATH", "value": "/mine"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}})x");
  return job;
}

std::string EnvOf(const Json& container, const std::string& name) {
  for (const Json& env : container["env"]) {
    if (env["name"] == name)
      return env.contains("value") ? env["value"].get<std::string>() : "field";
  }
  return "(none)";
}

TEST(PodBuilderTest, TheUsersCommandRunsUnderTheLauncher) {
  const Json worker = BuildPod(Job(), 2, {})["spec"]["containers"][0];
  EXPECT_EQ(worker["command"],
            Json::parse(R"x(["$(RINGMASTER_MOUNT_RINGMASTER_BIN)/ringmaster-launcher", "--",
                            "python3", "train.py", "--lr", "$(RATE)"])x"));
  EXPECT_FALSE(worker.contains("args"));
  EXPECT_EQ(EnvOf(worker, "RATE"), "0.1");
  EXPECT_EQ(EnvOf(worker, "RINGMASTER_SLOTS"), "2");
  EXPECT_EQ(EnvOf(worker, "RINGMASTER_REPLICA_INDEX"), "2");
  EXPECT_EQ(worker["env"][0]["name"], "RINGMASTER_MOUNT_RINGMASTER_BIN")
      << "$(NAME) only sees what comes before it";
}

TEST(PodBuilderTest, TheUsersEnvironmentIsLeftAsItIs) {
  const Json worker = BuildPod(Job(), 2, {})["spec"]["containers"][0];
  EXPECT_EQ(EnvOf(worker, "PYTHONPATH"), "/mine");
  EXPECT_EQ(EnvOf(worker, "SECRET"), "field");
  EXPECT_EQ(EnvOf(worker, "LD_LIBRARY_PATH"), "(none)") << "it would hide the image's own";
}

// "NAME=value", or "NAME <- source".
std::vector<std::string> Environment(const Json& container) {
  std::vector<std::string> lines;
  for (const Json& env : container["env"]) {
    const std::string name = env["name"];
    if (env.contains("value")) {
      lines.push_back(name + "=" + env["value"].get<std::string>());
    } else {
      lines.push_back(name + " <- " +
                      env["valueFrom"].value("/fieldRef/fieldPath"_json_pointer, "s"));
    }
  }
  return lines;
}

// Specified in docs/contracts.md, section 1.
TEST(PodBuilderTest, EachContainerIsToldWhatItsProgramReads) {
  api::HorovodJob job = Job();
  job.spec.elastic_policy.standby_per_pod = 1;
  job.spec.init_timeout_seconds = 77;
  job.spec.failure_policy_json = {{"a", 1}};
  job.spec.collectives = {{"b", 2}};
  const Json spec = BuildPod(job, 2, {.sidecar_target = "op:1"})["spec"];
  const std::vector<std::string> both = {
      "RINGMASTER_JOB_NAMESPACE=team",
      "RINGMASTER_JOB_NAME=digits",
      "RINGMASTER_JOB_UID=job-uid",
      "RINGMASTER_POD_NAME <- metadata.name",
      "RINGMASTER_POD_UID <- metadata.uid",
      "RINGMASTER_POD_IP <- status.podIP",
      "RINGMASTER_SLOTS=2",
      "RINGMASTER_STANDBYS=1",
      "RINGMASTER_GRACE_SECONDS=30",
      "RINGMASTER_SOCKET=$(RINGMASTER_MOUNT_RINGMASTER_RUN)/link"};
  std::vector<std::string> worker = {"RINGMASTER_MOUNT_RINGMASTER_BIN=/opt/ringmaster",
                                     "RINGMASTER_MOUNT_RINGMASTER_RUN=/run/ringmaster",
                                     "RINGMASTER_MOUNT_RINGMASTER_SHM=/dev/shm"};
  worker.insert(worker.end(), both.begin(), both.end());
  for (const char* own :
       {"RINGMASTER_REPLICA_INDEX=2", "RINGMASTER_REPLICAS=4",
        "RINGMASTER_BIND_WORKER <- status.podIP", "RINGMASTER_FAILURE_POLICY={\"a\":1}",
        "RINGMASTER_COLLECTIVES={\"b\":2}", "RATE=0.1", "PYTHONPATH=/mine", "SECRET <- s"}) {
    worker.push_back(own);
  }
  EXPECT_THAT(Environment(spec["containers"][0]), testing::ElementsAreArray(worker));
  std::vector<std::string> sidecar = {"RINGMASTER_MOUNT_RINGMASTER_RUN=/run/ringmaster"};
  sidecar.insert(sidecar.end(), both.begin(), both.end());
  for (const char* own :
       {"RINGMASTER_NODE_NAME <- spec.nodeName",
        "RINGMASTER_ZONE <- metadata.labels['topology.kubernetes.io/zone']",
        "RINGMASTER_OPERATOR=op:1", "RINGMASTER_STATE_DIR=$(RINGMASTER_MOUNT_RINGMASTER_RUN)",
        "RINGMASTER_INIT_TIMEOUT_SECONDS=77", "RINGMASTER_STOPPED_WORKER_SECONDS=1"}) {
    sidecar.push_back(own);
  }
  EXPECT_THAT(Environment(spec["initContainers"][1]), testing::ElementsAreArray(sidecar));
  EXPECT_THAT(Environment(spec["initContainers"][0]),
              testing::ElementsAre("RINGMASTER_MOUNT_RINGMASTER_BIN=/opt/ringmaster"));
}

// Else its address would come first.
TEST(PodBuilderTest, ATemplateThatNamesAnInterfaceIsFollowed) {
  for (const char* name : {"RINGMASTER_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "RATE"}) {
    api::HorovodJob job = Job();
    job.spec.worker.pod_template["spec"]["containers"][0]["env"] = {
        {{"name", name}, {"value", "net1"}}};
    const Json spec = BuildPod(job, 2, {.sidecar_target = "op:1"})["spec"];
    EXPECT_EQ(EnvOf(spec["containers"][0], "RINGMASTER_BIND_WORKER") == "(none)",
              name != std::string("RATE"))
        << name;
  }
}

TEST(PodBuilderTest, WhatThePodSharesIsInMemoryButForPrograms) {
  EXPECT_EQ(BuildPod(Job(), 0, {})["spec"]["volumes"],
            Json::parse(R"([{"name": "ringmaster-bin", "emptyDir": {}},
    {"name": "ringmaster-run", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
    {"name": "ringmaster-shm", "emptyDir": {"medium": "Memory"}}])"));
}

TEST(PodBuilderTest, TheFieldsOfThePodAreTheTemplatesWhereItHasThem) {
  api::HorovodJob job = Job();
  const auto field = [&](const char* name) {
    return BuildPod(job, 0, {})["spec"].value(name, Json());
  };
  Json& spec = job.spec.worker.pod_template["spec"];
  EXPECT_EQ(field("priorityClassName"), Json());
  job.spec.run_policy.scheduling_policy.priority_class = "high";
  EXPECT_EQ(field("priorityClassName"), "high");
  spec["priorityClassName"] = "low";
  EXPECT_EQ(field("priorityClassName"), "low");
  for (const char* name : {"automountServiceAccountToken", "enableServiceLinks"}) {
    EXPECT_EQ(field(name), false) << name;
    spec[name] = nullptr;
    EXPECT_EQ(field(name), false) << name;
    spec[name] = true;
    EXPECT_EQ(field(name), true) << name;
  }
}

TEST(PodBuilderTest, SidecarsLogAsTheOperatorDoes) {
  const auto format = [](const PodOptions& options) {
    return EnvOf(BuildPod(Job(), 0, options)["spec"]["initContainers"][1], "RINGMASTER_LOG_FORMAT");
  };
  EXPECT_EQ(format({.log_format = "json"}), "json");
  EXPECT_EQ(format({}), "(none)");
}

TEST(PodBuilderTest, SidecarAndLauncherKnowTheGraceOfThePod) {
  api::HorovodJob job = Job();
  const auto grace = [&] {
    const Json spec = BuildPod(job, 0, {})["spec"];
    EXPECT_EQ(EnvOf(spec["containers"][0], "RINGMASTER_GRACE_SECONDS"),
              EnvOf(spec["initContainers"][1], "RINGMASTER_GRACE_SECONDS"));
    EXPECT_EQ(EnvOf(spec["containers"][0], "RINGMASTER_GRACE_SECONDS"),
              spec["terminationGracePeriodSeconds"].dump());
    return EnvOf(spec["containers"][0], "RINGMASTER_GRACE_SECONDS");
  };
  EXPECT_EQ(grace(), "30");
  job.spec.worker.pod_template["spec"]["terminationGracePeriodSeconds"] = nullptr;
  EXPECT_EQ(grace(), "30");
  job.spec.worker.pod_template["spec"]["terminationGracePeriodSeconds"] = 120;
  EXPECT_EQ(grace(), "120");
}

TEST(PodBuilderTest, InstallerAndSidecarComeBeforeTheUsersInitContainers) {
  api::HorovodJob job = Job();
  job.spec.worker.pod_template["spec"]["initContainers"] = Json::parse(R"([{"name": "data"}])");
  const Json pod = BuildPod(job, 0, {.sidecar_image = "s:1", .sidecar_target = "op:1"});
  const Json& init = pod["spec"]["initContainers"];
  ASSERT_EQ(init.size(), 3u);
  EXPECT_EQ(init[0]["name"], "ringmaster-install");
  EXPECT_EQ(init[0]["image"], "s:1");
  EXPECT_EQ(init[0]["command"], Json::parse(R"x(["ringmaster-sidecar", "install", "--to",
                                                "$(RINGMASTER_MOUNT_RINGMASTER_BIN)"])x"));
  EXPECT_FALSE(init[0].contains("restartPolicy")) << "it ends before the others begin";
  EXPECT_EQ(init[1]["name"], "ringmaster-sidecar");
  EXPECT_EQ(init[1]["restartPolicy"], "Always");
  EXPECT_EQ(init[1]["image"], "s:1");
  EXPECT_EQ(init[1]["command"], Json::array({"ringmaster-sidecar"}));
  EXPECT_EQ(EnvOf(init[1], "RINGMASTER_OPERATOR"), "op:1");
  EXPECT_EQ(init[2]["name"], "data");
}

TEST(PodBuilderTest, BelongsToItsJobAndKeepsWhatTheUserWrote) {
  const Json pod = BuildPod(Job(), 3, {});
  EXPECT_EQ(pod["apiVersion"], "v1");
  EXPECT_EQ(pod["kind"], "Pod");
  EXPECT_EQ(pod["metadata"]["name"], "digits-worker-3");
  EXPECT_EQ(pod["metadata"]["namespace"], "team");
  EXPECT_EQ(JobKeyOf(pod), "team/digits");
  EXPECT_EQ(pod["metadata"]["labels"]["training.kubeflow.org/job-role"], "worker");
  EXPECT_EQ(pod["metadata"]["labels"]["ringmaster.dev/job-uid"], "job-uid");
  EXPECT_EQ(pod["metadata"]["labels"]["training.kubeflow.org/job-name"], "digits");
  EXPECT_EQ(pod["metadata"]["labels"]["training.kubeflow.org/replica-index"], "3");
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "a");
  EXPECT_EQ(pod["metadata"]["annotations"], Json({{"ringmaster.dev/local-working-dir", "/here"}}));
  EXPECT_TRUE(IsOwnedBy(pod, "job-uid"));
  EXPECT_FALSE(IsOwnedBy(pod, "another"));
  EXPECT_EQ(pod["metadata"]["ownerReferences"],
            Json::parse(R"([{"apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob",
    "name": "digits", "uid": "job-uid", "controller": true, "blockOwnerDeletion": true}])"));
  EXPECT_EQ(pod["spec"]["nodeSelector"]["gpu"], "yes");
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
}

TEST(PodBuilderTest, ItsNameAndItsLabelsSayWhichPodOfTheJobItIs) {
  const api::HorovodJob job = Job();
  EXPECT_EQ(IndexOf(job.name, "digits-worker-12"), 12);
  for (const char* other : {"digits-worker-", "digits-worker-01", "digits-worker-1a", "digits",
                            "digits-launcher-1", "other-worker-1", "digits-worker--1", ""}) {
    EXPECT_EQ(IndexOf(job.name, other), std::nullopt) << other;
  }
  const Json labels = LabelsOf(job, 12);
  Json pod = {{"metadata", {{"labels", labels}}}};
  pod["metadata"]["labels"]["team"] = "a";
  EXPECT_TRUE(HasLabels(pod, labels));
  EXPECT_FALSE(HasLabels(pod, LabelsOf(job, 1)));
  for (const auto& [name, value] : labels.items()) {
    Json less = pod;
    less["metadata"]["labels"].erase(name);
    EXPECT_FALSE(HasLabels(less, labels)) << name;
  }
  EXPECT_FALSE(HasLabels(Json::object(), labels));
}

TEST(PodBuilderTest, TheOwnerSaysWhoseAPodIsAndTheLabelWhereThereIsNone) {
  Json pod = BuildPod(Job(), 1, {});
  pod["metadata"]["labels"][api::kJobNameLabel] = "other";
  EXPECT_EQ(JobKeyOf(pod), "team/digits");
  pod["metadata"]["labels"].erase(api::kJobNameLabel);
  EXPECT_EQ(JobKeyOf(pod), "team/digits");
  for (const Json& other : {Json({{"kind", "ReplicaSet"}}), Json({{"controller", false}})}) {
    Json others = pod;
    others["metadata"]["labels"][api::kJobNameLabel] = "other";
    others["metadata"]["ownerReferences"][0].update(other);
    EXPECT_EQ(JobKeyOf(others), "team/other") << other;
  }
  pod["metadata"].erase("ownerReferences");
  EXPECT_EQ(JobKeyOf(pod), "team/");
}

TEST(PodBuilderTest, AnOwnerThatIsNotTheControllerDoesNotCount) {
  Json pod = BuildPod(Job(), 3, {});
  pod["metadata"]["ownerReferences"][0]["controller"] = false;
  EXPECT_FALSE(IsOwnedBy(pod, "job-uid"));
}

TEST(PodBuilderTest, AUsersOwnShmIsLeftAlone) {
  api::HorovodJob job = Job();
  job.spec.worker.pod_template["spec"]["containers"][0]["volumeMounts"] =
      Json::parse(R"([{"name": "big", "mountPath": "/dev/shm"}])");
  const Json spec = BuildPod(job, 0, {})["spec"];
  EXPECT_EQ(EnvOf(spec["containers"][0], "RINGMASTER_MOUNT_RINGMASTER_SHM"), "(none)");
  EXPECT_EQ(spec["containers"][0]["volumeMounts"],
            Json::parse(R"([{"name": "big", "mountPath": "/dev/shm"},
    {"name": "ringmaster-bin", "mountPath": "/opt/ringmaster"},
    {"name": "ringmaster-run", "mountPath": "/run/ringmaster"}])"));
  EXPECT_EQ(spec["volumes"].size(), 2u);
}

TEST(ReadPodTest, ReadsHowAPodEnded) {
  const Json pod = Json::parse(R"({"metadata": {"name": "p", "uid": "u",
      "labels": {"training.kubeflow.org/replica-index": "5"}},
    "spec": {"containers": [{"name": "worker"}], "initContainers": [{"name": "ringmaster-sidecar"}]},
    "status": {"phase": "Running",
      "containerStatuses": [{"name": "worker", "state": {"terminated": {"exitCode": 137,
        "reason": "OOMKilled", "finishedAt": "2026-01-31T12:00:00Z"}}}],
      "initContainerStatuses": [{"name": "ringmaster-sidecar", "state": {"running": {}}}]}})");
  planner::PodFacts facts = ReadPod(pod);
  EXPECT_EQ(facts.index, 5);
  EXPECT_EQ(facts.exit_code, 137);
  EXPECT_EQ(facts.reason, "OOMKilled");
  EXPECT_FALSE(facts.all_terminated) << "the sidecar still runs";
  EXPECT_FALSE(facts.ended());
}

planner::Unstartable Waiting(const std::string& list, const std::string& name, const Json& state) {
  return ReadPod({{"status",
                   {{list, Json::array({{{"name", name},
                                         {"image", "r/i:7"},
                                         {"state", {{"waiting", state}}}}})}}}})
      .unstartable;
}

TEST(ReadPodTest, AnyContainerThatCantStartIsNamedWithItsImage) {
  const planner::Unstartable pulled =
      Waiting("containerStatuses", "worker",
              {{"reason", "ErrImagePull"}, {"message", "failed to resolve r/i:7"}});
  EXPECT_EQ(pulled.reason, "ImagePullFailed");
  EXPECT_EQ(pulled.what, "image r/i:7 of container worker can't be had");
  EXPECT_EQ(pulled.message, "failed to resolve r/i:7");
  const planner::Unstartable waits = Waiting(
      "containerStatuses", "worker",
      {{"reason", "ImagePullBackOff"},
       {"message", "Back-off pulling image \"r/i:7\": ErrImagePull: failed to resolve r/i:7"}});
  EXPECT_EQ(waits.message, pulled.message)
      << "the condition doesn't go to and fro with the kubelet";
  EXPECT_EQ(waits.what, pulled.what);
  EXPECT_EQ(
      Waiting("initContainerStatuses", "ringmaster-sidecar", {{"reason", "ErrImagePull"}}).what,
      "image r/i:7 of container ringmaster-sidecar can't be had");
  EXPECT_EQ(Waiting("containerStatuses", "worker",
                    {{"reason", "CreateContainerConfigError"}, {"message", "no secret"}})
                .what,
            "container worker can't be started: CreateContainerConfigError");
  EXPECT_EQ(Waiting("initContainerStatuses", "proxy", {{"reason", "CrashLoopBackOff"}}).reason,
            "ContainerCrashes");
  for (const char* usual : {"ContainerCreating", "PodInitializing"}) {
    EXPECT_FALSE(Waiting("containerStatuses", "worker", {{"reason", usual}})) << usual;
  }
}

TEST(ReadPodTest, GatesAreLookedForInTheSpecAlone) {
  Json pod = Json::parse(R"({"spec": {"schedulingGates": [{"name": "ringmaster.dev/gang"}]},
    "status": {"conditions": [{"type": "PodScheduled", "status": "False",
      "reason": "SchedulingGated", "message": "Scheduling is blocked"}]}})");
  EXPECT_EQ(ReadPod(pod).waiting, "") << "ours is told of for the whole job";
  pod["spec"]["schedulingGates"].push_back({{"name", "team.example/quota"}});
  EXPECT_EQ(ReadPod(pod).waiting, "not ours to lift: scheduling gate team.example/quota");
  pod["spec"].erase("schedulingGates");
  EXPECT_EQ(ReadPod(pod).waiting, "") << "lifted, and the scheduler hasn't seen it yet";
}

TEST(ReadPodTest, ADisruptionTargetIsADrain) {
  const Json pod = Json::parse(R"({"metadata": {"name": "p"}, "spec": {}, "status": {"conditions":
    [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}})");
  EXPECT_TRUE(ReadPod(pod).leaving());
  EXPECT_EQ(ReadPod(Json(3)).index, -1) << "nonsense is no pod of ours";
}

}  // namespace
}  // namespace ringmaster::controllers
