// How much is read of a sidecar's answer.
#pragma once

#include <cstddef>

namespace ringmaster::inspection {

// A tenant's pod may answer anything: no more workers are read than slotsPerWorker allows.
inline constexpr std::size_t kMostWorkers = 1024;

}  // namespace ringmaster::inspection
