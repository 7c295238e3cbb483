// The communicator of a view of one rank: no peers, no memory but the caller's.
#pragma once

#include <memory>

#include "ringmaster/communicator.h"

namespace ringmaster::engine {

std::unique_ptr<Communicator> MakeSoloCommunicator(uint64_t epoch);

}  // namespace ringmaster::engine
