// Writes and reads the messages that the ranks of a job exchange. Numbers have the machine's byte
// order (little-endian); strings have their length first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ringmaster/types.h"

namespace ringmaster::engine {

class ByteWriter {
 public:
  template <typename T>
  void Put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  void PutString(std::string_view text) {
    Put<uint32_t>(static_cast<uint32_t>(text.size()));
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), from, from + text.size());
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what ByteWriter has written. A read beyond the end gives zero or an empty string, and from
// then on ok() is false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T Get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!Take(sizeof(T))) return value;
    std::memcpy(&value, bytes_.data() + at_ - sizeof(T), sizeof(T));
    return value;
  }
  std::string GetString() {
    const auto size = Get<uint32_t>();
    if (!Take(size)) return {};
    return std::string(reinterpret_cast<const char*>(bytes_.data() + at_ - size), size);
  }
  bool ok() const { return ok_; }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  bool Take(size_t size) {
    if (!ok_ || bytes_.size() - at_ < size) return ok_ = false;
    at_ += size;
    return true;
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

// A code that this version doesn't know means a defect in the rank that wrote it.
inline rm_status ReadStatusCode(ByteReader* in) {
  const auto code = in->Get<uint32_t>();
  return code <= RM_ERR_FORKED ? static_cast<rm_status>(code) : RM_ERR_INTERNAL;
}

}  // namespace ringmaster::engine
