// Each rank gives a message of any length, and gets the messages of all ranks, by rank. A
// collective (two allgathers); its errors are the communicator's.
#pragma once

#include <span>
#include <vector>

#include "ringmaster/communicator.h"

namespace ringmaster::engine {

Status ExchangeMessages(Communicator* communicator, std::span<const std::byte> mine,
                        std::vector<std::vector<std::byte>>* by_rank);

}  // namespace ringmaster::engine
