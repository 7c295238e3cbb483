#include "operator/app/rights.h"

#include <fmt/format.h>

namespace ringmaster::app {
namespace {

using kube::Json;

struct Rule {
  const char* group;
  const char* resource;
  const char* subresource;
  std::vector<const char*> verbs;
};

// The README of charts/ringmaster says what each right is for. The chart grants one more that is
// never used by a call: horovodjobs/finalizers, which an admission plugin of some clusters
// requires.
const std::vector<Rule>& JobRules() {
  static const std::vector<Rule> kRules = {
      {"ringmaster.dev", "horovodjobs", "", {"get", "list", "watch", "delete"}},
      {"ringmaster.dev", "horovodjobs", "status", {"update"}},
      {"", "pods", "", {"get", "list", "watch", "create", "patch", "delete"}},
      {"", "configmaps", "", {"get", "create", "update"}},
      {"events.k8s.io", "events", "", {"list", "create", "patch"}},
      {"", "secrets", "", {"get", "create", "patch"}},
      {"", "services", "", {"get", "list", "watch", "create", "patch"}},
      {"policy", "poddisruptionbudgets", "", {"get", "list", "watch", "create", "patch"}},
      {"networking.k8s.io", "networkpolicies", "", {"get", "list", "watch", "create", "patch"}},
  };
  return kRules;
}

const std::vector<Rule>& OwnRules() {
  static const std::vector<Rule> kRules = {
      {"coordination.k8s.io", "leases", "", {"get", "create", "update"}},
      {"", "pods", "", {"get", "list", "patch"}},
  };
  return kRules;
}

const std::vector<Rule>& AuthorityRules() {
  static const std::vector<Rule> kRules = {
      {"", "secrets", "", {"get", "create"}},
  };
  return kRules;
}

const std::vector<Rule>& ClusterRules() {
  static const std::vector<Rule> kRules = {
      {"", "nodes", "", {"list", "watch"}},
      {"", "pods", "", {"list", "watch"}},
  };
  return kRules;
}

const std::vector<Rule>& TrustRules() {
  static const std::vector<Rule> kRules = {
      {"", "nodes", "", {"get"}},
  };
  return kRules;
}

const std::vector<Rule>& PodGroupRules() {
  static const std::vector<Rule> kRules = {
      {"scheduling.k8s.io", "podgroups", "", {"get", "list", "watch", "create", "patch"}},
  };
  return kRules;
}

const std::vector<Rule>& ProvisioningRules() {
  static const std::vector<Rule> kRules = {
      {"autoscaling.x-k8s.io", "provisioningrequests", "", {"list", "watch", "create", "delete"}},
      {"", "podtemplates", "", {"create", "delete"}},
  };
  return kRules;
}

const std::vector<Rule>& QueueRules() {
  static const std::vector<Rule> kRules = {
      {"kueue.x-k8s.io", "workloads", "", {"get", "list", "watch", "create", "patch", "delete"}},
      {"kueue.x-k8s.io", "workloads", "status", {"patch"}},
  };
  return kRules;
}

// For objects outside namespaces.
const std::vector<Rule>& QueueClusterRules() {
  static const std::vector<Rule> kRules = {
      {"kueue.x-k8s.io", "resourceflavors", "", {"get"}},
      {"kueue.x-k8s.io", "workloadpriorityclasses", "", {"get"}},
  };
  return kRules;
}

// How important a job is that has no pods yet, in its queue or in our own line.
const std::vector<Rule>& PriorityRules() {
  static const std::vector<Rule> kRules = {
      {"scheduling.k8s.io", "priorityclasses", "", {"get", "list"}},
  };
  return kRules;
}

const std::vector<Rule>& ReviewRules() {
  static const std::vector<Rule> kRules = {
      {"authentication.k8s.io", "tokenreviews", "", {"create"}},
      {"authorization.k8s.io", "subjectaccessreviews", "", {"create"}},
  };
  return kRules;
}

const std::vector<Rule>& PageRules() {
  static const std::vector<Rule> kRules = {
      {"", "pods", "log", {"get"}},
  };
  return kRules;
}

const kube::Resource& AccessReviews() {
  static const kube::Resource kReviews = {"authorization.k8s.io", "v1", "selfsubjectaccessreviews",
                                          "SelfSubjectAccessReview", false};
  return kReviews;
}

}  // namespace

std::string Right::ToString() const {
  return fmt::format("{} {}{}{}{} {}", verb, resource, group.empty() ? "" : ".", group,
                     subresource.empty() ? "" : "/" + subresource,
                     ns.empty() ? "in all namespaces" : "in namespace " + ns);
}

std::vector<Right> WantedRights(const RightsScope& scope) {
  std::vector<Right> rights;
  const auto add = [&](const std::vector<Rule>& rules, const std::string& ns) {
    for (const Rule& rule : rules) {
      for (const char* verb : rule.verbs) {
        rights.push_back({verb, rule.group, rule.resource, rule.subresource, ns});
      }
    }
  };
  const auto add_for_jobs = [&](const std::string& ns) {
    add(JobRules(), ns);
    if (scope.page) add(PageRules(), ns);
    if (scope.pod_groups) add(PodGroupRules(), ns);
    if (scope.kueue) add(QueueRules(), ns);
    if (scope.provisioning_requests) add(ProvisioningRules(), ns);
  };
  if (scope.watch_namespaces.empty()) add_for_jobs("");
  for (const std::string& ns : scope.watch_namespaces) add_for_jobs(ns);
  if (!scope.lease_namespace.empty()) add(OwnRules(), scope.lease_namespace);
  if (!scope.authority_namespace.empty()) add(AuthorityRules(), scope.authority_namespace);
  if (scope.whole_cluster) add(ClusterRules(), "");
  if (scope.kueue) add(QueueClusterRules(), "");
  if (scope.kueue || scope.whole_cluster) add(PriorityRules(), "");
  if (scope.trust_node_deletion) add(TrustRules(), "");
  if (scope.reviews) add(ReviewRules(), "");
  return rights;
}

std::vector<Right> MissingRights(kube::KubeApi* api, const std::vector<Right>& rights,
                                 std::stop_token stop) {
  std::vector<Right> missing;
  for (const Right& right : rights) {
    if (stop.stop_requested()) break;
    const auto review = api->Create(AccessReviews(), "",
                                    {{"apiVersion", AccessReviews().ApiVersion()},
                                     {"kind", AccessReviews().kind},
                                     {"spec",
                                      {{"resourceAttributes",
                                        {{"verb", right.verb},
                                         {"group", right.group},
                                         {"resource", right.resource},
                                         {"subresource", right.subresource},
                                         {"namespace", right.ns}}}}}});
    if (!review) break;  // the API server can't tell; its other problems are reported elsewhere
    const Json::json_pointer allowed("/status/allowed");
    if (review->contains(allowed) && (*review)[allowed] == false) missing.push_back(right);
  }
  return missing;
}

}  // namespace ringmaster::app
