// Converts jobs of Kubeflow's operators to a HorovodJob: an MPIJob of the MPI Operator, a
// PyTorchJob of the Training Operator, a TrainJob of the Trainer. Pure.
//
// The pods keep their template, and their command loses what started it: `mpirun`, `horovodrun`,
// `torchrun`. Notes name everything that can't be expressed in a HorovodJob or was guessed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

struct Converted {
  nlohmann::json job;
  std::vector<std::string> notes;  // "spec.sshAuthMountPath: not carried over: ..."
  // Of the same form: what may be wrong, and has to be looked at before the job is taken.
  std::vector<std::string> to_mend;
};

// The failure (kUsage) says why this is not a job that can be converted.
Outcome<Converted> ConvertJob(const nlohmann::json& job);

// The same for one kind each (convert_mpi_job.cc and so on); apiVersion and kind are not looked at.
namespace conversion {
Outcome<Converted> ConvertMpiJob(const nlohmann::json& mpi_job);
Outcome<Converted> ConvertPyTorchJob(const nlohmann::json& pytorch_job);
Outcome<Converted> ConvertTrainJob(const nlohmann::json& train_job);
}  // namespace conversion

}  // namespace ringmaster::cli
