#include "collectives/process_manager/process_manager.h"

#include <cstdlib>

#include "collectives/process_manager/pmi1.h"
#include "collectives/process_manager/pmix.h"

namespace ringmaster::process_manager {

Status Find(std::unique_ptr<ProcessManager>* out) {
  out->reset();
  if (std::getenv("PMIX_RANK") != nullptr && std::getenv("PMIX_NAMESPACE") != nullptr)
    return OpenPmix(out);
  if (std::getenv("PMI_FD") != nullptr) return OpenPmi1(out);
  return {};
}

}  // namespace ringmaster::process_manager
