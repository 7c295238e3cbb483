// A group of allreduces that was prepared once (rm_prepare), and becomes one operation each time
// it is asked for.
//
// Thread rule: constant after ReadPrepared().
#pragma once

#include <memory>

#include "collectives/engine/operation.h"

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

}  // namespace ringmaster::elastic
