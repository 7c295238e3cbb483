#pragma once

#include <chrono>

namespace ringmaster::scheduler {

using Moment = std::chrono::system_clock::time_point;

}  // namespace ringmaster::scheduler
