#include "operator/local/server/discovery.h"

#include <map>
#include <set>

#include "operator/kube/resources.h"
#include "operator/local/store/admission.h"

namespace ringmaster::local {
namespace {

Json Group(const std::string& name, const std::string& version) {
  Json v = {{"groupVersion", name + "/" + version}, {"version", version}};
  return {{"name", name}, {"versions", Json::array({v})}, {"preferredVersion", v}};
}

Json Entry(const std::string& name, const std::string& kind, bool namespaced, Json verbs) {
  return {{"name", name},
          {"singularName", ""},
          {"namespaced", namespaced},
          {"kind", kind},
          {"verbs", verbs}};
}

Json ResourceList(const std::string& group, const std::string& version, const CrdSchema& crd) {
  static const std::map<std::string, std::vector<std::string>> kShort = {
      {"pods", {"po"}},
      {"nodes", {"no"}},
      {"namespaces", {"ns"}},
      {"configmaps", {"cm"}},
      {"services", {"svc"}},
      {"events", {"ev"}},
      {"poddisruptionbudgets", {"pdb"}}};
  const Json all = {"create", "delete", "get", "list", "patch", "update", "watch"};
  const Json some = {"get", "patch", "update"};
  Json resources = Json::array();
  for (const Resource& r : kube::AllResources()) {
    bool core_event = group.empty() && r == kube::Events();
    if (!core_event && (r.group != group || r.version != version)) continue;
    Json entry = Entry(r.plural, r.kind, r.namespaced, all);
    if (auto names = kShort.find(r.plural); names != kShort.end())
      entry["shortNames"] = names->second;
    if (r == kube::HorovodJobs()) {
      entry["singularName"] = "horovodjob";
      entry["shortNames"] = crd.short_names();
      entry["categories"] = crd.categories();
    } else if (r == kube::Pods() || r == kube::Services()) {
      entry["categories"] = {"all"};
    }
    resources.push_back(std::move(entry));
    if (TraitsOf(r).status)
      resources.push_back(Entry(r.plural + "/status", r.kind, r.namespaced, some));
    if (r == kube::Pods()) {
      resources.push_back(Entry("pods/log", "Pod", true, {"get"}));
    }
    if (r == kube::HorovodJobs()) {
      Json scale = Entry("horovodjobs/scale", "Scale", true, some);
      scale["group"] = "autoscaling";
      scale["version"] = "v1";
      resources.push_back(std::move(scale));
    }
  }
  return {{"kind", "APIResourceList"},
          {"apiVersion", "v1"},
          {"groupVersion", group.empty() ? version : group + "/" + version},
          {"resources", std::move(resources)}};
}

}  // namespace

std::optional<Json> Discover(const std::string& path, const CrdSchema& crd) {
  std::string at = path;
  while (at.size() > 1 && at.back() == '/') at.pop_back();
  if (at == "/version") {
    return Json{{"major", "1"},
                {"minor", "37"},
                {"gitVersion", "v1.37.0-ringmaster-local"},
                {"platform", "linux/amd64"}};
  }
  if (at == "/api") {
    return Json{{"kind", "APIVersions"},
                {"versions", {"v1"}},
                {"serverAddressByClientCIDRs", Json::array()}};
  }
  if (at == "/api/v1") return ResourceList("", "v1", crd);
  std::set<std::pair<std::string, std::string>> groups;
  for (const Resource& r : kube::AllResources()) {
    if (!r.group.empty()) groups.insert({r.group, r.version});
  }
  if (at == "/apis") {
    Json list = Json::array();
    for (const auto& [group, version] : groups) list.push_back(Group(group, version));
    return Json{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(list)}};
  }
  for (const auto& [group, version] : groups) {
    if (at == "/apis/" + group) {
      Json json = Group(group, version);
      json["kind"] = "APIGroup";
      json["apiVersion"] = "v1";
      return json;
    }
    if (at == "/apis/" + group + "/" + version) return ResourceList(group, version, crd);
  }
  return std::nullopt;
}

}  // namespace ringmaster::local
