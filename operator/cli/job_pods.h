// The pods of one job of a `ringmaster run`: the objects of those that exist, and the names and
// indexes of all that ever did, because a pod's log may be read after the pod has gone. Pure.
//
// Thread rule: none; one thread owns it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace ringmaster::cli {

// The exit code of the pod's first failed container; nullopt if none has failed.
std::optional<int> ExitCodeOfFailed(const nlohmann::json& pod);

class JobPods {
 public:
  using Json = nlohmann::json;

  void Observe(const Json& pod, bool gone);

  // How many of the pods that exist run.
  int CountRunning() const;
  // Addresses of the sidecars of the pods that exist, by pod.
  std::map<std::string, std::string> SidecarAddresses() const;
  // Also true for a pod that is gone, because its output may be read later.
  bool Had(const std::string& pod) const { return indexes_.count(pod) > 0; }
  // The index of a pod that ever existed.
  std::optional<int> IndexOf(const std::string& pod) const;
  // The pod with the lowest index that ever existed; empty if there was none.
  std::string First() const;
  // The pod that ever existed whose name is a word of this text; empty if there was none.
  std::string NamedIn(const std::string& text) const;
  // Of the pods that exist, the one with a failed container that ended first; empty if none has
  // one.
  std::string FailedFirst() const;

 private:
  std::map<std::string, Json> existing_;  // by name
  std::map<std::string, int> indexes_;    // of all pods that ever existed, by name
};

}  // namespace ringmaster::cli
