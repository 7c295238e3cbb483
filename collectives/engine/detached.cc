#include "collectives/engine/detached.h"

#include <cstring>
#include <utility>

#include "collectives/element/element.h"

namespace ringmaster::engine {

void CompleteAlone(Operation* operation) {
  const Request& request = operation->request;
  if (request.kind == Kind::kAllreduce) {
    element::CopyScaled(operation->in, operation->out, request.count, request.dtype,
                        request.prescale * request.postscale);
  } else if (request.kind == Kind::kAllgather) {
    const uint64_t bytes = operation->rows * request.bytes();
    auto data = Buffer::Make(bytes);
    if (data == nullptr) {
      return operation->Complete({RM_ERR_UNAVAILABLE, "no memory for an allgather"});
    }
    if (bytes > 0) std::memcpy(data->data(), operation->in, bytes);
    operation->gathered = std::move(data);
    operation->rows_by_rank = {operation->rows};
  }
  operation->Complete({});
}

}  // namespace ringmaster::engine
