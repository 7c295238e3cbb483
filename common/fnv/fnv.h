// The 64-bit FNV-1a hash (draft-eastlake-fnv): the same on every machine and in every version. It
// tells apart what differs by chance; it doesn't withstand somebody who wants two things to be
// alike.
//
// Pure. Header only.
#pragma once

#include <cstdint>
#include <string_view>

namespace ringmaster::fnv {

class Hash {
 public:
  constexpr Hash& Byte(unsigned char byte) {
    value_ = (value_ ^ byte) * 0x100000001B3U;
    return *this;
  }
  constexpr Hash& Bytes(std::string_view bytes) {
    for (const char byte : bytes) Byte(static_cast<unsigned char>(byte));
    return *this;
  }
  // Its eight bytes, the lowest first.
  constexpr Hash& Number(std::uint64_t number) {
    for (int i = 0; i < 8; ++i, number >>= 8) Byte(static_cast<unsigned char>(number & 0xFF));
    return *this;
  }
  // With its length, so that of several texts in a row it is known where each ends.
  constexpr Hash& Text(std::string_view text) { return Bytes(text).Number(text.size()); }

  constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325U;
};

}  // namespace ringmaster::fnv
