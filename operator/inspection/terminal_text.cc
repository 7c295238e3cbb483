#include "operator/inspection/terminal_text.h"

#include <string_view>

namespace ringmaster::inspection {
namespace {

// From here on (Hangul, Chinese and Japanese scripts, pictures) characters may have double width.
constexpr unsigned kFirstWide = 0x1100;

struct Character {
  std::size_t bytes = 1;
  std::size_t columns = 1;
};

// The number of bytes of a character with this first byte; 0 if no character begins so.
std::size_t LengthBy(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

// A byte that is not part of a valid character counts as one.
Character FirstOf(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const std::size_t length = LengthBy(byte(0));
  if (length < 2 || length > text.size()) return {};
  unsigned code = byte(0) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  return {length, code < kFirstWide ? 1U : 2U};
}

}  // namespace

std::size_t Columns(const std::string& text) {
  std::size_t columns = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const Character next = FirstOf(rest);
    columns += next.columns;
    rest.remove_prefix(next.bytes);
  }
  return columns;
}

std::string CutToColumns(const std::string& text, std::size_t columns) {
  std::size_t end = 0, used = 0;
  while (end < text.size()) {
    const Character next = FirstOf(std::string_view(text).substr(end));
    if (used + next.columns > columns) break;
    used += next.columns;
    end += next.bytes;
  }
  return text.substr(0, end);
}

}  // namespace ringmaster::inspection
