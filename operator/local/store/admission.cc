#include "operator/local/store/admission.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <regex>
#include <set>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"
#include "operator/api/object_reader.h"
#include "operator/kube/base64.h"
#include "operator/kube/dns_names.h"
#include "operator/kube/resources.h"
#include "operator/local/store/pod_types.h"

namespace ringmaster::local {
namespace {

const Json kEmptyList = Json::array();
const Json kEmptyObject = Json::object();

const Json& Field(const Json& object, const char* key, const Json& otherwise) {
  auto it = object.find(key);
  return it == object.end() || it->is_null() ? otherwise : *it;
}

void Preset(Json& object, const char* key, Json value) {
  if (!object.contains(key)) object[key] = std::move(value);
}

void DefaultContainer(Json& container) {
  Preset(container, "resources", Json::object());
  Preset(container, "imagePullPolicy", "IfNotPresent");
  // Requests default to limits.
  Json& resources = container["resources"];
  if (!resources.is_object() || !Field(resources, "limits", kEmptyObject).is_object()) return;
  for (const auto& [name, amount] : Field(resources, "limits", kEmptyObject).items()) {
    if (!resources["requests"].contains(name)) resources["requests"][name] = amount;
  }
}

void DefaultPod(Json& pod) {
  Json& spec = pod["spec"];
  if (!spec.is_object()) return;
  Preset(spec, "restartPolicy", "Always");
  Preset(spec, "terminationGracePeriodSeconds", 30);
  Preset(spec, "dnsPolicy", "ClusterFirst");
  Preset(spec, "schedulerName", "default-scheduler");
  Preset(spec, "securityContext", Json::object());
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list) || !spec[list].is_array()) continue;
    for (Json& container : spec[list]) {
      if (container.is_object()) DefaultContainer(container);
    }
  }
  pod["status"] = {{"phase", "Pending"}, {"qosClass", "BestEffort"}};
  if (!Field(spec, "schedulingGates", kEmptyList).empty()) {
    pod["status"]["conditions"] = {
        {{"type", "PodScheduled"},
         {"status", "False"},
         {"reason", "SchedulingGated"},
         {"lastTransitionTime", pod["metadata"]["creationTimestamp"]},
         {"message", "Scheduling is blocked due to non-empty scheduling gates"}}};
  }
}

void CheckContainers(const Json& spec, const char* list, std::set<std::string>& names,
                     std::vector<Cause>& causes) {
  const Json& containers = Field(spec, list, kEmptyList);
  if (!containers.is_array()) {
    causes.push_back(
        {"FieldValueTypeInvalid", "Invalid value: must be a list", std::string("spec.") + list});
    return;
  }
  for (size_t i = 0; i < containers.size(); ++i) {
    std::string path = std::string("spec.") + list + "[" + std::to_string(i) + "]";
    const Json& c = containers[i];
    std::string name = fields::Text(c, "name");
    if (name.empty()) {
      causes.push_back({"FieldValueRequired", "Required value", path + ".name"});
    } else if (!kube::IsDnsLabel(name)) {
      causes.push_back(
          {"FieldValueInvalid",
           "Invalid value: \"" + name +
               "\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
               "characters or '-'",
           path + ".name"});
    } else if (!names.insert(name).second) {
      causes.push_back(
          {"FieldValueDuplicate", "Duplicate value: \"" + name + "\"", path + ".name"});
    }
    if (fields::Text(c, "image").empty()) {
      causes.push_back({"FieldValueRequired", "Required value", path + ".image"});
    }
    std::set<std::string> volumes;
    for (const Json& v : Field(spec, "volumes", kEmptyList))
      volumes.insert(fields::Text(v, "name"));
    const Json& mounts = c.is_object() ? Field(c, "volumeMounts", kEmptyList) : kEmptyList;
    for (size_t m = 0; m < mounts.size(); ++m) {
      std::string volume = fields::Text(mounts[m], "name");
      if (!volumes.count(volume)) {
        causes.push_back({"FieldValueNotFound", "Not found: \"" + volume + "\"",
                          path + ".volumeMounts[" + std::to_string(m) + "].name"});
      }
    }
  }
}

std::vector<Cause> CheckPod(const Json& pod) {
  std::vector<Cause> causes;
  const Json& spec = Field(pod, "spec", kEmptyObject);
  std::set<std::string> names;
  if (Field(spec, "containers", kEmptyList).empty()) {
    causes.push_back({"FieldValueRequired", "Required value", "spec.containers"});
  }
  CheckContainers(spec, "initContainers", names, causes);
  CheckContainers(spec, "containers", names, causes);
  std::string policy = spec.value("restartPolicy", "Always");
  if (policy != "Always" && policy != "OnFailure" && policy != "Never") {
    causes.push_back({"FieldValueNotSupported",
                      "Unsupported value: \"" + policy +
                          "\": supported values: \"Always\", \"OnFailure\", \"Never\"",
                      "spec.restartPolicy"});
  }
  return causes;
}

// A pod's spec may lose scheduling gates, change images and the active deadline, and nothing else.
std::vector<Cause> CheckPodUpdate(const Json& before, const Json& after) {
  Json a = Field(before, "spec", kEmptyObject), b = Field(after, "spec", kEmptyObject);
  bool gated = !Field(a, "schedulingGates", kEmptyList).empty();
  for (const Json& gate : Field(b, "schedulingGates", kEmptyList)) {
    const Json& had = Field(a, "schedulingGates", kEmptyList);
    if (std::find(had.begin(), had.end(), gate) == had.end()) {
      return {{"FieldValueForbidden",
               "Forbidden: only deletion is allowed, but found new scheduling gate '" +
                   gate.value("name", "") + "'",
               "spec.schedulingGates"}};
    }
  }
  for (Json* spec : {&a, &b}) {
    for (const char* key : {"schedulingGates", "activeDeadlineSeconds", "tolerations"})
      spec->erase(key);
    if (gated) {
      spec->erase("nodeSelector");
      spec->erase("affinity");
    }
    for (const char* list : {"containers", "initContainers"}) {
      if (!spec->contains(list)) continue;
      for (Json& container : (*spec)[list]) container.erase("image");
    }
  }
  if (a == b) return {};
  return {
      {"FieldValueForbidden",
       "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
       "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
       "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be "
       "set to 1 if it was previously negative)",
       "spec"}};
}

// 2026-01-31T12:00:00.000000Z: metav1.MicroTime takes nothing else.
bool MicroTime(const Json& value) {
  static const std::regex kShape(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d))");
  return value.is_string() && std::regex_match(value.get<std::string>(), kShape);
}

std::vector<Cause> CheckLease(const Json& lease) {
  std::vector<Cause> causes;
  const Json& spec = Field(lease, "spec", kEmptyObject);
  for (const char* key : {"leaseDurationSeconds", "leaseTransitions"}) {
    static const Json kGood = 1;
    const Json& value = Field(spec, key, kGood);
    int least = key[5] == 'D' ? 1 : 0;
    if (value.is_number_integer() && value.get<int64_t>() >= least) continue;
    causes.push_back(
        {"FieldValueInvalid",
         "Invalid value: " + value.dump() +
             (least ? ": must be greater than 0" : ": must be greater than or equal to 0"),
         std::string("spec.") + key});
  }
  return causes;
}

std::vector<Cause> CheckEvent(const Json& event) {
  std::vector<Cause> causes;
  for (const char* key :
       {"eventTime", "reportingController", "reportingInstance", "action", "reason"}) {
    if (Field(event, key, Json("")) == "")
      causes.push_back({"FieldValueRequired", "Required value", key});
  }
  const std::string type = event.value("type", "");
  if (type != "Normal" && type != "Warning") {
    causes.push_back(
        {"FieldValueInvalid", "Invalid value: \"\": has invalid value: " + type, "type"});
  }
  return causes;
}

std::vector<Cause> CheckService(const Json& service) {
  const Json& spec = Field(service, "spec", kEmptyObject);
  const bool headless = Field(spec, "clusterIP", kEmptyObject) == "None" ||
                        Field(spec, "type", kEmptyObject) == "ExternalName";
  if (headless || !Field(spec, "ports", kEmptyList).empty()) return {};
  return {{"FieldValueRequired", "Required value", "spec.ports"}};
}

// Of an object that holds files.
std::vector<Cause> CheckDataSize(const Json& object) {
  constexpr std::size_t kMost = 1u << 20;
  std::size_t bytes = 0;
  for (const auto& [key, value] : Field(object, "data", kEmptyObject).items()) {
    if (value.is_string()) bytes += value.get_ref<const std::string&>().size();
  }
  for (const auto& [key, value] : Field(object, "binaryData", kEmptyObject).items()) {
    if (value.is_string()) bytes += value.get_ref<const std::string&>().size() / 4 * 3;
  }
  if (bytes <= kMost) return {};
  return {{"FieldValueTooLong", "Too long: may not be more than 1048576 bytes", ""}};
}

// The keys of an object that holds files: each may become the name of one.
std::vector<Cause> CheckDataKeys(const Json& object) {
  constexpr std::size_t kLongest = 253;
  std::vector<Cause> causes;
  for (const char* field : {"data", "binaryData"}) {
    for (const auto& [key, value] : fields::Object(object, field).items()) {
      const bool letters = std::all_of(key.begin(), key.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
      });
      const bool leads_away = key == "." || key.starts_with("..");
      if (letters && !leads_away && !key.empty() && key.size() <= kLongest) continue;
      causes.push_back({"FieldValueInvalid",
                        "Invalid value: \"" + key +
                            "\": a key has 1 to 253 letters, digits, '-', '_' or '.', is not "
                            "\".\" and doesn't begin with \"..\"",
                        std::string(field) + "[" + key + "]"});
    }
  }
  return causes;
}

std::vector<Cause> CheckConfigMap(const Json& object) {
  std::vector<Cause> causes = CheckDataKeys(object);
  return causes.empty() ? CheckDataSize(object) : causes;
}

// Empty, or what has another type than a map of strings.
std::string WrongTypeInData(const Json& object) {
  for (const char* field : {"data", "binaryData", "stringData"}) {
    const Json& map = Field(object, field, kEmptyObject);
    if (!map.is_object()) return std::string(field) + " is not an object";
    for (const auto& [key, value] : map.items()) {
      if (!value.is_string()) return std::string(field) + "[" + key + "] is not a string";
    }
  }
  return "";
}

}  // namespace

Traits TraitsOf(const Resource& resource) {
  if (resource == kube::Pods()) return {.status = true, .generation = true};
  if (resource == kube::Nodes()) return {.status = true, .status_on_create = true};
  if (resource == kube::Namespaces() || resource == kube::Services()) return {.status = true};
  if (resource == kube::PodDisruptionBudgets() || resource == kube::HorovodJobs() ||
      resource == kube::Workloads() || resource == kube::PodGroups() ||
      resource == kube::ProvisioningRequests()) {
    return {.status = true, .generation = true, .unconditional_update = false};
  }
  if (resource == kube::NetworkPolicies()) return {.generation = true};
  if (resource == kube::Leases()) return {.unconditional_update = false};
  return {};
}

std::vector<std::string> SelectableFields(const Resource& resource) {
  std::vector<std::string> fields = {"metadata.name"};
  if (resource.namespaced) fields.push_back("metadata.namespace");
  if (resource == kube::Pods()) {
    for (const char* path : {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
                             "spec.serviceAccountName", "status.phase", "status.podIP"}) {
      fields.push_back(path);
    }
  } else if (resource == kube::Nodes()) {
    fields.push_back("spec.unschedulable");
  } else if (resource == kube::Namespaces()) {
    fields.push_back("status.phase");
  } else if (resource == kube::Secrets()) {
    fields.push_back("type");
  } else if (resource == kube::Events()) {
    for (const char* path : {"regarding.kind", "regarding.namespace", "regarding.name",
                             "regarding.uid", "reason", "type", "reportingController"}) {
      fields.push_back(path);
    }
  }
  return fields;
}

void SetDefaults(const Resource& resource, Json& object) {
  if (resource == kube::Pods()) DefaultPod(object);
  if (resource == kube::Namespaces()) {
    object["spec"] = {{"finalizers", {"kubernetes"}}};
    object["status"] = {{"phase", "Active"}};
  }
  if (resource == kube::Services() && Field(object, "spec", kEmptyList).is_object()) {
    Preset(object["spec"], "type", "ClusterIP");
    Preset(object["spec"], "sessionAffinity", "None");
  }
  if (resource == kube::Secrets()) {
    Preset(object, "type", "Opaque");
    if (auto plain = object.find("stringData"); plain != object.end()) {
      for (const auto& [key, value] : plain->items()) {
        object["data"][key] = kube::EncodeBase64(value.is_string() ? value.get<std::string>() : "");
      }
      object.erase("stringData");
    }
  }
}

std::vector<Cause> CheckCreate(const Resource& resource, const Json& object) {
  if (resource == kube::Pods()) return CheckPod(object);
  if (resource == kube::Leases()) return CheckLease(object);
  if (resource == kube::Events()) return CheckEvent(object);
  if (resource == kube::Services()) return CheckService(object);
  if (resource == kube::ConfigMaps()) return CheckConfigMap(object);
  if (resource == kube::Secrets()) return CheckDataKeys(object);
  return {};
}

Answer<void> CheckFormat(const Resource& resource, const Json& object) {
  auto cannot = [&](const std::string& why) { return tl::unexpected(CannotDecode(resource, why)); };
  std::vector<std::pair<const char*, const char*>> times;  // object, field
  if (resource == kube::Leases()) times = {{"spec", "renewTime"}, {"spec", "acquireTime"}};
  if (resource == kube::Events()) times = {{"series", "lastObservedTime"}, {"", "eventTime"}};
  for (auto [part, key] : times) {
    const Json& owner = *part ? Field(object, part, kEmptyObject) : object;
    auto time = owner.is_object() ? owner.find(key) : owner.end();
    if (time == owner.end() || time->is_null() || MicroTime(*time)) continue;
    return cannot("parsing time " + time->dump() + " as \"2006-01-02T15:04:05.000000Z07:00\"");
  }
  if (resource == kube::Pods()) {
    if (const std::string wrong = WrongTypeInPod(object); !wrong.empty()) return cannot(wrong);
  }
  if (resource == kube::ConfigMaps() || resource == kube::Secrets()) {
    if (const std::string wrong = WrongTypeInData(object); !wrong.empty()) return cannot(wrong);
  }
  if (resource == kube::Secrets()) {
    for (const auto& [key, value] : Field(object, "data", kEmptyObject).items()) {
      if (!value.is_string() || !kube::DecodeBase64(value.get<std::string>()))
        return cannot("illegal base64 data in data[" + key + "]");
    }
  }
  return {};
}

std::vector<Cause> CheckUpdate(const Resource& resource, const Json& before, const Json& after) {
  if (resource == kube::Pods()) {
    std::vector<Cause> causes = CheckPod(after);
    if (causes.empty()) causes = CheckPodUpdate(before, after);
    return causes;
  }
  if (resource == kube::Leases()) return CheckLease(after);
  if (resource == kube::Services()) return CheckService(after);
  if (resource == kube::ConfigMaps() || resource == kube::Secrets()) {
    bool immutable = before.value("immutable", false);
    for (const char* key : {"data", "binaryData"}) {
      if (immutable && Field(before, key, kEmptyObject) != Field(after, key, kEmptyObject)) {
        return {
            {"FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set", key}};
      }
    }
    return resource == kube::ConfigMaps() ? CheckConfigMap(after) : CheckDataKeys(after);
  }
  return {};
}

std::vector<Cause> CheckJob(const Json* before, const Json& job) {
  // What was accepted once stays accepted until its spec changes.
  if (before != nullptr && before->value("spec", Json()) == job.value("spec", Json())) return {};
  const auto to_cause = [](const api::FieldError& error) {
    return Cause{"FieldValueInvalid", "Invalid value: \"object\": " + error.message, error.path};
  };
  std::vector<Cause> causes;
  const auto after = api::ParseHorovodJob(job);
  if (!after) {
    std::transform(after.error().begin(), after.error().end(), std::back_inserter(causes),
                   to_cause);
    return causes;
  }
  if (before == nullptr) return {};
  const auto old = api::ParseHorovodJob(*before);
  if (!old) return {};
  const api::FieldErrors errors = api::CheckUpdate(old->spec, after->spec);
  std::transform(errors.begin(), errors.end(), std::back_inserter(causes), to_cause);
  return causes;
}

}  // namespace ringmaster::local
