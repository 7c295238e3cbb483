// Converts an MPIJob of the MPI Operator (kubeflow.org) to a HorovodJob. Pure.
//
// The worker pods keep their template. The launcher's command becomes the workers' command, without
// `mpirun` or `horovodrun`. Notes name everything that can't be expressed in a HorovodJob or was
// guessed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

struct Converted {
  nlohmann::json job;
  std::vector<std::string> notes;  // "spec.sshAuthMountPath: not carried over: ..."
};

// The failure (kUsage) says why this is not an MPIJob that can be converted.
Outcome<Converted> ConvertMpiJob(const nlohmann::json& mpi_job);

// Returns the program that `mpirun` or `horovodrun` would start, with its arguments. The notes say
// what each option of theirs means here; variables that they set (-x, -genv) are added to `env`.
std::vector<std::string> WithoutLauncher(const std::vector<std::string>& command,
                                         std::vector<std::pair<std::string, std::string>>* env,
                                         std::vector<std::string>* notes);

}  // namespace ringmaster::cli
