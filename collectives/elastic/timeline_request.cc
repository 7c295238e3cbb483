#include "collectives/elastic/timeline_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ringmaster::elastic {
namespace {

constexpr int64_t kMostSeconds = 60;
constexpr int64_t kMostBytes = 4 << 20;

}  // namespace

TimelineRequest ReadTimelineRequest(const nlohmann::json& frame) {
  TimelineRequest request;
  request.number = frame.value("request", uint64_t{0});
  request.recent.process = frame.value("process", 0);
  request.recent.span = std::chrono::seconds(
      std::clamp(frame.value("seconds", int64_t{10}), int64_t{0}, kMostSeconds));
  request.recent.tensors = frame.value("tensors", true);
  request.recent.most_bytes =
      static_cast<size_t>(std::clamp(frame.value("bytes", kMostBytes), int64_t{0}, kMostBytes));
  return request;
}

}  // namespace ringmaster::elastic
