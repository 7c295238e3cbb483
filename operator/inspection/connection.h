// An API server that jobs are looked at through: of a cluster, or of a run on this machine.
//
// Plain values.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "operator/kube/kube_api.h"

namespace ringmaster::inspection {

struct Connection {
  std::shared_ptr<kube::KubeApi> api;
  std::filesystem::path run_dir;  // empty: a cluster
  std::string ns;
};

}  // namespace ringmaster::inspection
