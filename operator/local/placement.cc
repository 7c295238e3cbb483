#include "operator/local/placement.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace ringmaster::local {
namespace {

using kube::Json;
using Amounts = std::map<std::string, double>;

const Json kNone = Json::object();
const Json kEmpty = Json::array();

Amounts Requests(const Json& pod) {
  Amounts total, init;
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& c : pod["spec"].value(list, kEmpty)) {
      bool counts =
          list == std::string_view("containers") || c.value("restartPolicy", "") == "Always";
      const Json requests = c.value("resources", kNone).value("requests", kNone);
      for (const auto& [name, amount] : requests.items()) {
        double n = ParseQuantity(amount);
        if (counts)
          total[name] += n;
        else
          init[name] = std::max(init[name], n);
      }
    }
  }
  for (const auto& [name, n] : init) total[name] = std::max(total[name], n);
  total["pods"] = 1;
  return total;
}

bool Tolerates(const Json& pod, const Json& taint) {
  for (const Json& t : pod["spec"].value("tolerations", kEmpty)) {
    std::string key = t.value("key", ""), effect = t.value("effect", "");
    if (!key.empty() && key != taint.value("key", "")) continue;
    if (!effect.empty() && effect != taint.value("effect", "")) continue;
    if (t.value("operator", "Equal") == "Exists" ||
        t.value("value", "") == taint.value("value", "")) {
      return true;
    }
  }
  return false;
}

// Empty: fits but for resources.
std::string Refusal(const Json& pod, const Json& node) {
  const Json spec = node.value("spec", kNone);
  if (spec.value("unschedulable", false)) return "node(s) were unschedulable";
  for (const Json& taint : spec.value("taints", kEmpty)) {
    if (taint.value("effect", "") != "PreferNoSchedule" && !Tolerates(pod, taint)) {
      return "node(s) had untolerated taint {" + taint.value("key", "") + ": " +
             taint.value("value", "") + "}";
    }
  }
  const Json labels = node["metadata"].value("labels", kNone);
  const Json selector = pod["spec"].value("nodeSelector", kNone);
  for (const auto& [key, value] : selector.items()) {
    if (!labels.contains(key) || labels[key] != value) {
      return "node(s) didn't match Pod's node affinity/selector";
    }
  }
  return "";
}

bool Finished(const Json& pod) {
  std::string phase = pod.value("status", kNone).value("phase", "");
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

double ParseQuantity(const Json& quantity) {
  if (quantity.is_number()) return quantity.get<double>();
  if (!quantity.is_string()) return 0;
  std::string text = quantity.get<std::string>();
  char* end = nullptr;
  double n = std::strtod(text.c_str(), &end);
  static const std::map<std::string, double> kUnits = {
      {"", 1},        {"m", 1e-3},    {"k", 1e3},     {"M", 1e6},     {"G", 1e9},  {"T", 1e12},
      {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"n", 1e-9}, {"u", 1e-6}};
  auto unit = kUnits.find(end);
  return unit == kUnits.end() ? 0 : n * unit->second;
}

tl::expected<std::string, std::string> Place(const Json& pod, const std::vector<Json>& nodes,
                                             const std::vector<Json>& pods) {
  Amounts wanted = Requests(pod);
  std::map<std::string, int> refusals;
  std::string best;
  double best_cpu = -1;
  for (const Json& node : nodes) {
    std::string name = node["metadata"]["name"];
    if (std::string why = Refusal(pod, node); !why.empty()) {
      ++refusals[why];
      continue;
    }
    Amounts free;
    const Json allocatable = node["status"].value("allocatable", kNone);
    for (const auto& [resource, amount] : allocatable.items()) {
      free[resource] = ParseQuantity(amount);
    }
    for (const Json& other : pods) {
      if (other["spec"].value("nodeName", "") != name || Finished(other)) continue;
      for (const auto& [resource, n] : Requests(other)) free[resource] -= n;
    }
    bool fits = true;
    for (const auto& [resource, n] : wanted) {
      if (n <= 0 || free[resource] >= n - 1e-9) continue;
      ++refusals["Insufficient " + resource];
      fits = false;
    }
    if (fits && free["cpu"] > best_cpu) {
      best = name;
      best_cpu = free["cpu"];
    }
  }
  if (!best.empty()) return best;
  std::string list;
  for (const auto& [why, count] : refusals) {
    list += (list.empty() ? " " : ", ") + std::to_string(count) + " " + why;
  }
  return tl::unexpected("0/" + std::to_string(nodes.size()) +
                        " nodes are available:" + (list.empty() ? " no nodes" : list) + ".");
}

}  // namespace ringmaster::local
