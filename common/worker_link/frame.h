// Frames of the worker link (docs/contracts.md, section 2): a 4-byte little-endian length and a
// JSON object.
//
// Pure: no sockets. The launcher (plain poll) and the sidecar (Asio) both encode and decode with
// it. Nothing here throws, whatever a peer sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ringmaster::worker_link {

inline constexpr size_t kMaxFrameBytes = 16u << 20;
inline constexpr int kLinkVersion = 1;

// Bytes that are not UTF-8 are replaced, so a frame can always be encoded.
std::string EncodeFrame(const nlohmann::json& frame);

// Cuts a byte stream into frames.
class FrameReader {
 public:
  enum class Result { kFrame, kNeedMore, kError };

  void Feed(std::string_view bytes) { buffer_.append(bytes); }

  // kError is final: nothing more can be read from the stream, and error() says why.
  [[nodiscard]] Result Next(nlohmann::json* frame);
  const std::string& error() const { return error_; }

 private:
  std::string buffer_;
  std::string error_;
  size_t read_ = 0;  // bytes of buffer_ that are already handed out
};

}  // namespace ringmaster::worker_link
