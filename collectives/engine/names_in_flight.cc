#include "collectives/engine/names_in_flight.h"

namespace ringmaster::engine {
namespace {

// What can be in flight only once at a time: a name or, for a transfer, a name between its two
// workers.
const std::string& Once(const Request& request) {
  return request.kind == Kind::kTransfer ? request.key() : request.name;
}

}  // namespace

Status NamesInFlight::Enter(std::span<const std::shared_ptr<Operation>> operations) {
  for (size_t i = 0; i < operations.size(); ++i) {
    const Request& request = operations[i]->request;
    if (process_set_by_name_.emplace(Once(request), request.process_set).second) continue;
    for (const auto& entered : operations.first(i)) Free(entered->request);
    if (request.kind == Kind::kStepEnd) return {RM_ERR_INVALID, "another thread is in rm_step_end"};
    return {RM_ERR_INVALID,
            "'" + request.name + "' is already in flight: wait for it, or use another name"};
  }
  return {};
}

void NamesInFlight::Free(const Request& request) { process_set_by_name_.erase(Once(request)); }

void NamesInFlight::Free(const Response& response) {
  for (const Request& request : response.requests) {
    const auto found = process_set_by_name_.find(Once(request));
    if (found == process_set_by_name_.end() || found->second != request.process_set) continue;
    process_set_by_name_.erase(found);
  }
}

}  // namespace ringmaster::engine
