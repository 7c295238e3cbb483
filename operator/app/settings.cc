#include "operator/app/settings.h"

#include <cctype>

#include "common/logging/log.h"

namespace ringmaster::app {
namespace {

using C = OperatorConfig;

template <std::size_t n>
std::vector<std::string> WordsOf(const char* const (&words)[n]) {
  return {words, words + n};
}

// How sidecars reach the operator, and their settings.
std::vector<Setting> SidecarSettings() {
  return {
      {"kubeconfig", &C::kubeconfig,
       "kubeconfig file (default: the pod's service account, else $KUBECONFIG or ~/.kube/config)"},
      {.flag = "listen",
       .field = &C::listen,
       .help = "where sidecars attend: host:port or unix:/path",
       .rule = &kGrpcListenText,
       .required = true},
      {.flag = "sidecar-target",
       .field = &C::sidecar_target,
       .help = "what sidecars dial, if it is not --listen (a Service's name and port)",
       .rule = &kGrpcTargetText},
      {.flag = "sidecar-image",
       .field = &C::sidecar_image,
       .help = "image of sidecar and launcher",
       .rule = &kImageText,
       .required = true},
      {.flag = "sidecar-image-pull-policy",
       .field = &C::sidecar_image_pull_policy,
       .help = "imagePullPolicy of sidecar and launcher (default: Kubernetes')",
       .words = {"", "Always", "IfNotPresent", "Never"}},
      {.flag = "sidecar-resources",
       .field = &C::sidecar_resources,
       .help = "requests and limits of the sidecar, as JSON",
       .rule = &kResourcesText},
      {"tls", &C::tls,
       "mutual TLS with the sidecars; never where what they dial is local to this machine"},
      {.flag = "operator-namespace",
       .field = &C::operator_namespace,
       .help = "namespace of the certificate authority (default: $POD_NAMESPACE, else default)",
       .rule = &kNamespaceText},
      {"network-policy", &C::network_policy, "make a NetworkPolicy for each job"},
      {.flag = "metrics-namespace",
       .field = &C::metrics_namespace,
       .help = "only pods of this namespace may read sidecars' metrics (default: everybody)",
       .rule = &kNamespaceText},
  };
}

// Which jobs the operator manages, and how.
std::vector<Setting> JobSettings() {
  return {
      {.flag = "watch-namespaces",
       .field = &C::watch_namespaces,
       .help = "only jobs of these namespaces, with commas between them (default: of all)",
       .rule = &kNamespacesText},
      {.flag = "disruption-taints",
       .field = &C::disruption_taints,
       .help = "keys of taints that announce the end of a node, with commas, instead of the usual "
               "ones",
       .rule = &kTaintKeysText},
      {"trust-node-deletion", &C::trust_node_deletion,
       "a node's object is only removed after its instance, so its absence proves that its pods "
       "are dead (true where a cloud's node controller removes it)"},
      {"clear-finalizers", &C::clear_finalizers,
       "take our finalizer off all worker pods and exit: for uninstalling"},
      {"workers", &C::workers, "jobs reconciled at a time", 1, 64},
      {"gang-admission", &C::gang_admission,
       "pods of a job start together or not at all (default: true)"},
      {.flag = "autoscaling",
       .field = &C::autoscaling,
       .help = "how an autoscaler hears of jobs that wait for room: not at all, by pods that "
               "stand Pending, or by a ProvisioningRequest where the API server serves them (else "
               "as Pending)",
       .words = {"None", "Pending", "ProvisioningRequest"}},
      {.flag = "autoscaling-class",
       .field = &C::autoscaling_class,
       .help = "with --autoscaling=ProvisioningRequest: class of the requests of jobs that name "
               "none",
       .rule = &kObjectNameText,
       .required = true},
      {"autoscaling-after-seconds", &C::autoscaling_after_seconds,
       "with --autoscaling: a job has waited for room for so long", 1, 86400},
      {"autoscaling-within-seconds", &C::autoscaling_within_seconds,
       "with --autoscaling: where nodes for it have not come by then, its pods go and it "
       "waits again",
       10, 86400},
      {"autoscaling-jobs", &C::autoscaling_jobs,
       "with --autoscaling: so many jobs wait for nodes at a time", 1, 1000},
      {.flag = "pod-groups",
       .field = &C::pod_groups,
       .help = "whether the scheduler keeps the pods of a job together by a PodGroup, instead of "
               "the operator: where the API server serves them, or never",
       .words = {"Auto", "Never"}},
      {"kueue", &C::kueue, "jobs may name a queue of Kueue, which then decides when they start"},
  };
}

// Addresses, leader election, the connection to the API server, and logging.
std::vector<Setting> ProcessSettings() {
  return {
      {.flag = "health-listen",
       .field = &C::health_listen,
       .help = "host:port for /healthz and /readyz (default: not served)",
       .rule = &kHostPortText},
      {.flag = "metrics-listen",
       .field = &C::metrics_listen,
       .help = "host:port for /metrics (default: not served)",
       .rule = &kHostPortText},
      {"metrics-secure", &C::metrics_secure,
       "/metrics over TLS, for those alone who may: their bearer token is put to the API server "
       "(TokenReview, SubjectAccessReview)"},
      {.flag = "page-listen",
       .field = &C::page_listen,
       .help = "host:port for the page of all jobs, for those alone whom the API server lets get "
               "/page, while this replica leads; over TLS, but for loopback (default: not served)",
       .rule = &kHostPortText},
      {"leader-elect", &C::leader_elect,
       "run the controllers only while this replica holds a Lease; for two replicas and more"},
      {.flag = "leader-election-namespace",
       .field = &C::leader_election_namespace,
       .help = "namespace of the Lease and of the operator's pods (default: $POD_NAMESPACE, else "
               "default)",
       .rule = &kNamespaceText},
      {.flag = "leader-election-name",
       .field = &C::leader_election_name,
       .help = "name of the Lease",
       .rule = &kObjectNameText,
       .required = true},
      {"lease-duration-seconds", &C::lease_duration_seconds,
       "another replica may lead so long after the last renewal", 1, 3600},
      {"renew-deadline-seconds", &C::renew_deadline_seconds,
       "a leader that could not renew for so long ends", 1, 3600},
      {"retry-period-seconds", &C::retry_period_seconds, "between two looks at the Lease", 1, 3600},
      {"api-server-timeout-seconds", &C::api_server_timeout_seconds,
       "how long to wait for the API server to be reachable at the start", 1, 86400},
      {"kube-qps", &C::kube_qps,
       "calls to the API server each second, on average; no limit where the server has priority "
       "and "
       "fairness",
       0.1, 10000},
      {"kube-burst", &C::kube_burst, "calls to the API server at once", 1, 10000},
      {.flag = "log-format",
       .field = &C::log_format,
       .help = "a line of the log is text or a JSON object",
       .words = WordsOf(logging::kFormats)},
      {.flag = "log-level",
       .field = &C::log_level,
       .help = "what is logged",
       .words = WordsOf(logging::kLevels)},
  };
}

}  // namespace

const std::vector<Setting>& Settings() {
  static const std::vector<Setting> kSettings = [] {
    std::vector<Setting> all;
    for (const auto& part : {SidecarSettings(), JobSettings(), ProcessSettings()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return kSettings;
}

std::string KeyOf(const std::string& flag) {
  std::string key;
  for (std::size_t i = 0; i < flag.size(); ++i) {
    if (flag[i] != '-') {
      key += flag[i];
    } else if (++i < flag.size()) {
      key += static_cast<char>(std::toupper(static_cast<unsigned char>(flag[i])));
    }
  }
  return key;
}

}  // namespace ringmaster::app
