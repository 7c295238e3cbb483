// Asks the API server at the start whether the operator has all the rights that it will need, so
// that a missing right is reported before the first job needs it.
//
// Thread rule: one thread; blocks for one call per right.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::app {

struct Right {
  std::string verb;
  std::string group;
  std::string resource;
  std::string subresource;  // "", "status", "log"
  std::string ns;           // empty: in all namespaces

  // "update horovodjobs.ringmaster.dev/status in all namespaces"
  std::string ToString() const;
};

struct RightsScope {
  std::vector<std::string> watch_namespaces;  // empty: all
  std::string lease_namespace;                // empty: no election
  std::string authority_namespace;            // empty: no TLS with sidecars
  bool whole_cluster = false;                 // it watches all nodes and pods
  bool pod_groups = false;                    // jobs may have Kubernetes PodGroups
  bool kueue = false;                         // jobs may name a Kueue queue
  bool provisioning_requests = false;         // jobs may have ProvisioningRequests
  bool trust_node_deletion = false;
  bool reviews = false;  // it makes TokenReviews and SubjectAccessReviews
  bool page = false;
};

// The rights that the operator needs.
std::vector<Right> WantedRights(const RightsScope& scope);

// Those of `rights` that we lack, according to the API server. A right that can't be reviewed (an
// API server without authorization, such as that of local mode) counts as given.
std::vector<Right> MissingRights(kube::KubeApi* api, const std::vector<Right>& rights,
                                 std::stop_token stop);

}  // namespace ringmaster::app
