#include "operator/controllers/pod_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/controllers/pod_cluster.h"
#include "operator/controllers/pod_identity.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;

constexpr char kBin[] = "$(RINGMASTER_MOUNT_RINGMASTER_BIN)";
constexpr char kRun[] = "$(RINGMASTER_MOUNT_RINGMASTER_RUN)";

// Volumes of type emptyDir: every user in the pod may write there, so that a worker of any uid can
// use the socket and the files.
struct Volume {
  const char* name;
  const char* variable;
  const char* path;
  bool memory;
  const char* size_limit;  // null: no limit of its own
};
// For launcher and library; for socket and state; for memory that frameworks share between
// processes.
constexpr Volume kBinVolume = {"ringmaster-bin", "RINGMASTER_MOUNT_RINGMASTER_BIN",
                               "/opt/ringmaster", false, nullptr};
constexpr Volume kRunVolume = {"ringmaster-run", "RINGMASTER_MOUNT_RINGMASTER_RUN",
                               "/run/ringmaster", true, "64Mi"};
constexpr Volume kShmVolume = {"ringmaster-shm", "RINGMASTER_MOUNT_RINGMASTER_SHM", "/dev/shm",
                               true, nullptr};
constexpr Volume kVolumes[] = {kBinVolume, kRunVolume, kShmVolume};

// A mount of the container has this value in `field`.
bool HasMount(const Json& container, const char* field, const std::string& value) {
  const Json mounts = container.value("volumeMounts", Json::array());
  return std::any_of(mounts.begin(), mounts.end(),
                     [&](const Json& mount) { return mount.value(field, "") == value; });
}

Json Env(const std::string& name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}
Json EnvField(const std::string& name, const std::string& path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

// These variables come before all others, because $(NAME) refers only to earlier ones.
Json MountEnv(const Json& container) {
  Json env = Json::array();
  for (const Volume& volume : kVolumes) {
    if (HasMount(container, "name", volume.name)) {
      env.push_back(Env(volume.variable, volume.path));
    }
  }
  return env;
}

void AddMounts(Json& container, std::initializer_list<Volume> volumes) {
  for (const Volume& volume : volumes) {
    if (HasMount(container, "mountPath", volume.path)) continue;  // the user mounts a /dev/shm
    container["volumeMounts"].push_back({{"name", volume.name}, {"mountPath", volume.path}});
  }
}

constexpr int kDefaultGraceSeconds = 30;  // Kubernetes' default

int GraceSeconds(const api::HorovodJob& job) {
  const Json& spec = job.spec.worker.pod_template.at("spec");
  const auto grace = spec.find("terminationGracePeriodSeconds");
  return grace != spec.end() && grace->is_number_integer() ? grace->get<int>()
                                                           : kDefaultGraceSeconds;
}

// Environment that both sidecar and launcher need.
void AddJobEnv(Json& env, const api::HorovodJob& job) {
  env.push_back(Env("RINGMASTER_JOB_NAMESPACE", job.ns));
  env.push_back(Env("RINGMASTER_JOB_NAME", job.name));
  env.push_back(Env("RINGMASTER_JOB_UID", job.uid));
  env.push_back(EnvField("RINGMASTER_POD_NAME", "metadata.name"));
  env.push_back(EnvField("RINGMASTER_POD_UID", "metadata.uid"));
  env.push_back(EnvField("RINGMASTER_POD_IP", "status.podIP"));
  env.push_back(Env("RINGMASTER_SLOTS", std::to_string(job.spec.slots_per_worker)));
  env.push_back(
      Env("RINGMASTER_STANDBYS", std::to_string(job.spec.elastic_policy.standby_per_pod)));
  env.push_back(Env("RINGMASTER_GRACE_SECONDS", std::to_string(GraceSeconds(job))));
  // The path is short, because the path of a unix socket has at most 107 bytes.
  env.push_back(Env("RINGMASTER_SOCKET", fmt::format("{}/link", kRun)));
}

Json SidecarContainer(const api::HorovodJob& job, const PodOptions& options) {
  Json container = {{"name", kSidecarContainer},
                    {"image", options.sidecar_image},
                    {"command", {"ringmaster-sidecar"}},
                    {"restartPolicy", "Always"}};
  AddMounts(container, {kRunVolume});
  Json env = MountEnv(container);
  AddJobEnv(env, job);
  env.push_back(EnvField("RINGMASTER_NODE_NAME", "spec.nodeName"));
  env.push_back(EnvField("RINGMASTER_ZONE", "metadata.labels['topology.kubernetes.io/zone']"));
  env.push_back(Env("RINGMASTER_OPERATOR", options.sidecar_target));
  env.push_back(Env("RINGMASTER_STATE_DIR", kRun));
  env.push_back(
      Env("RINGMASTER_INIT_TIMEOUT_SECONDS", std::to_string(job.spec.init_timeout_seconds)));
  env.push_back(Env("RINGMASTER_STOPPED_WORKER_SECONDS",
                    std::to_string(job.spec.elastic_policy.stopped_worker_seconds)));
  if (!options.log_format.empty()) env.push_back(Env("RINGMASTER_LOG_FORMAT", options.log_format));
  if (!options.ring_key_file.empty()) {
    env.push_back(Env("RINGMASTER_RING_KEY_FILE", options.ring_key_file));
  }
  container["env"] = std::move(env);
  return container;
}

Json InstallContainer(const PodOptions& options) {
  Json container = {{"name", kInstallContainer},
                    {"image", options.sidecar_image},
                    {"command", {"ringmaster-sidecar", "install", "--to", kBin}}};
  AddMounts(container, {kBinVolume});
  container["env"] = MountEnv(container);
  return container;
}

// Whether the template says by which interface the ring goes (docs/contracts.md, section 1). What
// an image or a machine has in its environment for other libraries does not count.
bool NamesInterface(const Json& container) {
  constexpr std::array<std::string_view, 4> kVariables = {
      "RINGMASTER_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"};
  const Json& env = fields::List(container, "env");
  return std::any_of(env.begin(), env.end(), [&](const Json& variable) {
    return std::find(kVariables.begin(), kVariables.end(), fields::Text(variable, "name")) !=
           kVariables.end();
  });
}

void WrapWorker(Json& container, const api::HorovodJob& job, int index) {
  Json command = {fmt::format("{}/ringmaster-launcher", kBin), "--"};
  for (const Json& word : container["command"]) command.push_back(word);
  for (const Json& word : container.value("args", Json::array())) command.push_back(word);
  container["command"] = std::move(command);
  container.erase("args");
  AddMounts(container, {kBinVolume, kRunVolume, kShmVolume});
  Json env = MountEnv(container);
  AddJobEnv(env, job);
  env.push_back(Env("RINGMASTER_REPLICA_INDEX", std::to_string(index)));
  env.push_back(Env("RINGMASTER_REPLICAS", std::to_string(job.WantedPods())));
  if (!NamesInterface(container)) {
    env.push_back(EnvField("RINGMASTER_BIND_WORKER", "status.podIP"));
  }
  env.push_back(Env("RINGMASTER_FAILURE_POLICY", job.spec.failure_policy_json.dump()));
  env.push_back(Env("RINGMASTER_COLLECTIVES", job.spec.collectives.dump()));
  // The launcher extends LD_LIBRARY_PATH and PYTHONPATH, because only it sees the image's values.
  for (const Json& variable : container.value("env", Json::array())) env.push_back(variable);
  container["env"] = std::move(env);
}

void AddVolumes(Json& spec, const Json& worker) {
  for (const Volume& volume : kVolumes) {
    if (!HasMount(worker, "name", volume.name)) continue;  // the user mounts a /dev/shm
    Json empty_dir = Json::object();
    if (volume.memory) empty_dir["medium"] = "Memory";
    if (volume.size_limit != nullptr) empty_dir["sizeLimit"] = volume.size_limit;
    spec["volumes"].push_back({{"name", volume.name}, {"emptyDir", std::move(empty_dir)}});
  }
}

void SetDefault(Json& spec, const char* name, Json value) {
  if (!spec.contains(name) || spec[name].is_null()) spec[name] = std::move(value);
}

Json BuildSpec(const api::HorovodJob& job, int index, const PodOptions& options) {
  Json spec = job.spec.worker.pod_template.at("spec");
  spec["restartPolicy"] = "Never";  // the launcher restarts workers, the operator replaces pods
  SetDefault(spec, "terminationGracePeriodSeconds", kDefaultGraceSeconds);
  SetDefault(spec, "automountServiceAccountToken", false);
  SetDefault(spec, "enableServiceLinks", false);
  if (!job.spec.run_policy.scheduling_policy.priority_class.empty()) {
    SetDefault(spec, "priorityClassName", job.spec.run_policy.scheduling_policy.priority_class);
  }
  Json init = {InstallContainer(options), SidecarContainer(job, options)};
  for (const Json& user : spec.value("initContainers", Json::array())) init.push_back(user);
  spec["initContainers"] = std::move(init);
  for (Json& container : spec.at("containers")) {
    if (container.value("name", "") != api::kWorkerContainer) continue;
    WrapWorker(container, job, index);
    AddVolumes(spec, container);
  }
  if (options.host_network) spec["hostNetwork"] = true;
  if (options.cluster) FitForCluster(job, planner::PodName(job.name, index), options, &spec);
  return spec;
}

}  // namespace

Json BuildPod(const api::HorovodJob& job, int index, const PodOptions& options) {
  Json metadata = Json::object();
  const Json& pod_template = job.spec.worker.pod_template;
  if (pod_template.contains("metadata") && pod_template["metadata"].is_object()) {
    for (const char* field : {"labels", "annotations"}) {
      if (pod_template["metadata"].contains(field))
        metadata[field] = pod_template["metadata"][field];
    }
  }
  metadata["name"] = planner::PodName(job.name, index);
  metadata["namespace"] = job.ns;
  metadata["labels"].update(LabelsOf(job, index));
  // In local mode these annotations name the directory in which containers run.
  for (const auto& [key, value] : job.annotations) {
    if (key.rfind(api::kLocalPrefix, 0) == 0) metadata["annotations"][key] = value;
  }
  metadata["ownerReferences"] = Json::array({OwnerReference(job.name, job.uid)});
  if (options.cluster) AnnotateForCluster(pod_template.at("spec"), &metadata);
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", std::move(metadata)},
          {"spec", BuildSpec(job, index, options)}};
}

}  // namespace ringmaster::controllers
