#include "operator/local/server/log_tail.h"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace ringmaster::local {

std::optional<uint64_t> ParseTailLines(const std::string& text) {
  uint64_t lines = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, lines);
  if (text.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return lines;
}

// Backwards in pieces: the file may be large and the wanted lines few.
uint64_t OffsetOfLastLines(const std::filesystem::path& file, uint64_t start, uint64_t lines,
                           uint64_t end) {
  constexpr uint64_t kPiece = 64 * 1024;
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::streamoff>(stream.tellg());
  if (!stream || size < 0) return start;
  end = std::min(end, static_cast<uint64_t>(size));
  if (lines == 0) return std::max(start, end);
  std::string piece;
  for (uint64_t at = end; at > start;) {
    const uint64_t begin = at - std::min(at - start, kPiece);
    piece.resize(at - begin);
    stream.seekg(static_cast<std::streamoff>(begin));
    if (!stream.read(piece.data(), static_cast<std::streamsize>(piece.size()))) return start;
    for (uint64_t i = piece.size(); i-- > 0;) {
      // The end of the last line is no beginning of another.
      if (piece[i] != '\n' || begin + i + 1 == end) continue;
      if (--lines == 0) return begin + i + 1;
    }
    at = begin;
  }
  return start;
}

}  // namespace ringmaster::local
