// A group of allreduces that was prepared once, and becomes one operation each time it is asked
// for.
//
// Thread rule: constant after ReadPrepared().
#pragma once

#include <memory>

#include "collectives/elastic/request_reader.h"
#include "collectives/engine/operation.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

struct PreparedGroup {
  engine::Request request;  // of all its tensors
  std::shared_ptr<const engine::Pieces> pieces;
  int device = -1;  // of the GPU on which they lie (if Request::on_gpu)

  std::shared_ptr<engine::Operation> Ask(const void* ready_event) const {
    return std::make_shared<engine::Operation>(request, pieces,
                                               engine::Operation::OnDevice{device, ready_event});
  }
};

// `n` requests in the layout that the caller was compiled with (ReadRequests). Their names are not
// read.
Status ReadPrepared(const char* name, const rm_request* requests, size_t n, PreparedGroup* group);

}  // namespace ringmaster::elastic
