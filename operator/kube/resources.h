// The table of resources: what the embedded server serves and what discovery of a URL needs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::kube {

const std::vector<Resource>& AllResources();

// Null when the project doesn't know it.
const Resource* FindResource(std::string_view group, std::string_view version,
                             std::string_view plural);

// "pods", "horovodjobs.ringmaster.dev": how the API server's messages call a resource.
std::string QualifiedName(const Resource& resource);

// "/api/v1/namespaces/NS/pods/NAME/status"; each part after the resource may be empty. Names are
// percent-encoded.
std::string ResourcePath(const Resource& resource, const std::string& ns, const std::string& name,
                         const std::string& subresource);

std::string PercentEncode(std::string_view text);

}  // namespace ringmaster::kube
