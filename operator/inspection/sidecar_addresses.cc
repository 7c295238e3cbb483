#include "operator/inspection/sidecar_addresses.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/fields/fields.h"
#include "operator/api/labels.h"

namespace ringmaster::inspection {
namespace {

using Json = nlohmann::json;

}  // namespace

std::vector<SidecarAddress> SidecarsOf(const std::vector<Json>& pods) {
  std::vector<SidecarAddress> sidecars;
  for (const Json& pod : pods) {
    std::string address =
        fields::Text(fields::At(pod, "/metadata/annotations"), api::kHttpAnnotation);
    const bool runs = fields::TextAt(pod, "/status/phase") == "Running";
    if (runs && !address.empty())
      sidecars.push_back({fields::TextAt(pod, "/metadata/name"), std::move(address)});
  }
  return sidecars;
}

std::vector<SidecarAddress> SidecarsAtHome(const std::vector<Json>& pods) {
  std::map<std::string, std::string> own;
  for (const Json& pod : pods)
    own[fields::TextAt(pod, "/metadata/name")] = fields::TextAt(pod, "/status/podIP");
  std::vector<SidecarAddress> sidecars = SidecarsOf(pods);
  std::erase_if(sidecars, [&](const SidecarAddress& one) {
    const std::string& ip = own[one.pod];
    const bool is_v6 = ip.find(':') != std::string::npos;
    return ip.empty() || !one.address.starts_with(is_v6 ? "[" + ip + "]:" : ip + ":");
  });
  return sidecars;
}

void InParallel(std::size_t count, const std::function<void(std::size_t)>& act,
                std::size_t at_once) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(at_once, count); ++i) {
    threads.emplace_back([&] {
      for (std::size_t one = next++; one < count; one = next++) act(one);
    });
  }
}

}  // namespace ringmaster::inspection
