// Frames of the worker link: a 4-byte little-endian length and a JSON object.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ringmaster::link {

constexpr size_t kMaxFrame = size_t{16} << 20;

std::string EncodeFrame(const nlohmann::json& frame);

enum class FrameResult { kFrame, kIncomplete, kTooLong };
// Takes the first whole frame off the front of `buffer`.
FrameResult NextFrame(std::string* buffer, std::string* text);

}  // namespace ringmaster::link
