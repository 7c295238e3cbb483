#include "collectives/process_manager/process_manager.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "collectives/process_manager/pmi1.h"
#include "collectives/process_manager/pmix.h"

namespace ringmaster::process_manager {

namespace {

// Its launcher need not be asked then, nor be one that can be.
bool IsAlone() {
  const char* const sizes[] = {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE"};
  return std::any_of(std::begin(sizes), std::end(sizes), [](const char* name) {
    const char* const size = std::getenv(name);
    return size != nullptr && std::string_view(size) == "1";
  });
}

}  // namespace

Status Find(std::unique_ptr<ProcessManager>* out) {
  out->reset();
  if (IsAlone()) return {};
  if (std::getenv("PMIX_RANK") != nullptr && std::getenv("PMIX_NAMESPACE") != nullptr)
    return OpenPmix(out);
  if (std::getenv("PMI_FD") != nullptr) return OpenPmi1(out);
  return {};
}

}  // namespace ringmaster::process_manager
