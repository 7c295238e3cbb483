#include "operator/local/store/pod_types.h"

#include <cstdint>

#include "common/fields/fields.h"
#include "operator/api/object_reader.h"

namespace ringmaster::local {
namespace {

using Json = nlohmann::json;

// A type is one of these words, a list with the type of its items, or an object with the types of
// its fields: "*" stands for the fields that are not named, and "!" behind a name says that the
// field must be there. Fields without a type may be anything.
constexpr char kText[] = "a string";
constexpr char kWhole[] = "a whole number of 32 bits";
constexpr char kFlag[] = "true or false";
constexpr char kTextOrWhole[] = "a string or a whole number of 32 bits";
constexpr char kAmount[] = "a string or a number";
constexpr char kObject[] = "an object";

bool Is(const Json& value, const std::string& type) {
  const bool whole = api::IsWhole(value) && api::IsWithin(value, INT32_MIN, INT32_MAX);
  if (type == kText) return value.is_string();
  if (type == kWhole) return whole;
  if (type == kFlag) return value.is_boolean();
  if (type == kTextOrWhole) return value.is_string() || whole;
  if (type == kAmount) return value.is_string() || value.is_number();
  return value.is_object();
}

Json OptionalKey() { return {{"name", kText}, {"key", kText}, {"optional", kFlag}}; }

Json ProbeType() {
  return {{"exec", {{"command", Json::array({kText})}}},
          {"httpGet", {{"path", kText}, {"port", kTextOrWhole}}},
          {"tcpSocket", {{"port", kTextOrWhole}}},
          {"initialDelaySeconds", kWhole},
          {"periodSeconds", kWhole},
          {"timeoutSeconds", kWhole},
          {"successThreshold", kWhole},
          {"failureThreshold", kWhole}};
}

Json ContainerType() {
  const Json amounts = {{"*", kAmount}};
  const Json value_from = {{"fieldRef", {{"fieldPath", kText}}},
                           {"configMapKeyRef", OptionalKey()},
                           {"secretKeyRef", OptionalKey()},
                           {"resourceFieldRef", {{"resource", kText}, {"containerName", kText}}}};
  const Json env = {{"name", kText}, {"value", kText}, {"valueFrom", value_from}};
  const Json env_from = {
      {"prefix", kText}, {"configMapRef", OptionalKey()}, {"secretRef", OptionalKey()}};
  const Json port = {{"name", kText}, {"containerPort", kWhole}, {"protocol", kText}};
  const Json mount = {
      {"name", kText}, {"mountPath", kText}, {"subPath", kText}, {"readOnly", kFlag}};
  return {{"name", kText},
          {"image", kText},
          {"command", Json::array({kText})},
          {"args", Json::array({kText})},
          {"workingDir", kText},
          {"restartPolicy", kText},
          {"env", Json::array({env})},
          {"envFrom", Json::array({env_from})},
          {"ports", Json::array({port})},
          {"resources", {{"limits", amounts}, {"requests", amounts}}},
          {"volumeMounts", Json::array({mount})},
          {"startupProbe", ProbeType()},
          {"readinessProbe", ProbeType()},
          {"livenessProbe", ProbeType()}};
}

Json VolumeType() {
  const Json item = {{"key", kText}, {"path", kText}};
  const Json field = {{"path", kText}, {"fieldRef", {{"fieldPath", kText}}}};
  Json type = {
      {"configMap", {{"name", kText}, {"optional", kFlag}, {"items", Json::array({item})}}},
      {"secret",
       {{"name", kText},
        {"secretName", kText},
        {"optional", kFlag},
        {"items", Json::array({item})}}},
      {"downwardAPI", {{"items", Json::array({field})}}}};
  const Json source = type;
  type["name"] = kText;
  type["projected"] = {{"sources", Json::array({source})}};
  type["hostPath"] = {{"path", kText}, {"type", kText}};
  type["emptyDir"] = kObject;
  type["persistentVolumeClaim"] = {{"claimName", kText}, {"readOnly", kFlag}};
  return type;
}

Json StatusType() {
  const Json state = {
      {"waiting", {{"reason", kText}, {"message", kText}}},
      {"running", {{"startedAt", kText}}},
      {"terminated",
       {{"exitCode", kWhole}, {"signal", kWhole}, {"reason", kText}, {"message", kText}}}};
  const Json container = {{"name", kText},
                          {"ready", kFlag},
                          {"restartCount", kWhole},
                          {"state", state},
                          {"lastState", state}};
  const Json condition = {{"type!", kText},
                          {"status", kText},
                          {"reason", kText},
                          {"message", kText},
                          {"lastTransitionTime", kText}};
  return {{"phase", kText},
          {"reason", kText},
          {"message", kText},
          {"podIP", kText},
          {"hostIP", kText},
          {"conditions", Json::array({condition})},
          {"containerStatuses", Json::array({container})},
          {"initContainerStatuses", Json::array({container})}};
}

const Json& PodType() {
  static const Json type = {{"spec",
                             {{"nodeName", kText},
                              {"schedulerName", kText},
                              {"serviceAccountName", kText},
                              {"restartPolicy", kText},
                              {"terminationGracePeriodSeconds", kWhole},
                              {"nodeSelector", {{"*", kText}}},
                              {"affinity", kObject},
                              {"tolerations", Json::array({kObject})},
                              {"schedulingGates", Json::array({{{"name!", kText}}})},
                              {"containers", Json::array({ContainerType()})},
                              {"initContainers", Json::array({ContainerType()})},
                              {"volumes", Json::array({VolumeType()})}}},
                            {"status", StatusType()}};
  return type;
}

std::string Wrong(const std::string& path, const Json& value, const std::string& wanted) {
  constexpr size_t kMostShown = 60;
  std::string shown = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (shown.size() > kMostShown) shown = shown.substr(0, kMostShown) + "...";
  return path + ": " + shown + " is not " + wanted;
}

std::string Check(const std::string& path, const Json& value, const Json& type);

std::string CheckList(const std::string& path, const Json& value, const Json& type) {
  if (!value.is_array()) return Wrong(path, value, "a list");
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string wrong = Check(path + "[" + std::to_string(i) + "]", value[i], type[0]);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string CheckObject(const std::string& path, const Json& value, const Json& type) {
  if (!value.is_object()) return Wrong(path, value, kObject);
  for (const auto& [name, field] : type.items()) {
    const bool needed = name.ends_with('!');
    const std::string bare = needed ? name.substr(0, name.size() - 1) : name;
    const auto at = value.find(bare);
    if (at == value.end()) {
      if (needed) return path + "." + bare + " is missing";
      continue;
    }
    const std::string wrong = Check(path.empty() ? bare : path + "." + bare, *at, field);
    if (!wrong.empty()) return wrong;
  }
  if (!type.contains("*")) return "";
  for (const auto& [name, field] : value.items()) {
    const std::string wrong = Check(path + "." + name, field, type["*"]);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string Check(const std::string& path, const Json& value, const Json& type) {
  if (type.is_array()) return CheckList(path, value, type);
  if (type.is_object()) return CheckObject(path, value, type);
  const std::string wanted = type.get<std::string>();
  return Is(value, wanted) ? "" : Wrong(path, value, wanted);
}

}  // namespace

std::string WrongTypeInPod(const Json& pod) { return CheckObject("", pod, PodType()); }

void DropNulls(Json& value) {
  if (value.is_object()) {
    for (auto it = value.begin(); it != value.end();) {
      it = it->is_null() ? value.erase(it) : std::next(it);
    }
  }
  if (!value.is_structured()) return;
  for (Json& item : value) DropNulls(item);
}

}  // namespace ringmaster::local
