// The names of operations that users have asked for and that have not ended here. A name may be in
// flight only once at a time, because a second operation with it could not be told from the first.
//
// Owner: Inbox. Plain data, read and changed under the inbox's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "collectives/engine/operation.h"
#include "collectives/engine/request.h"
#include "collectives/engine/response.h"

namespace ringmaster::engine {

class NamesInFlight {
 public:
  // Takes the names of all operations or of none. RM_ERR_INVALID: one of them is in flight already.
  Status Enter(std::span<const std::shared_ptr<Operation>> operations);
  // The operation has ended, so the name is free for another one.
  void Free(const Request& request);
  // The same for all requests of the response that are this rank's. A request of another process
  // set is not, even if this rank has the same name in flight in a set of its own.
  void Free(const Response& response);
  void FreeAll() { process_set_by_name_.clear(); }

 private:
  std::unordered_map<std::string, int32_t> process_set_by_name_;
};

}  // namespace ringmaster::engine
