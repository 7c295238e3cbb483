#include "operator/local/server/request_path.h"

#include <vector>

#include "operator/kube/resources.h"

namespace ringmaster::local {
namespace {

std::vector<std::string> Segments(const std::string& path) {
  std::vector<std::string> parts;
  size_t begin = 1;
  while (begin < path.size()) {
    size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Fields that have another name in core/v1.
constexpr std::pair<const char*, const char*> kEventFields[] = {
    {"regarding", "involvedObject"},
    {"note", "message"},
    {"deprecatedCount", "count"},
    {"deprecatedFirstTimestamp", "firstTimestamp"},
    {"deprecatedLastTimestamp", "lastTimestamp"},
    {"deprecatedSource", "source"},
    {"reportingController", "reportingComponent"},
};

}  // namespace

std::optional<ApiRequest> ParsePath(const std::string& path) {
  std::vector<std::string> s = Segments(path);
  size_t at = 0;
  std::string group, version;
  if (s.size() >= 3 && s[0] == "api") {
    version = s[1];
    at = 2;
  } else if (s.size() >= 4 && s[0] == "apis") {
    group = s[1];
    version = s[2];
    at = 3;
  } else {
    return std::nullopt;
  }
  ApiRequest request;
  // namespaces/NS/pods... , but namespaces/NS and namespaces/NS/status are the Namespace itself.
  if (s[at] == "namespaces" && s.size() >= at + 3 && s[at + 2] != "status" &&
      s[at + 2] != "finalize") {
    request.ns = s[at + 1];
    at += 2;
  }
  request.resource = kube::FindResource(group, version, s[at]);
  if (group.empty() && version == "v1" && s[at] == "events") {
    request.resource = &kube::Events();
    request.core_event = true;
  }
  if (request.resource == nullptr || s.size() > at + 3) return std::nullopt;
  if (s.size() > at + 1) request.name = s[at + 1];
  if (s.size() > at + 2) request.subresource = s[at + 2];
  if (!request.name.empty() && request.resource->namespaced && request.ns.empty())
    return std::nullopt;
  return request;
}

Json ToCoreEvent(const Json& event) {
  Json core = event;
  core["apiVersion"] = "v1";
  for (auto [name, core_name] : kEventFields) {
    if (!core.contains(name)) continue;
    core[core_name] = std::move(core[name]);
    core.erase(name);
  }
  return core;
}

Json FromCoreEvent(const Json& core) {
  Json event = core;
  event["apiVersion"] = "events.k8s.io/v1";
  for (auto [name, core_name] : kEventFields) {
    if (!event.contains(core_name)) continue;
    event[name] = std::move(event[core_name]);
    event.erase(core_name);
  }
  return event;
}

}  // namespace ringmaster::local
