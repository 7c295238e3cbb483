// Asks the API server at the start whether the operator may do what it will want to do, so that a
// missing right is named before the first job needs it.
//
// Thread rule: one thread; blocks for a call for each right.
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
  std::string lease_namespace;                // empty: nobody is elected
  std::string authority_namespace;            // empty: no TLS with sidecars
  bool whole_cluster = false;                 // it looks at all nodes and pods
  bool pod_groups = false;                    // jobs may have PodGroups of Kubernetes
  bool kueue = false;                         // jobs may name a queue of Kueue
  bool trust_node_deletion = false;
  bool reviews = false;  // it asks who others are and what they may
  bool page = false;
};

// What the operator calls.
std::vector<Right> WantedRights(const RightsScope& scope);

// Those of `rights` that the API server says we don't have. One that it can't tell of (an API
// server without authorization, such as the one of local mode) counts as ours.
std::vector<Right> MissingRights(kube::KubeApi* api, const std::vector<Right>& rights,
                                 std::stop_token stop);

}  // namespace ringmaster::app
