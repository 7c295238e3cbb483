// Every rank gives a message of its own length and gets those of all.
#pragma once

#include <span>
#include <vector>

#include "ringmaster/communicator.h"

namespace ringmaster::engine {

Status ExchangeMessages(Communicator* communicator, std::span<const std::byte> mine,
                        std::vector<std::vector<std::byte>>* by_rank);

}  // namespace ringmaster::engine
