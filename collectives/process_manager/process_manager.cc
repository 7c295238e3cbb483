#include "collectives/process_manager/process_manager.h"

#include <charconv>
#include <string>

#include "collectives/process_manager/pmi1.h"
#include "collectives/process_manager/pmix.h"

namespace ringmaster::process_manager {
namespace {

using Lookup = std::function<std::string(const char*)>;
using Protocol = Launch::Protocol;

Status ReadNumber(const Lookup& lookup, const char* name, int least, int* out) {
  const std::string text = lookup(name);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  if (error == std::errc() && stop == end && *out >= least) return {};
  return {RM_ERR_INVALID,
          std::string(name) + " is '" + text + "', allowed is a number as mpiexec sets it"};
}

Status ReadPmi(const Lookup& lookup, Launch* out) {
  if (Status s = ReadNumber(lookup, "PMI_FD", 0, &out->socket); !s.ok()) return s;
  if (Status s = ReadNumber(lookup, "PMI_RANK", 0, &out->rank); !s.ok()) return s;
  if (Status s = ReadNumber(lookup, "PMI_SIZE", 1, &out->size); !s.ok()) return s;
  if (out->rank < out->size) return {};
  return {RM_ERR_INVALID, "PMI_RANK is '" + std::to_string(out->rank) +
                              "', allowed is less than PMI_SIZE, " + std::to_string(out->size)};
}

}  // namespace

Status ReadLaunch(const Lookup& lookup, Launch* out) {
  *out = {};
  if (!lookup("PMIX_RANK").empty() && !lookup("PMIX_NAMESPACE").empty()) {
    // Open MPI's variable comes first: its mpirun may run in a Slurm step that has one task.
    std::string size = lookup("OMPI_COMM_WORLD_SIZE");
    if (size.empty()) size = lookup("SLURM_STEP_NUM_TASKS");
    // A process that is alone needs neither its launcher nor PMIx's library.
    if (size != "1") out->protocol = Protocol::kPmix;
    return {};
  }
  if (lookup("PMI_FD").empty() || lookup("PMI_SIZE") == "1") return {};
  out->protocol = Protocol::kPmi1;
  return ReadPmi(lookup, out);
}

Status Open(const Launch& launch, std::unique_ptr<ProcessManager>* out) {
  switch (launch.protocol) {
    case Protocol::kPmix:
      return OpenPmix(out);
    case Protocol::kPmi1:
      return OpenPmi1(launch, out);
    case Protocol::kNone:
      break;
  }
  return {RM_ERR_INVALID, "no launcher has started this process beside others"};
}

}  // namespace ringmaster::process_manager
