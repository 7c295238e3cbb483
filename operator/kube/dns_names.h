// Names of objects as RFC 1123 has them. Pure.
#pragma once

#include <string>

namespace ringmaster::kube {

// A subdomain: the name of most objects.
bool IsDnsName(const std::string& text);
// A subdomain without dots: the name of a container, a namespace, a port.
bool IsDnsLabel(const std::string& text);

}  // namespace ringmaster::kube
