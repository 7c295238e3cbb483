#include "operator/scheduler/node_rules.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::scheduler {
namespace {

using Json = nlohmann::json;

bool Matches(const Json& toleration, const Taint& taint) {
  if (!toleration.is_object()) return false;
  const std::string key = fields::Text(toleration, "key"),
                    effect = fields::Text(toleration, "effect");
  if (!key.empty() && key != taint.key) return false;
  if (!effect.empty() && effect != taint.effect) return false;
  return fields::Text(toleration, "operator") == "Exists" ||
         fields::Text(toleration, "value") == taint.value;
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
  const Json& values = fields::ListAt(requirement, "/values");
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

const Json& RequiredTerms(const Json& pod) {
  return fields::ListAt(pod,
                        "/spec/affinity/nodeAffinity/"
                        "requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
}

// Terms are alternatives; a term without requirements matches nothing.
bool MatchesRequiredAffinity(const Json& pod, const Json& node) {
  const Json& terms = RequiredTerms(pod);
  if (terms.empty()) return true;
  const Json names = {{"metadata.name", fields::At(node, "/metadata/name")}};
  return std::any_of(terms.begin(), terms.end(), [&](const Json& term) {
    const Json& on_labels = fields::ListAt(term, "/matchExpressions");
    const Json& on_fields = fields::ListAt(term, "/matchFields");
    return on_labels.size() + on_fields.size() > 0 &&
           MatchesAll(on_labels, fields::ObjectAt(node, "/metadata/labels")) &&
           MatchesAll(on_fields, names);
  });
}

bool MatchesSelector(const Json& pod, const Json& node) {
  const Json& labels = fields::ObjectAt(node, "/metadata/labels");
  for (const auto& [key, value] : fields::ObjectAt(pod, "/spec/nodeSelector").items()) {
    if (!labels.contains(key) || labels[key] != value) return false;
  }
  return true;
}

}  // namespace

bool Tolerates(const Json& pod, const Taint& taint) {
  const Json& tolerations = fields::ListAt(pod, "/spec/tolerations");
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const Json& toleration) { return Matches(toleration, taint); });
}

std::string OnlyNodeOf(const Json& pod) {
  const Json& terms = RequiredTerms(pod);
  if (terms.size() != 1) return "";
  const Json& on_fields = fields::ListAt(terms[0], "/matchFields");
  if (on_fields.size() != 1 || fields::Text(on_fields[0], "key") != "metadata.name" ||
      fields::Text(on_fields[0], "operator") != "In") {
    return "";
  }
  const Json& values = fields::ListAt(on_fields[0], "/values");
  return values.size() == 1 && values[0].is_string() ? values[0].get<std::string>() : "";
}

std::string Refusal(const Json& pod, const Json& node) {
  const Json& spec = fields::ObjectAt(node, "/spec");
  if (spec.value("unschedulable", false) &&
      !Tolerates(pod, {"node.kubernetes.io/unschedulable", "", "NoSchedule"})) {
    return "node(s) were unschedulable";
  }
  for (const Json& json : fields::ListAt(spec, "/taints")) {
    const Taint taint{fields::Text(json, "key"), fields::Text(json, "value"),
                      fields::Text(json, "effect")};
    if (taint.effect != "PreferNoSchedule" && !Tolerates(pod, taint)) {
      return "node(s) had untolerated taint {" + taint.key + ": " + taint.value + "}";
    }
  }
  if (!MatchesSelector(pod, node) || !MatchesRequiredAffinity(pod, node)) {
    return kOtherNode;
  }
  return "";
}

}  // namespace ringmaster::scheduler
