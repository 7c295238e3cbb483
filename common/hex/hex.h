// Bytes as hexadecimal text, for places where a value may hold neither spaces nor line ends.
//
// Pure. Header-only, so that the collectives library needs nothing more for it.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::hex {

// The text is in lower case.
inline std::string Encode(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// nullopt: the text is not hexadecimal.
inline std::optional<std::string> Decode(std::string_view text) {
  std::string bytes;
  if (text.size() % 2 != 0) return std::nullopt;
  for (size_t i = 0; i < text.size(); i += 2) {
    unsigned byte = 0;
    const auto [stop, error] = std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    if (error != std::errc() || stop != text.data() + i + 2) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace ringmaster::hex
