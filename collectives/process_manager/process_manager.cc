#include "collectives/process_manager/process_manager.h"

#include <cstdlib>
#include <string_view>

#include "collectives/process_manager/pmi1.h"
#include "collectives/process_manager/pmix.h"

namespace ringmaster::process_manager {

namespace {

// `size`: the variable by which the launcher says how many processes it has started. One that is
// alone need not ask it, nor have its library.
bool IsAlone(const char* size) {
  const char* const text = std::getenv(size);
  return text != nullptr && std::string_view(text) == "1";
}

}  // namespace

Status Find(std::unique_ptr<ProcessManager>* out) {
  out->reset();
  if (std::getenv("PMIX_RANK") != nullptr && std::getenv("PMIX_NAMESPACE") != nullptr) {
    // Open MPI's own comes first: its mpirun may run in a step of Slurm's that has one task.
    const bool is_mpirun = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
    if (IsAlone(is_mpirun ? "OMPI_COMM_WORLD_SIZE" : "SLURM_STEP_NUM_TASKS")) return {};
    return OpenPmix(out);
  }
  if (std::getenv("PMI_FD") != nullptr) return IsAlone("PMI_SIZE") ? Status() : OpenPmi1(out);
  return {};
}

}  // namespace ringmaster::process_manager
