#include "collectives/element/streaming_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ringmaster::element {
namespace {

#ifdef __SSE2__

// A cache line: as much as the processor collects before it writes to memory.
constexpr size_t kLine = 64;

// `to` is aligned to a line.
void StreamLine(std::byte* to, const std::byte* from) {
  auto* const target = reinterpret_cast<__m128i*>(to);
  const auto* const source = reinterpret_cast<const __m128i*>(from);
  const __m128i words[] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1),
                           _mm_loadu_si128(source + 2), _mm_loadu_si128(source + 3)};
  for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, words[i]);
}

// Copies all whole lines of `to` and what is before them. Returns how many bytes that is.
size_t StreamLines(std::byte* to, const std::byte* from, size_t bytes) {
  const size_t past_line = reinterpret_cast<uintptr_t>(to) % kLine;
  size_t done = past_line == 0 ? 0 : std::min(kLine - past_line, bytes);
  std::memcpy(to, from, done);
  for (; bytes - done >= kLine; done += kLine) StreamLine(to + done, from + done);
  _mm_sfence();  // otherwise later writes, also the release of a lock, could become visible before
  return done;
}

#else

size_t StreamLines(std::byte*, const std::byte*, size_t) { return 0; }

#endif

}  // namespace

void StreamingCopy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  const size_t done = StreamLines(target, source, bytes);
  std::memcpy(target + done, source + done, bytes - done);
}

}  // namespace ringmaster::element
