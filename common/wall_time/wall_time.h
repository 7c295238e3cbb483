// Times of the wall clock that others have written: in JSON, a certificate, a credential plugin's
// answer.
#pragma once

#include <chrono>
#include <ctime>

namespace ringmaster::wall_time {

// system_clock counts nanoseconds in 64 bits, which reach from 1677 to 2262. Others may write the
// year 1 (Go's zero time) or 9999 ("for ever", in certificates). A time outside of about 1824 to
// 2116 becomes the nearest of these two, so that two times can be subtracted without an overflow.
std::chrono::system_clock::time_point FromUnixSeconds(std::time_t seconds);

}  // namespace ringmaster::wall_time
