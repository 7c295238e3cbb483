#include "operator/scheduler/node_rules.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace ringmaster::scheduler {
namespace {

using Json = nlohmann::json;

const Json kNone = Json::object();
const Json kEmpty = Json::array();

const Json& At(const Json& object, const char* path, const Json& fallback) {
  const Json::json_pointer pointer(path);
  if (!object.contains(pointer)) return fallback;
  const Json& found = object.at(pointer);
  return found.is_null() ? fallback : found;
}

std::string Text(const Json& object, const char* name) {
  if (!object.is_object()) return "";
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

bool Matches(const Json& toleration, const Taint& taint) {
  if (!toleration.is_object()) return false;
  const std::string key = Text(toleration, "key"), effect = Text(toleration, "effect");
  if (!key.empty() && key != taint.key) return false;
  if (!effect.empty() && effect != taint.effect) return false;
  return Text(toleration, "operator") == "Exists" || Text(toleration, "value") == taint.value;
}

bool IsBetween(const std::string& value, const Json& values, bool greater) {
  long have = 0, want = 0;
  if (values.size() != 1 || !values[0].is_string()) return false;
  const std::string& bound = values[0].get_ref<const std::string&>();
  const auto read = [](const std::string& text, long* number) {
    return std::from_chars(text.data(), text.data() + text.size(), *number).ec == std::errc();
  };
  return read(value, &have) && read(bound, &want) && (greater ? have > want : have < want);
}

// One requirement of a node selector term on labels (or on metadata.name as a label of its own).
bool Matches(const Json& requirement, const Json& labels) {
  const std::string key = requirement.value("key", ""), op = requirement.value("operator", "");
  const Json& values = At(requirement, "/values", kEmpty);
  const auto label = labels.find(key);
  const bool has = label != labels.end();
  const bool listed = has && std::find(values.begin(), values.end(), *label) != values.end();
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (op == "Exists") return has;
  if (op == "DoesNotExist") return !has;
  if (op == "Gt" || op == "Lt") {
    return has && IsBetween(label->get<std::string>(), values, op == "Gt");
  }
  return false;
}

bool MatchesAll(const Json& requirements, const Json& labels) {
  return std::all_of(requirements.begin(), requirements.end(),
                     [&](const Json& requirement) { return Matches(requirement, labels); });
}

// Terms are alternatives; a term without requirements matches nothing.
bool MatchesRequiredAffinity(const Json& pod, const Json& node) {
  const Json& terms = At(pod,
                         "/spec/affinity/nodeAffinity/"
                         "requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
                         kEmpty);
  if (terms.empty()) return true;
  const Json fields = {{"metadata.name", At(node, "/metadata/name", kNone)}};
  return std::any_of(terms.begin(), terms.end(), [&](const Json& term) {
    const Json& on_labels = At(term, "/matchExpressions", kEmpty);
    const Json& on_fields = At(term, "/matchFields", kEmpty);
    return on_labels.size() + on_fields.size() > 0 &&
           MatchesAll(on_labels, At(node, "/metadata/labels", kNone)) &&
           MatchesAll(on_fields, fields);
  });
}

bool MatchesSelector(const Json& pod, const Json& node) {
  const Json& labels = At(node, "/metadata/labels", kNone);
  for (const auto& [key, value] : At(pod, "/spec/nodeSelector", kNone).items()) {
    if (!labels.contains(key) || labels[key] != value) return false;
  }
  return true;
}

}  // namespace

bool Tolerates(const Json& pod, const Taint& taint) {
  const Json& tolerations = At(pod, "/spec/tolerations", kEmpty);
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const Json& toleration) { return Matches(toleration, taint); });
}

std::string Refusal(const Json& pod, const Json& node) {
  const Json& spec = At(node, "/spec", kNone);
  if (spec.value("unschedulable", false) &&
      !Tolerates(pod, {"node.kubernetes.io/unschedulable", "", "NoSchedule"})) {
    return "node(s) were unschedulable";
  }
  for (const Json& json : At(spec, "/taints", kEmpty)) {
    const Taint taint{Text(json, "key"), Text(json, "value"), Text(json, "effect")};
    if (taint.effect != "PreferNoSchedule" && !Tolerates(pod, taint)) {
      return "node(s) had untolerated taint {" + taint.key + ": " + taint.value + "}";
    }
  }
  if (!MatchesSelector(pod, node) || !MatchesRequiredAffinity(pod, node)) {
    return "node(s) didn't match Pod's node affinity/selector";
  }
  return "";
}

}  // namespace ringmaster::scheduler
