// Where below logs/ of the run directory the containers of a pod have their logs.
#pragma once

#include <string>

namespace ringmaster::kubelet {

// The pod's name; in another namespace than "default" that of the namespace comes first. No name of
// Kubernetes has an underscore, so pods of one name in two namespaces never share a folder.
inline std::string LogFolder(const std::string& ns, const std::string& pod) {
  return ns.empty() || ns == "default" ? pod : ns + "_" + pod;
}

}  // namespace ringmaster::kubelet
