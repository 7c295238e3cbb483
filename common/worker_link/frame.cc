#include "common/worker_link/frame.h"

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "common/fields/parse.h"

namespace ringmaster::worker_link {
namespace {

using nlohmann::json;

constexpr size_t kHeaderBytes = 4;

uint32_t ReadLength(const char* at) {
  uint32_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(at[i]);
  return length;
}

}  // namespace

std::string EncodeFrame(const json& frame) {
  std::string body = frame.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string bytes(kHeaderBytes, '\0');
  for (size_t i = 0; i < kHeaderBytes; ++i) bytes[i] = static_cast<char>(body.size() >> (8 * i));
  return bytes + body;
}

FrameReader::Result FrameReader::Next(json* frame) {
  if (!error_.empty()) return Result::kError;
  std::string_view rest = std::string_view(buffer_).substr(read_);
  uint32_t length = rest.size() < kHeaderBytes ? 0 : ReadLength(rest.data());
  if (length > kMaxFrameBytes) {
    error_ = "frame of " + std::to_string(length) + " bytes, at most " +
             std::to_string(kMaxFrameBytes) + " are allowed";
    return Result::kError;
  }
  if (rest.size() < kHeaderBytes || rest.size() < kHeaderBytes + length) {
    buffer_.erase(0, read_);  // only here, so that many small frames cost one move of the buffer
    read_ = 0;
    return Result::kNeedMore;
  }
  *frame = fields::ParseOrDiscard(rest.substr(kHeaderBytes, length));
  read_ += kHeaderBytes + length;
  if (!fields::Member(*frame, "t").is_string()) {
    error_ = "frame is not a JSON object with a string 't'";
    return Result::kError;
  }
  return Result::kFrame;
}

}  // namespace ringmaster::worker_link
