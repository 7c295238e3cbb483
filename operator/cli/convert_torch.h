// What PyTorchJob and TrainJob have in common: pods in which `torchrun`, or the script itself,
// starts one process for each rank of torch.distributed. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/cli/convert.h"
#include "operator/cli/convert_parts.h"

namespace ringmaster::cli::conversion {

struct TorchJob {
  std::string kind;            // with its article, for notes: "a PyTorchJob"
  Json pod_template;           // with all containers
  size_t container = 0;        // of these the one that trains
  std::string container_path;  // where the job has it, for notes
  std::int64_t replicas = 1;
  std::optional<std::int64_t> least, most;  // of the job's elastic policy, if it has one
  Json processes;                           // in each pod: a number, "auto", "cpu", "gpu", or null
  std::string processes_path;
  Json max_restarts;
  Json run_policy = Json::object();  // that of the HorovodJob
};

// The spec of a HorovodJob with `collectives.backend: None`, or with Ringmaster's collectives where
// the command begins with horovodrun or mpirun. Adds notes to `converted`, and what is to be
// mended.
Json SpecOf(TorchJob job, Converted* converted);

}  // namespace ringmaster::cli::conversion
