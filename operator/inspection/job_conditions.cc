#include "operator/inspection/job_conditions.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::inspection {

using Json = nlohmann::json;

const Json* TrueCondition(const Json& object, const std::string& type) {
  static const Json::json_pointer kConditions("/status/conditions");
  if (!object.contains(kConditions)) return nullptr;
  for (const Json& condition : object[kConditions]) {
    if (fields::TextAt(condition, "/type") == type &&
        fields::TextAt(condition, "/status") == "True")
      return &condition;
  }
  return nullptr;
}

std::optional<int> IndexInName(std::string_view pod, const std::string& job) {
  const std::string front = job + "-worker-";
  if (!pod.starts_with(front)) return std::nullopt;
  int index = 0;
  const char* end = pod.data() + pod.size();
  const auto read = std::from_chars(pod.data() + front.size(), end, index);
  return read.ec == std::errc() && read.ptr == end ? std::optional(index) : std::nullopt;
}

}  // namespace ringmaster::inspection
