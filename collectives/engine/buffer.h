// Memory for fused and retained results. It is not zeroed, is aligned to a cache line, and is used
// again where possible.
//
// Thread rule: a Buffer has one writer; the pool belongs to the engine's thread, but any thread may
// release a buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ringmaster/status.h"

namespace ringmaster::engine {

class Buffer {
 public:
  // Null when there is no memory.
  static std::shared_ptr<Buffer> Make(size_t bytes) {
    const size_t capacity = (bytes + 63) / 64 * 64 + 64;
    void* data = std::aligned_alloc(64, capacity);
    if (data == nullptr) return nullptr;
    return std::shared_ptr<Buffer>(new Buffer(static_cast<std::byte*>(data), capacity));
  }
  // Takes memory of another kind, such as a GPU's; `release` is called to give it back.
  using Release = std::function<void(std::byte* data, size_t capacity)>;
  static std::shared_ptr<Buffer> Adopt(std::byte* data, size_t capacity, Release release) {
    return std::shared_ptr<Buffer>(new Buffer(data, capacity, std::move(release)));
  }
  ~Buffer() {
    if (release_) {
      release_(data_, capacity_);
    } else {
      std::free(data_);
    }
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t capacity() const { return capacity_; }
  bool adopted() const { return release_ != nullptr; }

 private:
  Buffer(std::byte* data, size_t capacity, Release release = {})
      : data_(data), capacity_(capacity), release_(std::move(release)) {}
  std::byte* const data_;
  const size_t capacity_;
  const Release release_;  // empty: std::free
};

inline Status NoMemory(uint64_t bytes) {
  return {RM_ERR_OUT_OF_MEMORY, "no memory for a buffer of " + std::to_string(bytes) + " bytes"};
}

// Keeps a few buffers, so that steady training touches the same pages in every step.
class BufferPool {
 public:
  // A buffer of at least this size that nobody else has. Null when there is no memory.
  std::shared_ptr<Buffer> Get(size_t bytes) {
    for (auto& kept : kept_) {
      const bool wasteful = kept->capacity() > 4 * bytes + (size_t{1} << 20);
      if (kept.use_count() == 1 && kept->capacity() >= bytes && !wasteful) return kept;
    }
    auto made = Buffer::Make(bytes);
    if (made == nullptr) return nullptr;
    if (kept_.size() >= kMost) {
      for (auto& kept : kept_) {
        if (kept.use_count() == 1) {
          kept = made;
          return made;
        }
      }
      return made;
    }
    kept_.push_back(made);
    return made;
  }

 private:
  static constexpr size_t kMost = 4;
  std::vector<std::shared_ptr<Buffer>> kept_;
};

}  // namespace ringmaster::engine
