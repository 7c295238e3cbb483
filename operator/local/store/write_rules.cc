#include "operator/local/store/write_rules.h"

#include <sys/random.h>

#include <algorithm>

#include "common/fields/fields.h"
#include "operator/kube/dns_names.h"
#include "operator/local/store/admission.h"

namespace ringmaster::local {
namespace {

std::string NewUid() {
  unsigned char b[16];
  if (getrandom(b, sizeof b, 0) != sizeof b) std::terminate();
  b[6] = (b[6] & 0x0f) | 0x40;
  b[8] = (b[8] & 0x3f) | 0x80;
  char text[37];
  std::snprintf(text, sizeof text,
                "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
                b[15]);
  return text;
}

// Five characters that make no words, as generateName appends them.
std::string Suffix() {
  static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  unsigned char b[5];
  if (getrandom(b, sizeof b, 0) != sizeof b) std::terminate();
  std::string text;
  for (unsigned char c : b) text += kLetters[c % kLetters.size()];
  return text;
}

void KeepField(const Json& from, Json& to, const char* key) {
  if (auto it = from.find(key); it != from.end()) {
    to[key] = *it;
  } else {
    to.erase(key);
  }
}

// An object on its way out gets no new finalizer.
Answer<void> CheckFinalizers(const Resource& resource, const std::string& name, const Json& live,
                             const Json& object) {
  if (!live["metadata"].contains("deletionTimestamp")) return {};
  const Json had = live["metadata"].value("finalizers", Json::array());
  for (const Json& f : object["metadata"].value("finalizers", Json::array())) {
    if (std::find(had.begin(), had.end(), f) == had.end()) {
      return tl::unexpected(Invalid(
          resource, name,
          {{"FieldValueForbidden",
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            "finalizers []string{" +
                f.dump() + "}",
            "metadata.finalizers"}}));
    }
  }
  return {};
}

Answer<void> CheckPreconditions(const Resource& resource, const std::string& name, const Json& live,
                                const Json& meta) {
  const Json& old = live["metadata"];
  if (std::string uid = fields::Text(meta, "uid"); !uid.empty() && uid != old["uid"]) {
    return tl::unexpected(Conflict(resource, name,
                                   "Precondition failed: UID in precondition: " + uid +
                                       ", UID in object meta: " + old["uid"].get<std::string>()));
  }
  std::string version = fields::Text(meta, "resourceVersion");
  if (version.empty()) {
    if (TraitsOf(resource).unconditional_update) return {};
    return tl::unexpected(
        Invalid(resource, name,
                {{"FieldValueInvalid", "Invalid value: 0x0: must be specified for an update",
                  "metadata.resourceVersion"}}));
  }
  if (version != old["resourceVersion"]) return tl::unexpected(ModifiedConflict(resource, name));
  return {};
}

// Gives `object` back what this (sub)resource may not change.
void KeepProtected(const Resource& resource, const Json& live, Json& object,
                   const std::string& subresource) {
  Json& meta = object["metadata"];
  const Json& old = live["metadata"];
  if (subresource == "status") {
    Json status = object.contains("status") ? object["status"] : Json();
    Json labels = meta.value("labels", Json()), annotations = meta.value("annotations", Json());
    object = live;
    if (status.is_null()) {
      object.erase("status");
    } else {
      object["status"] = std::move(status);
    }
    // Built-in kinds let a status write change labels and annotations; custom resources don't.
    if (!resource.group.starts_with("ringmaster")) {
      if (labels.is_object()) object["metadata"]["labels"] = std::move(labels);
      if (annotations.is_object()) object["metadata"]["annotations"] = std::move(annotations);
    }
    return;
  }
  if (TraitsOf(resource).status) KeepField(live, object, "status");
  for (const char* key : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                          "deletionGracePeriodSeconds", "generation", "generateName"}) {
    KeepField(old, meta, key);
  }
  meta.erase("managedFields");
  meta.erase("selfLink");
  if (meta.contains("finalizers") && meta["finalizers"].empty()) meta.erase("finalizers");
}

// The bytes of a value, more or less, and how deep it is nested; neither is counted further than
// to where it is too much.
struct Extent {
  // A request to an API server has no more bytes.
  static constexpr std::size_t kMostBytes = 3u << 20, kMostDepth = 64;

  std::size_t bytes = 0;
  bool too_deep = false;

  void Add(const Json& value, std::size_t depth = 0) {
    too_deep |= depth > kMostDepth;
    if (too_deep || bytes > kMostBytes) return;
    bytes += value.is_string() ? value.get_ref<const std::string&>().size() + 16 : 16;
    if (!value.is_structured()) return;
    for (const auto& [key, item] : value.items()) {
      bytes += value.is_object() ? key.size() + 3 : 0;
      Add(item, depth + 1);
    }
  }
  bool TooMuch() const { return too_deep || bytes > kMostBytes; }
};

bool Copies(const Json& operation) { return fields::Text(operation, "op") == "copy"; }

}  // namespace

Answer<void> ApplyJsonPatch(const Json& patch, Json& object) {
  const auto refuse = [](const std::string& why) {
    return tl::unexpected(Failure(422, "Invalid", "the JSON patch can't be applied: " + why));
  };
  Json patched = object;
  Extent extent;
  try {
    // With each copy an object may double.
    if (std::any_of(patch.begin(), patch.end(), Copies)) {
      for (const Json& operation : patch) {
        if (Copies(operation)) {
          extent.Add(patched.at(Json::json_pointer(fields::Text(operation, "from"))));
        }
        if (extent.TooMuch()) return refuse("it copies too much");
        patched = patched.patch(Json::array({operation}));
      }
    } else {
      patched = patched.patch(patch);
    }
  } catch (const Json::exception& e) {
    return refuse(e.what());
  }
  extent.Add(patched);
  if (extent.TooMuch()) return refuse("the object would be too large or nested too deep");
  object = std::move(patched);
  return {};
}

Answer<void> CheckKind(const Resource& resource, Json& object) {
  if (!object.is_object()) return tl::unexpected(BadRequest("the body is not a JSON object"));
  struct Expected {
    const char* field;
    const char* words;
    std::string value;
  } const kExpected[] = {{"apiVersion", "API version", resource.ApiVersion()},
                         {"kind", "kind", resource.kind}};
  for (const Expected& e : kExpected) {
    auto it = object.find(e.field);
    if (it == object.end()) {
      object[e.field] = e.value;
    } else if (*it != e.value) {
      return tl::unexpected(BadRequest(std::string("the ") + e.words + " in the data (" +
                                       (it->is_string() ? it->get<std::string>() : it->dump()) +
                                       ") does not match the expected " + e.words + " (" + e.value +
                                       ")"));
    }
  }
  if (!object.contains("metadata")) object["metadata"] = Json::object();
  if (!object["metadata"].is_object()) {
    return tl::unexpected(BadRequest("metadata must be an object"));
  }
  for (const char* field : {"labels", "annotations"}) {
    if (!object["metadata"].contains(field)) continue;
    Json& map = object["metadata"][field];
    if (map.is_null()) {
      object["metadata"].erase(field);
      continue;
    }
    bool strings = map.is_object();
    for (const Json& value : map) strings &= value.is_string();
    if (!strings) {
      return tl::unexpected(
          BadRequest(std::string("metadata.") + field + " must be a map of strings"));
    }
  }
  return {};
}

Answer<std::string> NamespaceToCreateIn(const Resource& resource, const std::string& url_ns,
                                        const Json& meta) {
  const std::string named = fields::Text(meta, "namespace");
  const std::string ns = !resource.namespaced ? "" : url_ns.empty() ? named : url_ns;
  if (!named.empty() && named != ns) {
    return tl::unexpected(BadRequest(
        "the namespace of the provided object does not match the namespace sent on the request"));
  }
  if (resource.namespaced && ns.empty()) {
    return tl::unexpected(BadRequest("an empty namespace may not be set during creation"));
  }
  return ns;
}

Answer<std::string> NameToCreate(const Resource& resource, const Json& meta,
                                 const std::function<bool(const std::string&)>& taken) {
  if (!fields::Text(meta, "resourceVersion").empty()) {
    Json status = Failure(500, "", "resourceVersion should not be set on objects to be created");
    status.erase("reason");  // real servers give none here
    return tl::unexpected(std::move(status));
  }
  std::string name = fields::Text(meta, "name");
  if (const std::string prefix = fields::Text(meta, "generateName");
      name.empty() && !prefix.empty()) {
    do {
      name = prefix + Suffix();
    } while (taken(name));
  }
  if (name.empty()) {
    return tl::unexpected(
        Invalid(resource, "",
                {{"FieldValueRequired", "Required value: name or generateName is required",
                  "metadata.name"}}));
  }
  if (!kube::IsDnsName(name)) {
    return tl::unexpected(Invalid(
        resource, name,
        {{"FieldValueInvalid",
          "Invalid value: \"" + name +
              "\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
              "characters, '-' or '.', and must start and end with an alphanumeric character",
          "metadata.name"}}));
  }
  if (taken(name)) return tl::unexpected(AlreadyExists(resource, name));
  return name;
}

void SetIdentity(const Resource& resource, const std::string& ns, const std::string& name,
                 const std::string& now, Json& object) {
  const Traits traits = TraitsOf(resource);
  Json& meta = object["metadata"];
  meta["name"] = name;
  if (resource.namespaced) meta["namespace"] = ns;
  meta["uid"] = NewUid();
  meta["creationTimestamp"] = now;
  for (const char* key : {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
                          "resourceVersion", "managedFields", "generation"}) {
    meta.erase(key);
  }
  if (traits.generation) meta["generation"] = 1;
  if (traits.status && !traits.status_on_create) object.erase("status");
}

Answer<void> PrepareUpdate(const Resource& resource, const Json& live, Json& object,
                           const std::string& subresource) {
  const std::string name = live["metadata"]["name"];
  if (auto ok = CheckPreconditions(resource, name, live, object["metadata"]); !ok) return ok;
  KeepProtected(resource, live, object, subresource);
  return CheckFinalizers(resource, name, live, object);
}

bool SameSpec(Json a, Json b) {
  for (Json* object : {&a, &b}) {
    object->erase("metadata");
    object->erase("status");
  }
  return a == b;
}

}  // namespace ringmaster::local
