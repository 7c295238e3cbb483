#include "operator/kube/resources.h"

#include <algorithm>

namespace ringmaster::kube {
namespace {

enum Index : size_t {
  kPods,
  kNodes,
  kNamespaces,
  kConfigMaps,
  kSecrets,
  kServices,
  kEvents,
  kLeases,
  kPodDisruptionBudgets,
  kNetworkPolicies,
  kEndpointSlices,
  kCustomResourceDefinitions,
  kHorovodJobs,
  kPriorityClasses,
  kWorkloads,
  kResourceFlavors,
  kWorkloadPriorityClasses,
  kPodGroups,
  kPodTemplates,
  kProvisioningRequests,
};

}  // namespace

const std::vector<Resource>& AllResources() {
  static const std::vector<Resource> kAll = {
      {"", "v1", "pods", "Pod", true},
      {"", "v1", "nodes", "Node", false},
      {"", "v1", "namespaces", "Namespace", false},
      {"", "v1", "configmaps", "ConfigMap", true},
      {"", "v1", "secrets", "Secret", true},
      {"", "v1", "services", "Service", true},
      {"events.k8s.io", "v1", "events", "Event", true},
      {"coordination.k8s.io", "v1", "leases", "Lease", true},
      {"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true},
      {"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true},
      {"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true},
      {"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
       false},
      {"ringmaster.dev", "v1alpha1", "horovodjobs", "HorovodJob", true},
      {"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false},
      {"kueue.x-k8s.io", "v1beta2", "workloads", "Workload", true},
      {"kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor", false},
      {"kueue.x-k8s.io", "v1beta2", "workloadpriorityclasses", "WorkloadPriorityClass", false},
      {"scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", true},
      {"", "v1", "podtemplates", "PodTemplate", true},
      {"autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest", true},
  };
  return kAll;
}

const Resource& Pods() { return AllResources()[kPods]; }
const Resource& Nodes() { return AllResources()[kNodes]; }
const Resource& Namespaces() { return AllResources()[kNamespaces]; }
const Resource& ConfigMaps() { return AllResources()[kConfigMaps]; }
const Resource& Secrets() { return AllResources()[kSecrets]; }
const Resource& Services() { return AllResources()[kServices]; }
const Resource& Events() { return AllResources()[kEvents]; }
const Resource& Leases() { return AllResources()[kLeases]; }
const Resource& PodDisruptionBudgets() { return AllResources()[kPodDisruptionBudgets]; }
const Resource& NetworkPolicies() { return AllResources()[kNetworkPolicies]; }
const Resource& EndpointSlices() { return AllResources()[kEndpointSlices]; }
const Resource& CustomResourceDefinitions() { return AllResources()[kCustomResourceDefinitions]; }
const Resource& HorovodJobs() { return AllResources()[kHorovodJobs]; }
const Resource& PriorityClasses() { return AllResources()[kPriorityClasses]; }
const Resource& Workloads() { return AllResources()[kWorkloads]; }
const Resource& ResourceFlavors() { return AllResources()[kResourceFlavors]; }
const Resource& WorkloadPriorityClasses() { return AllResources()[kWorkloadPriorityClasses]; }
const Resource& PodGroups() { return AllResources()[kPodGroups]; }
const Resource& PodTemplates() { return AllResources()[kPodTemplates]; }
const Resource& ProvisioningRequests() { return AllResources()[kProvisioningRequests]; }

const Resource* FindResource(std::string_view group, std::string_view version,
                             std::string_view plural) {
  const auto& all = AllResources();
  auto it = std::find_if(all.begin(), all.end(), [&](const Resource& r) {
    return r.group == group && r.version == version && r.plural == plural;
  });
  return it == all.end() ? nullptr : &*it;
}

std::string QualifiedName(const Resource& resource) {
  return resource.group.empty() ? resource.plural : resource.plural + "." + resource.group;
}

std::string PercentEncode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (unsigned char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += static_cast<char>(c);
    } else {
      out += '%';
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
  return out;
}

std::string ResourcePath(const Resource& resource, const std::string& ns, const std::string& name,
                         const std::string& subresource) {
  std::string path = resource.group.empty() ? "/api/" + resource.version
                                            : "/apis/" + resource.group + "/" + resource.version;
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + PercentEncode(ns);
  path += "/" + resource.plural;
  if (!name.empty()) path += "/" + PercentEncode(name);
  if (!subresource.empty()) path += "/" + subresource;
  return path;
}

}  // namespace ringmaster::kube
