// The clock of a run: it never goes back.
#pragma once

#include <chrono>

namespace ringmaster::cli {

using TimePoint = std::chrono::steady_clock::time_point;

}  // namespace ringmaster::cli
