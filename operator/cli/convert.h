// An MPIJob of the MPI Operator (kubeflow.org) as a HorovodJob. Pure.
//
// The worker pods keep their template; the launcher's command becomes the workers' own, without the
// `mpirun` or `horovodrun` in front of it. What has no place in a HorovodJob, or was guessed, is
// told.
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

// The failure (kUsage) says why it is no MPIJob that can be converted.
Outcome<Converted> ConvertMpiJob(const nlohmann::json& mpi_job);

// The program that `mpirun` or `horovodrun` would start, with its arguments; what each option of
// theirs means here is added to the notes, and variables that they set (-x, -genv) to `env`.
std::vector<std::string> WithoutLauncher(const std::vector<std::string>& command,
                                         std::vector<std::pair<std::string, std::string>>* env,
                                         std::vector<std::string>* notes);

}  // namespace ringmaster::cli
