#include "common/worker_link/frame.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace ringmaster::worker_link {
namespace {

using nlohmann::json;

constexpr size_t kHeaderBytes = 4;

uint32_t ReadLength(const char* at) {
  uint32_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(at[i]);
  return length;
}

const json* Find(const json& frame, const char* name) {
  if (!frame.is_object()) return nullptr;
  auto it = frame.find(name);
  return it == frame.end() ? nullptr : &*it;
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
    buffer_.erase(0, read_);  // only when waiting, so that many small frames cost one move
    read_ = 0;
    return Result::kNeedMore;
  }
  *frame = json::parse(rest.substr(kHeaderBytes, length), nullptr, /*allow_exceptions=*/false);
  read_ += kHeaderBytes + length;
  const json* type = Find(*frame, "t");
  if (type == nullptr || !type->is_string()) {
    error_ = "frame is not a JSON object with a string 't'";
    return Result::kError;
  }
  return Result::kFrame;
}

int64_t IntField(const json& frame, const char* name, int64_t fallback) {
  const json* value = Find(frame, name);
  if (value == nullptr || !value->is_number()) return fallback;
  if (value->is_number_integer()) return value->get<int64_t>();
  double number = value->get<double>();
  return std::abs(number) < 9e15 ? static_cast<int64_t>(number) : fallback;
}

uint64_t UnsignedField(const json& frame, const char* name) {
  return static_cast<uint64_t>(std::max<int64_t>(IntField(frame, name), 0));
}

double NumberField(const json& frame, const char* name, double fallback) {
  const json* value = Find(frame, name);
  return value != nullptr && value->is_number() ? value->get<double>() : fallback;
}

bool BoolField(const json& frame, const char* name, bool fallback) {
  const json* value = Find(frame, name);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : fallback;
}

std::string StringField(const json& frame, const char* name) {
  const json* value = Find(frame, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

}  // namespace ringmaster::worker_link
