// What all ranks agreed to do next, in one order: the unit that is executed, retained and handed
// over.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/engine/buffer.h"
#include "collectives/engine/request.h"

namespace ringmaster::engine {

struct Response {
  // Number of the operation since the job began; the same on every rank, rising by one. A rank that
  // has executed number k has executed all below k.
  uint64_t number = 0;
  std::vector<Request> requests;  // more than one: allreduces fused into one buffer, in this order
  rm_status error = RM_OK;        // not RM_OK: every rank fails these operations with `message`
  std::string message;
  bool armed = false;  // step end: all members were armed, this boundary is the planned one

  Kind kind() const { return requests.front().kind; }
};

void Write(ByteWriter* out, const Response& response);
Response ReadResponse(ByteReader* in);

// A response that this rank has executed, with the result, kept until every member is known to have
// it (mode B of rule 14): until then a survivor may need to hand it to another one.
struct Retained {
  Response response;
  std::shared_ptr<Buffer> data;  // the raw result, before postscale; null if there is none
  uint64_t bytes = 0;
  std::vector<size_t> rows_by_rank;  // allgather
};

}  // namespace ringmaster::engine
