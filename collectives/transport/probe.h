// Asks whether a peer's process lives.
#pragma once

#include <chrono>
#include <cstdint>

#include "collectives/transport/ring_key.h"
#include "ringmaster/endpoint.h"

namespace ringmaster::transport {

// Asks the process behind this address whether it lives, and waits at most `limit`. False if there
// was no process, it did not answer, or it could not prove the ring key. True also where this
// process has no descriptor left to ask with, because then it knows of no death.
//
// *given_up becomes the newest view that the process says is over for it; 0 if it says none.
bool ProbeAlive(const PeerEndpoint& peer, const RingCredentials& credentials,
                std::chrono::milliseconds limit, uint64_t* given_up = nullptr);

}  // namespace ringmaster::transport
