// What all ranks agreed to do next, in one order: the unit that is executed, retained and handed
// over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/buffer.h"
#include "collectives/engine/request.h"

namespace ringmaster::engine {

struct Response {
  // Number of the operation since the job began; the same on every rank, rising by one. A rank that
  // has executed number k has executed all below k.
  uint64_t number = 0;
  // More than one: allreduces that are fused, or a group.
  std::vector<Request> requests;
  // How many requests, in their order, move as one buffer each; all of them together.
  std::vector<uint32_t> batches;
  rm_status error = RM_OK;  // not RM_OK: every rank fails these operations with `message`
  std::string message;
  std::vector<int> ranks;  // in this view of those that take part; empty: all
  // By batch: place among those that take part of the worker that sends; -1: there is none.
  std::vector<int> roots;
  bool armed = false;   // step end: all members were armed, this boundary is the planned one
  bool direct = false;  // some of it was reduced where the callers have it (CpuBackend::RunsDirect)

  // Of one request, or all of them where they are fused.
  static Response Of(std::vector<Request> requests) {
    Response response;
    response.batches = {static_cast<uint32_t>(requests.size())};
    response.requests = std::move(requests);
    return response;
  }
  int32_t process_set() const { return requests.front().process_set; }
  Kind kind() const { return requests.front().kind; }
  // Whether no rank can give another rank its result, because each rank has its own. Such an
  // operation counts as executed only when all ranks have executed it.
  bool has_own_results() const {
    return error == RM_OK &&
           (direct || std::any_of(requests.begin(), requests.end(),
                                  [](const Request& r) { return HasOwnResults(r.kind); }));
  }
};

void Write(ByteWriter* out, const Response& response);
Response ReadResponse(ByteReader* in);

// The result of one batch.
struct Part {
  std::shared_ptr<Buffer> data;  // the raw result, before postscale; null if there is none
  uint64_t bytes = 0;
  std::vector<size_t> rows_by_rank;  // allgather, reducescatter; alltoall: received from each
  size_t rows = 0;                   // of `data`, of the same
  bool delivered = false;            // the raw result lies in the caller's `out`, not in `data`
  // A copy of the input, where `out` is the input too and is written over.
  std::shared_ptr<Buffer> input;
};

// A response that this rank has executed, with the result, kept until every member is known to have
// it (mode B of rule 14): until then a survivor may need to hand it to another one.
struct Retained {
  Response response;
  std::vector<Part> parts;  // of an error: none
  // False: the operation is of a process set to which this rank does not belong, so it has no
  // result here.
  bool holds = true;
};

}  // namespace ringmaster::engine
