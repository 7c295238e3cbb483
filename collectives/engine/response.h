// A response is what all ranks have agreed to do next. Responses have one order on all ranks; each
// is executed, retained and handed over as a unit.
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
  // The number of requests in each batch; a batch is consecutive requests that move as one buffer.
  std::vector<uint32_t> batches;
  rm_status error = RM_OK;  // not RM_OK: every rank fails these operations with `message`
  std::string message;
  std::vector<int> ranks;  // those that take part, in the view that has agreed; empty: all
  // By batch: the sender's index among the ranks that take part; -1: nobody or everybody sends.
  std::vector<int> roots;
  bool armed = false;   // of a step end: all ranks were armed, so this is the planned boundary
  bool direct = false;  // a batch was reduced in the callers' buffers (Backend::RunsAlone)

  // A response of one batch.
  static Response Of(std::vector<Request> requests) {
    Response response;
    response.batches = {static_cast<uint32_t>(requests.size())};
    response.requests = std::move(requests);
    return response;
  }
  int32_t process_set() const { return requests.front().process_set; }
  Kind kind() const { return requests.front().kind; }
  // Whether no rank can hand its result over to another rank, because each rank has its own, or has
  // it in its caller's buffer. Such an operation counts as executed only when all ranks that take
  // part have executed it and confirm that.
  bool needs_confirmation() const {
    return error == RM_OK &&
           (direct || std::any_of(requests.begin(), requests.end(),
                                  [](const Request& r) { return HasOwnResults(r.kind); }));
  }
};

void Write(ByteWriter* out, const Response& response);
Response ReadResponse(ByteReader* in);

// The result of one batch. Where it lies:
//
//                                              data        delivered   input
//   through a buffer, packed or alone          the result  false       null
//   direct, beside its input (in != out)       null        true        null
//   direct, in place (in == out)               null        true        the input
//   direct, in place, and then withdrawn:      the result  false       null
//     `out` has the input again
struct Part {
  std::shared_ptr<Buffer> data;  // the raw result, before postscale; null if there is none
  uint64_t bytes = 0;
  std::vector<size_t> rows_by_rank;  // allgather, reducescatter; alltoall: received from each rank
  size_t rows = 0;                   // rows in `data`, for the same kinds
  bool delivered = false;            // the raw result lies in the caller's `out`, not in `data`
  // A copy of the input, if in == out, so that the result overwrites it; null otherwise.
  std::shared_ptr<Buffer> input;
};

// A response that this rank has executed, with its result. It is kept until every rank is known to
// have it, because until then a survivor may need to hand it over (mode B of rule 14).
struct Retained {
  Response response;
  std::vector<Part> parts;  // by batch; none if the operation failed
  // False: the operation is of a process set to which this rank does not belong, so it has no
  // result here.
  bool holds = true;
};

}  // namespace ringmaster::engine
