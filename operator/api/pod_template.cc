#include "operator/api/pod_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ringmaster::api {
namespace {

using Names = std::vector<std::string>;

// Field names of Kubernetes 1.34, to recognise typos. A field that is like none of them is let
// through.
const Names kPodSpecFields = {"activeDeadlineSeconds",
                              "affinity",
                              "automountServiceAccountToken",
                              "containers",
                              "dnsConfig",
                              "dnsPolicy",
                              "enableServiceLinks",
                              "ephemeralContainers",
                              "hostAliases",
                              "hostIPC",
                              "hostNetwork",
                              "hostPID",
                              "hostUsers",
                              "hostname",
                              "hostnameOverride",
                              "imagePullSecrets",
                              "initContainers",
                              "nodeName",
                              "nodeSelector",
                              "os",
                              "overhead",
                              "preemptionPolicy",
                              "priority",
                              "priorityClassName",
                              "readinessGates",
                              "resourceClaims",
                              "resources",
                              "restartPolicy",
                              "runtimeClassName",
                              "schedulerName",
                              "schedulingGates",
                              "securityContext",
                              "serviceAccount",
                              "serviceAccountName",
                              "setHostnameAsFQDN",
                              "shareProcessNamespace",
                              "subdomain",
                              "terminationGracePeriodSeconds",
                              "tolerations",
                              "topologySpreadConstraints",
                              "volumes"};
const Names kContainerFields = {"args",
                                "command",
                                "env",
                                "envFrom",
                                "image",
                                "imagePullPolicy",
                                "lifecycle",
                                "livenessProbe",
                                "name",
                                "ports",
                                "readinessProbe",
                                "resizePolicy",
                                "resources",
                                "restartPolicy",
                                "restartPolicyRules",
                                "securityContext",
                                "startupProbe",
                                "stdin",
                                "stdinOnce",
                                "terminationMessagePath",
                                "terminationMessagePolicy",
                                "tty",
                                "volumeDevices",
                                "volumeMounts",
                                "workingDir"};
const Names kEnvFields = {"name", "value", "valueFrom"};
const Names kMountFields = {"mountPath",         "mountPropagation", "name",       "readOnly",
                            "recursiveReadOnly", "subPath",          "subPathExpr"};
const Names kResourcesFields = {"claims", "limits", "requests"};
const Names kTemplateFields = {"metadata", "spec"};

void ReadEnv(Reader& env) {
  std::string name, value;
  env.String("name", &name);
  env.String("value", &value);
  if (name.empty()) env.Error("name", "is required");
  if (IsReservedEnv(name)) {
    env.Error("name", fmt::format("\"{}\" is set by Ringmaster itself: choose another name", name));
  }
  env.RefuseTypos(kEnvFields);
}

void ReadQuantities(Reader& resources, const std::string& name) {
  const Json& quantities = resources.Raw(name);
  if (quantities.is_null()) return;
  if (!quantities.is_object()) {
    resources.Error(name,
                    fmt::format("{} must be an object of resource: quantity", Show(quantities)));
    return;
  }
  for (const auto& [resource, quantity] : quantities.items()) {
    if (quantity.is_string() || quantity.is_number()) continue;
    resources.Error(fmt::format("{}[{}]", name, resource),
                    fmt::format("{} must be a quantity, such as 1, 500m or 2Gi", Show(quantity)));
  }
}

void ReadContainer(Reader& container, bool is_worker) {
  std::string image, working_dir;
  Names command, args;
  container.String("image", &image);
  container.String("workingDir", &working_dir);
  container.StringList("command", &command);
  container.StringList("args", &args);
  container.AtMost("command", 1024);
  container.ObjectList("env", false, ReadEnv);
  container.ObjectList("volumeMounts", false,
                       [](Reader& mount) { mount.RefuseTypos(kMountFields); });
  container.Object("resources", false, [](Reader& resources) {
    ReadQuantities(resources, "limits");
    ReadQuantities(resources, "requests");
    resources.RefuseTypos(kResourcesFields);
  });
  if (image.empty() && !container.Raw("image").is_number()) {
    if (!container.Has("image") || container.Raw("image").is_string()) {
      container.Error("image", "is required: the image that holds the training script");
    }
  }
  if (is_worker && command.empty() &&
      (!container.Has("command") || container.Raw("command").is_array())) {
    container.Error("command",
                    "is required, as a list such as [python3, train.py]: Ringmaster starts it, so "
                    "it can't take the image's entrypoint");
  }
  container.RefuseTypos(kContainerFields);
}

void ReadContainers(Reader& spec) {
  int workers = 0;
  Names names;
  spec.ObjectList("containers", true, [&](Reader& container) {
    std::string name;
    container.String("name", &name);
    container.AtMost("name", 63);
    if (name.empty()) container.Error("name", "is required");
    if (name.rfind("ringmaster-", 0) == 0) {
      container.Error("name",
                      fmt::format("\"{}\": names that begin with ringmaster- are taken", name));
    }
    names.push_back(name);
    if (name == kWorkerContainer) ++workers;
    ReadContainer(container, name == kWorkerContainer);
  });
  spec.AtMost("containers", 32);
  if (spec.Raw("containers").is_array() && workers != 1) {
    spec.Error(
        "containers",
        fmt::format("must hold exactly one container named \"{}\"; found {} (containers: {})",
                    kWorkerContainer, workers, Show(names)));
  }
}

void ReadReservedNames(Reader& spec, const std::string& list) {
  spec.ObjectList(list, false, [&](Reader& item) {
    std::string name;
    item.String("name", &name);
    if (name.rfind("ringmaster-", 0) == 0) {
      item.Error("name", fmt::format("\"{}\": names that begin with ringmaster- are taken", name));
    }
  });
}

void ReadPodSpec(Reader& spec) {
  ReadContainers(spec);
  ReadReservedNames(spec, "initContainers");
  ReadReservedNames(spec, "volumes");
  std::string restart_policy = "Never";
  spec.Enum("restartPolicy", {{"Never", std::string("Never")}}, &restart_policy);
  std::optional<int> grace;
  spec.OptionalInt("terminationGracePeriodSeconds", 0, 86400, &grace);
  spec.RefuseTypos(kPodSpecFields);
}

}  // namespace

bool IsReservedEnv(const std::string& name) {
  static const std::set<std::string> kReserved = {
      "RINGMASTER_JOB_NAMESPACE", "RINGMASTER_JOB_NAME",    "RINGMASTER_JOB_UID",
      "RINGMASTER_POD_NAME",      "RINGMASTER_POD_UID",     "RINGMASTER_POD_IP",
      "RINGMASTER_NODE_NAME",     "RINGMASTER_ZONE",        "RINGMASTER_SLOTS",
      "RINGMASTER_STANDBYS",      "RINGMASTER_OPERATOR",    "RINGMASTER_STATE_DIR",
      "RINGMASTER_SOCKET",        "RINGMASTER_SLOT",        "RINGMASTER_INCARNATION",
      "RINGMASTER_STANDBY",       "RINGMASTER_REPLICAS",    "RINGMASTER_FAILURE_POLICY",
      "RINGMASTER_REPLICA_INDEX", "RINGMASTER_COLLECTIVES", "RINGMASTER_GRACE_SECONDS",
      "RINGMASTER_PROCESS"};
  return kReserved.count(name) != 0 || name.rfind("RINGMASTER_MOUNT_", 0) == 0;
}

void ReadPodTemplate(Reader& pod_template) {
  pod_template.Raw("metadata");
  pod_template.Object("spec", true, ReadPodSpec);
  pod_template.RefuseTypos(kTemplateFields);
}

}  // namespace ringmaster::api
