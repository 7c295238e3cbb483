// A copy for memory that is hardly ever read again.
#pragma once

#include <cstddef>

namespace ringmaster::element {

// As memcpy, but what is written goes past the caches where the processor can do that: it isn't
// read from memory before it is written over, and what else is in the caches stays there. When it
// returns the bytes may be handed to another thread as after memcpy.
void StreamingCopy(void* to, const void* from, size_t bytes);

}  // namespace ringmaster::element
