#include "operator/controllers/pod_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/labels.h"
#include "operator/api/pod_template.h"
#include "operator/controllers/pod_builder.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

api::HorovodJob Job(const Json& pod_spec = Json::object()) {
  api::HorovodJob job;
  job.name = "digits";
  job.ns = "team";
  job.uid = "job-uid";
  job.spec.worker.replicas = 4;
  job.spec.worker.pod_template = Json::parse(
      R"({"spec": {"containers": [{"name": "worker", "image": "i", "command": ["train"]}]}})");
  job.spec.worker.pod_template["spec"].update(pod_spec);
  return job;
}

Json Spec(const Json& pod_spec = Json::object(), PodOptions options = {}) {
  options.cluster = true;
  return BuildPod(Job(pod_spec), 2, options)["spec"];
}

const Json& Sidecar(const Json& spec) { return spec["initContainers"][1]; }

std::string EnvOf(const Json& container, const std::string& name) {
  for (const Json& env : container["env"]) {
    if (env["name"] == name) return env.value("value", "field");
  }
  return "(none)";
}

std::vector<std::string> MountsOf(const Json& container) {
  std::vector<std::string> names;
  for (const Json& mount : container["volumeMounts"]) names.push_back(mount["name"]);
  return names;
}

TEST(PodClusterTest, OurContainersPassTheRestrictedStandardWhateverThePodSays) {
  const Json spec = Spec({{"securityContext", {{"runAsUser", 0}, {"fsGroup", 7}}}});
  for (const int i : {0, 1}) {
    const Json context = spec["initContainers"][i]["securityContext"];
    EXPECT_EQ(context["runAsNonRoot"], true);
    EXPECT_EQ(context["runAsUser"], kSidecarUser) << "the pod's runAsUser would count otherwise";
    EXPECT_EQ(context["runAsGroup"], kSidecarUser);
    EXPECT_EQ(context["allowPrivilegeEscalation"], false);
    EXPECT_EQ(context["readOnlyRootFilesystem"], true);
    EXPECT_EQ(context["capabilities"], Json({{"drop", Json::array({"ALL"})}}));
    EXPECT_EQ(context["seccompProfile"], Json({{"type", "RuntimeDefault"}}));
  }
  EXPECT_EQ(spec["securityContext"], Json({{"runAsUser", 0}, {"fsGroup", 7}})) << "the user's";
  EXPECT_FALSE(spec["containers"][0].contains("securityContext")) << "the user's";
}

TEST(PodClusterTest, PodsHoldNoTokenAndNoServiceLinks) {
  EXPECT_EQ(Spec()["automountServiceAccountToken"], false);
  EXPECT_EQ(Spec()["enableServiceLinks"], false);
  EXPECT_EQ(Spec({{"automountServiceAccountToken", true}})["automountServiceAccountToken"], true)
      << "unless the user asks for one";
}

TEST(PodClusterTest, TheCertificateIsTheSidecarsAlone) {
  const Json spec = Spec();
  EXPECT_THAT(MountsOf(Sidecar(spec)), testing::ElementsAre("ringmaster-run", "ringmaster-tls"));
  EXPECT_THAT(MountsOf(spec["initContainers"][0]), testing::ElementsAre("ringmaster-bin"));
  EXPECT_THAT(MountsOf(spec["containers"][0]),
              testing::ElementsAre("ringmaster-bin", "ringmaster-run", "ringmaster-shm"));
  EXPECT_EQ(Sidecar(spec)["volumeMounts"][1],
            Json::parse(R"({"name": "ringmaster-tls", "mountPath": "/etc/ringmaster/tls",
                            "readOnly": true})"));
  EXPECT_EQ(EnvOf(Sidecar(spec), "RINGMASTER_MOUNT_RINGMASTER_TLS"), "/etc/ringmaster/tls");
  EXPECT_EQ(EnvOf(Sidecar(spec), "RINGMASTER_TLS_DIR"), "$(RINGMASTER_MOUNT_RINGMASTER_TLS)");
  EXPECT_EQ(EnvOf(Sidecar(spec), "RINGMASTER_INSECURE"), "(none)");
  EXPECT_EQ(spec["volumes"].back(),
            Json({{"name", "ringmaster-tls"},
                  {"secret", {{"secretName", "digits-tls"}, {"defaultMode", 0444}}}}))
      << "whatever user and group the template gives the pod";
  PodOptions plain;
  plain.tls = false;
  EXPECT_EQ(EnvOf(Sidecar(Spec(Json::object(), plain)), "RINGMASTER_INSECURE"), "1");
  EXPECT_EQ(EnvOf(Sidecar(Spec(Json::object(), plain)), "RINGMASTER_TLS_DIR"), "(none)");
}

TEST(PodClusterTest, PortsAreFixedAndNamed) {
  const Json sidecar = Sidecar(Spec());
  EXPECT_EQ(EnvOf(sidecar, "RINGMASTER_RENDEZVOUS_PORT"), "9401");
  EXPECT_EQ(EnvOf(sidecar, "RINGMASTER_HEARTBEAT_PORT"), "9402");
  EXPECT_EQ(EnvOf(sidecar, "RINGMASTER_HTTP_PORT"), "9403");
  EXPECT_EQ(sidecar["ports"], Json::parse(R"([
    {"name": "rendezvous", "containerPort": 9401, "protocol": "TCP"},
    {"name": "heartbeat", "containerPort": 9402, "protocol": "TCP"},
    {"name": "metrics", "containerPort": 9403, "protocol": "TCP"}])"));
}

TEST(PodClusterTest, WorkersWaitForTheSidecarAndReadyIsWhoTrains) {
  const Json sidecar = Sidecar(Spec());
  EXPECT_EQ(sidecar["startupProbe"],
            Json::parse(R"({"httpGet": {"path": "/healthz", "port": "metrics"},
    "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 120})"));
  EXPECT_EQ(sidecar["readinessProbe"],
            Json::parse(R"({"httpGet": {"path": "/readyz", "port": "metrics"},
    "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 2})"));
  EXPECT_EQ(sidecar["livenessProbe"],
            Json::parse(R"({"httpGet": {"path": "/healthz", "port": "metrics"},
    "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6})"));
}

TEST(PodClusterTest, APodOfTheHostsNetworkTakesFreePorts) {
  const Json spec = Spec({{"hostNetwork", true}});
  EXPECT_FALSE(Sidecar(spec).contains("ports"));
  EXPECT_EQ(Sidecar(spec)["readinessProbe"]["exec"]["command"],
            Json::array({"ringmaster-sidecar", "probe", "/readyz"}))
      << "nobody else knows the port";
  EXPECT_EQ(EnvOf(Sidecar(spec), "RINGMASTER_HTTP_PORT"), "(none)");
  EXPECT_EQ(EnvOf(Sidecar(spec), "RINGMASTER_MOUNT_RINGMASTER_TLS"), "/etc/ringmaster/tls");
  EXPECT_EQ(EnvOf(Sidecar(spec), "RINGMASTER_TLS_DIR"), "$(RINGMASTER_MOUNT_RINGMASTER_TLS)");
  EXPECT_FALSE(spec.contains("hostname"));
  for (const Json& no : {Json(false), Json(nullptr)}) {
    EXPECT_TRUE(Sidecar(Spec({{"hostNetwork", no}})).contains("ports")) << no;
  }
}

TEST(PodClusterTest, OnTheHostsNetworkTheOperatorsServiceCanBeResolved) {
  EXPECT_EQ(Spec({{"hostNetwork", true}})["dnsPolicy"], "ClusterFirstWithHostNet");
  EXPECT_EQ(Spec({{"hostNetwork", true}, {"dnsPolicy", "Default"}})["dnsPolicy"], "Default");
  EXPECT_FALSE(Spec().contains("dnsPolicy"));
}

TEST(PodClusterTest, TheEndOfTheLogIsKeptUnlessTheUserWritesAMessage) {
  const Json spec = Spec({{"initContainers", {{{"name", "data"}}}}});
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : spec[list]) {
      EXPECT_EQ(container.value("terminationMessagePolicy", ""), "FallbackToLogsOnError")
          << container["name"];
    }
  }
  const Json own = Spec(
      {{"containers",
        {{{"name", "worker"}, {"command", {"train"}}, {"terminationMessagePolicy", "File"}}}}});
  EXPECT_EQ(own["containers"][0]["terminationMessagePolicy"], "File");
}

TEST(PodClusterTest, KubectlShowsTheWorkersLogUnlessTheUserNamesAnother) {
  constexpr char kKey[] = "kubectl.kubernetes.io/default-container";
  api::HorovodJob job = Job({{"hostNetwork", true}});
  const auto shown = [&] {
    return BuildPod(job, 0, {.cluster = true})["metadata"]["annotations"][kKey];
  };
  EXPECT_EQ(shown(), "worker");
  job.spec.worker.pod_template["metadata"]["annotations"][kKey] = "tensorboard";
  EXPECT_EQ(shown(), "tensorboard");
}

TEST(PodClusterTest, APodHasANameInDnsUnlessTheUserGivesItOne) {
  EXPECT_EQ(Spec()["hostname"], "digits-worker-2");
  EXPECT_EQ(Spec()["subdomain"], "digits-workers");
  EXPECT_EQ(Spec({{"hostname", "mine"}})["hostname"], "mine");
  EXPECT_FALSE(Spec({{"hostname", "mine"}}).contains("subdomain"));
  EXPECT_FALSE(Spec({{"subdomain", "mine"}}).contains("hostname"));
}

TEST(PodClusterTest, OurContainersAskForWhatTheOptionsSay) {
  EXPECT_EQ(Sidecar(Spec())["resources"],  // docs/operations.md, "What a sidecar costs"
            Json::parse(R"({"requests": {"cpu": "30m", "memory": "48Mi"},
                            "limits": {"memory": "512Mi"}})"));
  EXPECT_FALSE(Sidecar(Spec()).contains("imagePullPolicy"));
  PodOptions options;
  options.sidecar_resources = {{"requests", {{"cpu", "1"}}}};
  options.image_pull_policy = "Always";
  const Json spec = Spec(Json::object(), options);
  for (const int i : {0, 1}) {
    EXPECT_EQ(spec["initContainers"][i]["resources"], options.sidecar_resources);
    EXPECT_EQ(spec["initContainers"][i]["imagePullPolicy"], "Always");
    EXPECT_EQ(spec["initContainers"][i]["terminationMessagePolicy"], "FallbackToLogsOnError");
  }
}

TEST(PodClusterTest, WhatTheUserWroteStaysAsItIs) {
  const Json written = Json::parse(R"({
    "affinity": {"nodeAffinity": {}}, "tolerations": [{"operator": "Exists"}],
    "volumes": [{"name": "shm", "persistentVolumeClaim": {"claimName": "c"}}],
    "initContainers": [{"name": "data", "image": "d"}],
    "containers": [
      {"name": "worker", "image": "i", "command": ["t"], "securityContext": {"runAsUser": 0},
       "volumeMounts": [{"name": "shm", "mountPath": "/data"}],
       "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}},
      {"name": "tensorboard", "image": "tb"}]})");
  const Json spec = Spec(written);
  EXPECT_EQ(spec["affinity"], written["affinity"]);
  EXPECT_EQ(spec["tolerations"], written["tolerations"]);
  EXPECT_EQ(spec["volumes"][0], written["volumes"][0]);
  Json data = spec["initContainers"][2];
  data.erase("terminationMessagePolicy");  // apart from this, the same as in the worker
  EXPECT_EQ(data, written["initContainers"][0]);
  EXPECT_EQ(spec["containers"][1], written["containers"][1]);
  EXPECT_EQ(spec["containers"][0]["securityContext"], Json({{"runAsUser", 0}}));
  EXPECT_EQ(spec["containers"][0]["lifecycle"], written["containers"][0]["lifecycle"]);
  // A volume named "shm" belongs to the user: /dev/shm is another one.
  const Json mounts = spec["containers"][0]["volumeMounts"];
  EXPECT_EQ(mounts[0]["mountPath"], "/data");
  EXPECT_EQ(mounts[3], Json({{"name", "ringmaster-shm"}, {"mountPath", "/dev/shm"}}));
}

Json Annotations(const Json& written, const Json& pod_spec = Json::object(), bool cluster = true) {
  api::HorovodJob job = Job(pod_spec);
  if (!written.is_null()) job.spec.worker.pod_template["metadata"]["annotations"] = written;
  PodOptions options;
  options.cluster = cluster;
  Json annotations = BuildPod(job, 0, options)["metadata"].value("annotations", Json());
  if (annotations.is_object()) annotations.erase("kubectl.kubernetes.io/default-container");
  return annotations;
}

TEST(PodClusterTest, PrometheusIsToldWhereTheSidecarsMetricsAre) {
  const Json ours = {{"prometheus.io/scrape", "true"},
                     {"prometheus.io/port", "9403"},
                     {"prometheus.io/path", "/metrics"}};
  EXPECT_EQ(Annotations(nullptr), ours);
  Json beside = ours;
  beside["team"] = "a";
  EXPECT_EQ(Annotations({{"team", "a"}}), beside);
}

TEST(PodClusterTest, WhatTheTemplateSaysToPrometheusIsNotMixedWithOurs) {
  for (const Json& theirs :
       {Json{{"prometheus.io/scrape", "false"}}, Json{{"prometheus.io/port", "8000"}}}) {
    EXPECT_EQ(Annotations(theirs), theirs);
  }
  EXPECT_TRUE(Annotations({{"my.prometheus.io/", "x"}}).contains("prometheus.io/scrape"));
}

TEST(PodClusterTest, NobodyIsToldOfAPortThatIsNotKnownBeforeThePodRuns) {
  EXPECT_FALSE(Annotations(nullptr, {{"hostNetwork", true}}).contains("prometheus.io/scrape"));
  EXPECT_TRUE(Annotations(nullptr, Json::object(), false).is_null()) << "a local pod";
}

// The error about a template with `part` in its worker (or at another place `where`).
std::string Refusal(const std::string& where, const Json& part) {
  Json pod_template = Job().spec.worker.pod_template;
  pod_template[Json::json_pointer(where)] = part;
  api::FieldErrors errors;
  api::CheckPodTemplate(pod_template, /*taken_up=*/false, &errors);
  return errors.empty() ? "" : errors[0].path;
}

TEST(PodClusterTest, ATemplateCannotHaveWhatWeAdd) {
  PodOptions options;
  options.cluster = true;
  const Json pod = BuildPod(Job(), 2, options);
  const Json& spec = pod["spec"];
  const std::string worker = "/spec/containers/0";
  for (const Json& port : Sidecar(spec)["ports"]) {
    EXPECT_THAT(Refusal(worker + "/ports", Json::array({port})), HasSubstr("containerPort"))
        << port;
  }
  for (const Json& mount : spec["containers"][0]["volumeMounts"]) {
    if (mount["mountPath"] == "/dev/shm") continue;  // this may be the user's own
    EXPECT_THAT(Refusal(worker + "/volumeMounts", Json::array({mount})), HasSubstr("mountPath"))
        << mount;
  }
  for (const auto& [label, value] : pod["metadata"]["labels"].items()) {
    EXPECT_THAT(Refusal("/metadata/labels", {{label, value}}), HasSubstr("labels")) << label;
  }
  for (const char* list : {"volumes", "initContainers"}) {
    for (const Json& item : spec[list]) {
      EXPECT_THAT(Refusal(std::string("/spec/") + list, Json::array({item})), HasSubstr("name"))
          << item;
    }
  }
  // A pod with it is taken for one of an earlier version, and deleted.
  EXPECT_THAT(Refusal("/spec/schedulingGates", Json::array({{{"name", api::kGangGate}}})),
              HasSubstr("name"));
}

TEST(PodClusterTest, OnTheLocalClusterNothingOfThisIsThere) {
  const Json spec = BuildPod(Job(), 0, {})["spec"];
  for (const char* field : {"securityContext", "ports", "startupProbe", "resources"}) {
    EXPECT_FALSE(Sidecar(spec).contains(field)) << field;
  }
  EXPECT_FALSE(spec.contains("hostname"));
  EXPECT_EQ(spec["volumes"].size(), 3u);
}

}  // namespace
}  // namespace ringmaster::controllers
