#include "common/job/gpu_health.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/plain_text/plain_text.h"

namespace ringmaster::job {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestLine = 200;
constexpr std::size_t kMostWarnings = 8;
constexpr int kGreatestXid = 9'999, kMostSlots = 1'024;

std::string PlainLine(std::string text) {
  return plain_text::Cut(plain_text::WithoutControls(std::move(text)), kLongestLine);
}

std::map<int, std::uint64_t> Xids(const Json& object) {
  std::map<int, std::uint64_t> xids;
  for (const auto& item : object.items()) {
    const std::string& name = item.key();
    const std::uint64_t count = fields::Unsigned(object, name.c_str());
    int number = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data(), end, number);
    const bool known = read.ec == std::errc() && read.ptr == end && number > 0;
    if (!known || number > kGreatestXid || count == 0) continue;
    if (xids.size() == kMostXids) break;
    xids[number] = count;
  }
  return xids;
}

}  // namespace

Json ToJson(const GpuHealth& health) {
  Json xids = Json::object();
  for (const auto& [number, count] : health.xids) xids[std::to_string(number)] = count;
  Json json = {{"gpu", health.gpu},
               {"failing", health.failing},
               {"warnings", health.warnings},
               {"throttled", health.throttled},
               {"xids", std::move(xids)}};
  if (health.slot >= 0) json["slot"] = health.slot;
  if (health.celsius) json["celsius"] = *health.celsius;
  return json;
}

GpuHealth GpuHealthFromJson(const Json& json) {
  GpuHealth health{.gpu = PlainLine(fields::Text(json, "gpu")),
                   .failing = PlainLine(fields::Text(json, "failing")),
                   .throttled = fields::Flag(json, "throttled"),
                   .xids = Xids(fields::Object(json, "xids"))};
  const std::int64_t slot = fields::Integer(json, "slot", -1);
  if (slot >= 0 && slot < kMostSlots) health.slot = static_cast<int>(slot);
  health.warnings = fields::Texts(json, "warnings");
  if (health.warnings.size() > kMostWarnings) health.warnings.resize(kMostWarnings);
  for (std::string& warning : health.warnings) warning = PlainLine(std::move(warning));
  if (fields::Member(json, "celsius").is_number_integer()) {
    health.celsius =
        static_cast<int>(std::clamp<std::int64_t>(fields::Integer(json, "celsius"), -300, 10'000));
  }
  return health;
}

Json ToJson(const std::vector<GpuHealth>& gpus) {
  Json list = Json::array();
  for (const GpuHealth& health : gpus) {
    if (list.size() == kMostGpus) break;
    list.push_back(ToJson(health));
  }
  return list;
}

std::vector<GpuHealth> GpusFromJson(const Json& json) {
  std::vector<GpuHealth> gpus;
  if (!json.is_array()) return gpus;
  for (const Json& entry : json) {
    if (gpus.size() == kMostGpus) break;
    if (entry.is_object()) gpus.push_back(GpuHealthFromJson(entry));
  }
  return gpus;
}

std::string NameOf(const GpuHealth& health) {
  std::string name = "GPU " + (health.gpu.empty() ? "(of an unknown bus id)" : health.gpu);
  if (health.slot >= 0) name += " of worker " + std::to_string(health.slot);
  return name;
}

std::string Describe(const GpuHealth& health) {
  if (!health.failing.empty()) return NameOf(health) + " fails: " + health.failing;
  std::string warnings;
  for (const std::string& warning : health.warnings)
    warnings += (warnings.empty() ? "" : "; ") + warning;
  return warnings.empty() ? "" : NameOf(health) + ": " + warnings;
}

}  // namespace ringmaster::job
