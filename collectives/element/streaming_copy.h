// A copy for memory that is hardly ever read again.
#pragma once

#include <cstddef>

namespace ringmaster::element {

// Like memcpy, but what is written goes past the caches where the processor can do that: the target
// isn't read from memory before it is overwritten, and the caches keep what they have. When this
// returns, the bytes may be handed to another thread as after memcpy.
void StreamingCopy(void* to, const void* from, size_t bytes);

}  // namespace ringmaster::element
