// Times of the wall clock that others have written: in JSON, a certificate, a credential plugin's
// answer.
#pragma once

#include <chrono>
#include <ctime>

namespace ringmaster::wall_time {

// system_clock counts nanoseconds in 64 bits, which end in 1677 and 2262; what others write may be
// the year 1 (Go's zero time) or 9999 ("for ever", in certificates). Times outside of the years
// 1824 to 2116 become the nearest of these, so that two of them can be subtracted, too.
std::chrono::system_clock::time_point FromUnixSeconds(std::time_t seconds);

}  // namespace ringmaster::wall_time
