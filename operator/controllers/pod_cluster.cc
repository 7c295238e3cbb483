#include "operator/controllers/pod_cluster.h"

#include <algorithm>

#include "operator/controllers/child_names.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;

constexpr char kTlsMount[] = "/etc/ringmaster/tls";
constexpr char kTlsVariable[] = "RINGMASTER_MOUNT_RINGMASTER_TLS";
constexpr char kDefaultContainer[] = "kubectl.kubernetes.io/default-container";

// Satisfies the "restricted" Pod Security Standard. The user is set here and not by the image,
// because the pod's runAsUser would take precedence over the image's.
Json SecurityContext() {
  return {{"runAsNonRoot", true},
          {"runAsUser", kSidecarUser},
          {"runAsGroup", kSidecarUser},
          {"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"capabilities", {{"drop", {"ALL"}}}},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

bool OnHostNetwork(const Json& spec) {
  const auto at = spec.find("hostNetwork");
  return at != spec.end() && at->is_boolean() && at->get<bool>();
}

void AddEnv(Json* container, const char* name, const std::string& value) {
  (*container)["env"].push_back({{"name", name}, {"value", value}});
}

Json Probe(const char* path, int period_seconds, int failures, bool host_network) {
  Json probe = {
      {"periodSeconds", period_seconds}, {"timeoutSeconds", 5}, {"failureThreshold", failures}};
  if (host_network) {
    // Only the sidecar itself knows which ports it has.
    probe["exec"]["command"] = {"ringmaster-sidecar", "probe", path};
  } else {
    probe["httpGet"] = {{"path", path}, {"port", kHttpPortName}};
  }
  return probe;
}

void FixPorts(Json* sidecar) {
  struct Port {
    const char* name;
    const char* variable;
    int number;
  };
  Json ports = Json::array();
  for (const Port& port : {Port{"rendezvous", "RINGMASTER_RENDEZVOUS_PORT", kRendezvousPort},
                           Port{"heartbeat", "RINGMASTER_HEARTBEAT_PORT", kHeartbeatPort},
                           Port{kHttpPortName, "RINGMASTER_HTTP_PORT", kHttpPort}}) {
    ports.push_back({{"name", port.name}, {"containerPort", port.number}, {"protocol", "TCP"}});
    AddEnv(sidecar, port.variable, std::to_string(port.number));
  }
  (*sidecar)["ports"] = std::move(ports);
}

// The workers start when the sidecar listens; the pod is Ready when its workers train; a sidecar
// that hangs is restarted while its workers train on.
void AddProbes(Json* sidecar, bool host_network) {
  (*sidecar)["startupProbe"] = Probe("/healthz", 1, 120, host_network);
  (*sidecar)["readinessProbe"] = Probe("/readyz", 2, 2, host_network);
  (*sidecar)["livenessProbe"] = Probe("/healthz", 10, 6, host_network);
}

void AddTls(const api::HorovodJob& job, Json* spec, Json* sidecar) {
  (*spec)["volumes"].push_back(
      {{"name", kTlsVolume},
       {"secret", {{"secretName", TlsSecretName(job.name)}, {"defaultMode", 0444}}}});
  // Only the sidecar gets the certificate, so that code in the worker can't speak for the job.
  (*sidecar)["volumeMounts"].push_back(
      {{"name", kTlsVolume}, {"mountPath", kTlsMount}, {"readOnly", true}});
  // On a node without mounts (local mode) the variable is set to the volume's real directory.
  AddEnv(sidecar, kTlsVariable, kTlsMount);
  AddEnv(sidecar, "RINGMASTER_TLS_DIR", std::string("$(") + kTlsVariable + ")");
}

// Makes the kubelet keep the end of a failed container's log, which conditions and events quote.
void KeepLastWords(Json* container) {
  container->emplace("terminationMessagePolicy", "FallbackToLogsOnError");
}

}  // namespace

// About twice the measured use (docs/operations.md). There is no CPU limit, because a recovery
// needs CPU at once.
Json DefaultSidecarResources() {
  return {{"requests", {{"cpu", "30m"}, {"memory", "48Mi"}}}, {"limits", {{"memory", "512Mi"}}}};
}

void AnnotateForCluster(const Json& spec, Json* metadata) {
  Json& annotations = (*metadata)["annotations"];
  annotations.emplace(kDefaultContainer, api::kWorkerContainer);  // unless the user names another
  if (OnHostNetwork(spec)) return;
  const auto names_prometheus = [](const auto& item) {
    return item.key().rfind("prometheus.io/", 0) == 0;
  };
  const auto items = annotations.items();
  if (std::any_of(items.begin(), items.end(), names_prometheus)) return;
  annotations["prometheus.io/scrape"] = "true";
  annotations["prometheus.io/port"] = std::to_string(kHttpPort);
  annotations["prometheus.io/path"] = "/metrics";
}

void FitForCluster(const api::HorovodJob& job, const std::string& pod_name,
                   const PodOptions& options, Json* spec) {
  const bool host_network = OnHostNetwork(*spec);
  for (Json& container : (*spec)["containers"]) {
    if (container.value("name", "") == api::kWorkerContainer) KeepLastWords(&container);
  }
  for (Json& container : (*spec)["initContainers"]) {
    KeepLastWords(&container);
    const std::string name = container.value("name", "");
    if (name != kSidecarContainer && name != kInstallContainer) continue;
    container["securityContext"] = SecurityContext();
    container["resources"] = options.sidecar_resources;
    if (!options.image_pull_policy.empty()) {
      container["imagePullPolicy"] = options.image_pull_policy;
    }
    if (name == kInstallContainer) continue;
    if (options.tls) {
      AddTls(job, spec, &container);
    } else {
      AddEnv(&container, "RINGMASTER_INSECURE", "1");
    }
    AddProbes(&container, host_network);
    if (!host_network) FixPorts(&container);
  }
  if (host_network) {
    // A node's own resolver doesn't know the operator's Service.
    if (!spec->contains("dnsPolicy")) (*spec)["dnsPolicy"] = "ClusterFirstWithHostNet";
    return;
  }
  // digits-worker-0.digits-workers.NAMESPACE.svc, unless the user sets a name.
  if (!spec->contains("hostname") && !spec->contains("subdomain")) {
    (*spec)["hostname"] = pod_name;
    (*spec)["subdomain"] = ServiceName(job.name);
  }
}

}  // namespace ringmaster::controllers
