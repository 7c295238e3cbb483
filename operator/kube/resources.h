// All resources that the project knows; the embedded server serves them and discovery needs them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::kube {

const std::vector<Resource>& AllResources();

// What a ProvisioningRequest of cluster-autoscaler refers to, and the request in its newest
// version.
const Resource& PodTemplates();
const Resource& ProvisioningRequests();

// Null if the project doesn't know the resource.
const Resource* FindResource(std::string_view group, std::string_view version,
                             std::string_view plural);

// The name of a resource in the API server's messages: "pods", "horovodjobs.ringmaster.dev".
std::string QualifiedName(const Resource& resource);

// Builds "/api/v1/namespaces/NS/pods/NAME/status"; the parts after the resource may be empty. Names
// are percent-encoded.
std::string ResourcePath(const Resource& resource, const std::string& ns, const std::string& name,
                         const std::string& subresource);

std::string PercentEncode(std::string_view text);

}  // namespace ringmaster::kube
