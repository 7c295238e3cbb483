#include "collectives/link/frame.h"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace ringmaster::link {

std::string EncodeFrame(const nlohmann::json& frame) {
  // Names come from users and may be no UTF-8: replaced, never thrown about.
  const std::string text = frame.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto size = static_cast<uint32_t>(text.size());
  std::string bytes;
  bytes.reserve(4 + text.size());
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(size >> shift));
  return bytes + text;
}

FrameResult NextFrame(std::string* buffer, std::string* text) {
  if (buffer->size() < 4) return FrameResult::kIncomplete;
  uint32_t size = 0;
  for (int i = 0; i < 4; ++i) size |= uint32_t{static_cast<uint8_t>((*buffer)[i])} << (8 * i);
  if (size > kMaxFrame) return FrameResult::kTooLong;
  if (buffer->size() - 4 < size) return FrameResult::kIncomplete;
  *text = buffer->substr(4, size);
  buffer->erase(0, 4 + size);
  return FrameResult::kFrame;
}

}  // namespace ringmaster::link
