// Sends or receives one whole frame, and waits until that is done, the view is dead, or the
// deadline has passed, which ends the view with RM_ERR_TIMEOUT.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/transport/connection.h"
#include "collectives/transport/liveness_monitor.h"

namespace ringmaster::transport {

// `op`: number of the operation in progress.
Status SendFrame(LivenessMonitor* liveness, FrameSender* frame, size_t bytes, uint64_t op,
                 Clock::time_point deadline);
Status ReceiveFrame(LivenessMonitor* liveness, FrameReceiver* frame, void* into, size_t bytes,
                    uint64_t op, Clock::time_point deadline);

}  // namespace ringmaster::transport
