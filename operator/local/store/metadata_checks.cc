#include "operator/local/store/metadata_checks.h"

#include <algorithm>

#include "operator/kube/dns_names.h"

namespace ringmaster::local {
namespace {

constexpr size_t kMostAnnotationBytes = 256 * 1024;

bool Alphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Of a label's value and of the part of a key after the slash.
bool Word(const std::string& text) {
  return !text.empty() && text.size() <= 63 && Alphanumeric(text.front()) &&
         Alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return Alphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

bool QualifiedKey(const std::string& key) {
  size_t slash = key.find('/');
  if (slash == std::string::npos) return Word(key);
  return kube::IsDnsName(key.substr(0, slash)) && Word(key.substr(slash + 1));
}

Cause BadKey(const std::string& field, const std::string& key) {
  return {"FieldValueInvalid",
          "Invalid value: \"" + key +
              "\": name part must consist of alphanumeric characters, '-', '_' or '.', and must "
              "start and end with an alphanumeric character",
          field};
}

void CheckLabels(const Json& labels, std::vector<Cause>& causes) {
  for (const auto& [key, value] : labels.items()) {
    if (!QualifiedKey(key)) causes.push_back(BadKey("metadata.labels", key));
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (!text.empty() && !Word(text)) {
      causes.push_back({"FieldValueInvalid",
                        "Invalid value: \"" + text +
                            "\": a valid label must be an empty string or consist of alphanumeric "
                            "characters, '-', '_' or '.', must start and end with an alphanumeric "
                            "character, and be no more than 63 characters",
                        "metadata.labels"});
    }
  }
}

void CheckAnnotations(const Json& annotations, std::vector<Cause>& causes) {
  size_t bytes = 0;
  for (const auto& [key, value] : annotations.items()) {
    if (!QualifiedKey(key)) causes.push_back(BadKey("metadata.annotations", key));
    bytes += key.size() + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  }
  if (bytes > kMostAnnotationBytes) {
    causes.push_back(
        {"FieldValueTooLong",
         "Too long: may not be more than " + std::to_string(kMostAnnotationBytes) + " bytes",
         "metadata.annotations"});
  }
}

void CheckOwners(const Json& owners, std::vector<Cause>& causes) {
  int controllers = 0;
  for (const Json& owner : owners) {
    for (const char* field : {"apiVersion", "kind", "name", "uid"}) {
      if (owner.value(field, "").empty()) {
        causes.push_back({"FieldValueInvalid", "Invalid value: \"\": must not be empty",
                          std::string("metadata.ownerReferences.") + field});
      }
    }
    controllers += owner.value("controller", false);
  }
  if (controllers > 1) {
    causes.push_back(
        {"FieldValueInvalid",
         "Invalid value: " + owners.dump() + ": Only one reference can have Controller set to true",
         "metadata.ownerReferences"});
  }
}

}  // namespace

std::vector<Cause> CheckMetadata(const Json& meta) {
  std::vector<Cause> causes;
  CheckLabels(meta.value("labels", Json::object()), causes);
  CheckAnnotations(meta.value("annotations", Json::object()), causes);
  CheckOwners(meta.value("ownerReferences", Json::array()), causes);
  for (const Json& finalizer : meta.value("finalizers", Json::array())) {
    std::string name = finalizer.is_string() ? finalizer.get<std::string>() : finalizer.dump();
    if (!QualifiedKey(name)) causes.push_back(BadKey("metadata.finalizers", name));
  }
  return causes;
}

}  // namespace ringmaster::local
