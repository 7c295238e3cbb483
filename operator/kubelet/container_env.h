// What a container's process gets: environment, arguments, working directory, volumes. Reads the
// pod and its config maps and secrets, writes volume directories.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::kubelet {

using kube::Json;

struct ContainerSetup {
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::filesystem::path working_dir;
};

struct SetupError {
  std::string reason;  // CreateContainerConfigError: tried again later; CreateContainerError;
                       // ContainerCannotRun
  std::string message;
};

struct SetupContext {
  const Json& pod;
  const Json& container;
  std::filesystem::path pod_dir;  // of volumes
  std::filesystem::path bin_dir;
  std::string address;  // of the pod
  std::vector<std::string> machine_env;
  std::vector<std::string> marks;  // RINGMASTER_RUN=..., so that descendants can be found
  // The ConfigMap or Secret of this name in the pod's namespace; null when there is none.
  std::function<Json(const kube::Resource&, const std::string& name)> read;
};

tl::expected<ContainerSetup, SetupError> SetUpContainer(const SetupContext& context);

// $(NAME) from `vars`; $$ is $; an unknown name stays as it is.
std::string ExpandVariables(const std::string& text,
                            const std::map<std::string, std::string>& vars);

// "ringmaster-run" -> "RINGMASTER_MOUNT_RINGMASTER_RUN".
std::string MountVariable(const std::string& volume);

// Our own image: the built binaries come first on PATH.
bool IsSidecarImage(const std::string& image);

}  // namespace ringmaster::kubelet
