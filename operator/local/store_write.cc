// Writing: Create, Update, Patch and Bind.
#include <sys/random.h>

#include "operator/kube/resources.h"
#include "operator/local/admission.h"
#include "operator/local/metadata_checks.h"
#include "operator/local/store.h"

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

bool GoodName(const std::string& name) {
  if (name.empty() || name.size() > 253) return false;
  for (unsigned char c : name) {
    if (!(std::islower(c) || std::isdigit(c) || c == '-' || c == '.')) return false;
  }
  return std::isalnum(static_cast<unsigned char>(name.front())) &&
         std::isalnum(static_cast<unsigned char>(name.back()));
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

std::string Text(const Json& meta, const char* key) {
  auto it = meta.find(key);
  return it != meta.end() && it->is_string() ? it->get<std::string>() : "";
}

// Everything but metadata and status: what `generation` counts.
bool SameSpec(Json a, Json b) {
  for (Json* object : {&a, &b}) {
    object->erase("metadata");
    object->erase("status");
  }
  return a == b;
}

void KeepField(const Json& from, Json& to, const char* key) {
  if (auto it = from.find(key); it != from.end()) {
    to[key] = *it;
  } else {
    to.erase(key);
  }
}

}  // namespace

Json Store::Commit(const Resource& resource, const Key& key, Object before,
                   std::optional<Json> object) {
  Bucket& bucket = BucketOf(resource);
  Event event{++version_, before, nullptr, nullptr};
  Json result;
  if (object) {
    (*object)["metadata"]["resourceVersion"] = std::to_string(version_);
    event.after = std::make_shared<const Json>(std::move(*object));
    bucket.objects[key] = event.after;
    result = *event.after;
  } else {
    Json last = *before;
    last["metadata"]["resourceVersion"] = std::to_string(version_);
    event.gone = std::make_shared<const Json>(std::move(last));
    bucket.objects.erase(key);
    result = *event.gone;
  }
  bucket.history.push_back(std::move(event));
  while (bucket.history.size() > options_.history) {
    bucket.forgotten = bucket.history.front().version;
    bucket.history.pop_front();
  }
  changed_.notify_all();
  if (resource == kube::Pods() || resource == kube::PodDisruptionBudgets())
    UpdateBudgets(key.first);
  return result;
}

Answer<void> Store::CheckNamespace(const Resource& resource, const std::string& ns) const {
  if (!resource.namespaced) return {};
  if (ns.empty()) {
    return tl::unexpected(BadRequest("an empty namespace may not be set during creation"));
  }
  Object found = Find(kube::Namespaces(), "", ns);
  if (!found) return tl::unexpected(NotFound(kube::Namespaces(), ns));
  if ((*found)["metadata"].contains("deletionTimestamp")) {
    return tl::unexpected(Failure(
        403, "Forbidden",
        "unable to create new content in namespace " + ns + " because it is being terminated"));
  }
  return {};
}

Answer<void> Store::Admit(const Resource& resource, Json& object, const std::string& name,
                          const WriteOptions& options, const Json* before) const {
  if (resource != kube::HorovodJobs() || !crd_) return {};
  std::vector<std::string> unknown = crd_->Prune(object);
  if (options.strict_fields && !unknown.empty()) {
    std::string list;
    for (const std::string& path : unknown) {
      list += (list.empty() ? "" : ", ") + ("unknown field \"" + path + "\"");
    }
    return tl::unexpected(BadRequest(resource.kind + " in version \"" + resource.version +
                                     "\" cannot be handled as a " + resource.kind +
                                     ": strict decoding error: " + list));
  }
  if (options.dropped) *options.dropped = std::move(unknown);
  crd_->Default(object);
  std::vector<Cause> causes = crd_->Validate(object);
  if (causes.empty() && crd_->has_rules()) causes = CheckJob(before, object);
  if (!causes.empty()) return tl::unexpected(Invalid(resource, name, causes));
  return {};
}

Answer<Json> Store::Create(const Resource& resource, const std::string& ns, Json object,
                           const WriteOptions& options) {
  return Locked([&] { return CreateLocked(resource, ns, std::move(object), options); });
}

Answer<Json> Store::CreateLocked(const Resource& resource, const std::string& url_ns, Json object,
                                 const WriteOptions& options) {
  if (auto ok = CheckKind(resource, object); !ok) return tl::unexpected(ok.error());
  Json& meta = object["metadata"];
  std::string ns = !resource.namespaced ? "" : url_ns.empty() ? Text(meta, "namespace") : url_ns;
  if (std::string named = Text(meta, "namespace"); !named.empty() && named != ns) {
    return tl::unexpected(BadRequest(
        "the namespace of the provided object does not match the namespace sent on the request"));
  }
  if (auto ok = CheckNamespace(resource, ns); !ok) return tl::unexpected(ok.error());
  if (!Text(meta, "resourceVersion").empty()) {
    Json status = Failure(500, "", "resourceVersion should not be set on objects to be created");
    status.erase("reason");  // real servers give none here
    return tl::unexpected(std::move(status));
  }
  std::string name = Text(meta, "name");
  if (name.empty() && !Text(meta, "generateName").empty()) {
    do {
      name = Text(meta, "generateName") + Suffix();
    } while (Find(resource, ns, name));
  }
  if (name.empty()) {
    return tl::unexpected(
        Invalid(resource, "",
                {{"FieldValueRequired", "Required value: name or generateName is required",
                  "metadata.name"}}));
  }
  if (!GoodName(name)) {
    return tl::unexpected(Invalid(
        resource, name,
        {{"FieldValueInvalid",
          "Invalid value: \"" + name +
              "\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
              "characters, '-' or '.', and must start and end with an alphanumeric character",
          "metadata.name"}}));
  }
  if (Find(resource, ns, name)) return tl::unexpected(AlreadyExists(resource, name));

  Traits traits = TraitsOf(resource);
  meta["name"] = name;
  if (resource.namespaced) meta["namespace"] = ns;
  meta["uid"] = NewUid();
  meta["creationTimestamp"] = Now();
  for (const char* key : {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
                          "resourceVersion", "managedFields", "generation"}) {
    meta.erase(key);
  }
  if (traits.generation) meta["generation"] = 1;
  if (traits.status && !traits.status_on_create) object.erase("status");
  SetDefaults(resource, object);
  if (auto ok = Admit(resource, object, name, options, nullptr); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = CheckFormat(resource, object); !ok) return tl::unexpected(ok.error());
  std::vector<Cause> causes = CheckMetadata(meta);
  if (causes.empty() && !options.core_event) causes = CheckCreate(resource, object);
  if (!causes.empty()) return tl::unexpected(Invalid(resource, name, causes));
  if (options.dry_run) return object;

  Key key{ns, name};
  std::string uid = object["metadata"]["uid"];
  Json created = Commit(resource, key, nullptr, std::move(object));
  uids_[uid] = {kube::FindResource(resource.group, resource.version, resource.plural), key};
  ClaimChanged(Json::object(), created, {options.field_manager, false, ""}, owners_[uid]);
  // The garbage collector takes an object whose owners are all gone, also one that comes too late.
  if (OwnersGone(created)) (void)DeleteLocked(resource, ns, name, {});
  return created;
}

Answer<Json> Store::Update(const Resource& resource, const std::string& ns, const std::string& name,
                           Json object, const std::string& subresource,
                           const WriteOptions& options) {
  return Locked(
      [&] { return UpdateLocked(resource, ns, name, std::move(object), subresource, options); });
}

namespace {

// What a write may not change, and the half of the object that this (sub)resource doesn't own.
void Protect(const Resource& resource, const Json& live, Json& object,
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

Answer<void> CheckPreconditions(const Resource& resource, const std::string& name, const Json& live,
                                const Json& meta) {
  const Json& old = live["metadata"];
  if (std::string uid = Text(meta, "uid"); !uid.empty() && uid != old["uid"]) {
    return tl::unexpected(Conflict(resource, name,
                                   "Precondition failed: UID in precondition: " + uid +
                                       ", UID in object meta: " + old["uid"].get<std::string>()));
  }
  std::string version = Text(meta, "resourceVersion");
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

}  // namespace

Answer<Json> Store::UpdateLocked(const Resource& resource, const std::string& ns,
                                 const std::string& name, Json object,
                                 const std::string& subresource, const WriteOptions& options) {
  Object live = Find(resource, ns, name);
  if (subresource == "scale") {
    if (!live) return tl::unexpected(NotFound(resource, name));
    return UpdateScaleLocked(resource, *live, object);
  }
  Traits traits = TraitsOf(resource);
  if (!subresource.empty() && !(subresource == "status" && traits.status)) {
    return tl::unexpected(
        Failure(404, "NotFound", "the server could not find the requested resource"));
  }
  if (auto ok = CheckKind(resource, object); !ok) return tl::unexpected(ok.error());
  if (std::string named = Text(object["metadata"], "name"); named != name) {
    return tl::unexpected(BadRequest("the name of the object (" + named +
                                     ") does not match the name on the URL (" + name + ")"));
  }
  if (!live) return tl::unexpected(NotFound(resource, name));
  if (auto ok = CheckPreconditions(resource, name, *live, object["metadata"]); !ok) {
    return tl::unexpected(ok.error());
  }
  Protect(resource, *live, object, subresource);
  if (auto ok = CheckFinalizers(resource, name, *live, object); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = Admit(resource, object, name, options, live.get()); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = CheckFormat(resource, object); !ok) return tl::unexpected(ok.error());
  if (subresource.empty()) {
    std::vector<Cause> causes = CheckMetadata(object["metadata"]);
    if (causes.empty()) causes = CheckUpdate(resource, *live, object);
    if (!causes.empty()) return tl::unexpected(Invalid(resource, name, causes));
  }
  object["metadata"]["resourceVersion"] = (*live)["metadata"]["resourceVersion"];
  if (traits.generation && !SameSpec(*live, object)) {
    object["metadata"]["generation"] = (*live)["metadata"].value("generation", 0) + 1;
  }
  if (object == *live || options.dry_run) return object;
  const Json& meta = object["metadata"];
  bool done = meta.contains("deletionTimestamp") &&
              meta.value("deletionGracePeriodSeconds", 0) == 0 && !meta.contains("finalizers");
  Key key{resource.namespaced ? ns : "", name};
  Json updated = Commit(resource, key, live, std::move(object));
  if (!options.applied) {
    ClaimChanged(*live, updated, {options.field_manager, false, subresource},
                 owners_[updated["metadata"]["uid"]]);
  }
  if (done) Remove(resource, key);
  return updated;
}

Answer<Json> Store::Patch(const Resource& resource, const std::string& ns, const std::string& name,
                          const PatchRequest& request, const WriteOptions& options) {
  return Locked([&] { return PatchLocked(resource, ns, name, request, options); });
}

Answer<Json> Store::PatchLocked(const Resource& resource, const std::string& ns,
                                const std::string& name, const PatchRequest& request,
                                const WriteOptions& options) {
  Object live = Find(resource, ns, name);
  if (request.type == PatchRequest::Type::kApply) {
    if (request.field_manager.empty()) {
      return tl::unexpected(Invalid(
          {"meta.k8s.io", "v1", "patchoptions", "PatchOptions", false}, "",
          {{"FieldValueRequired", "Required value: is required for apply patch", "fieldManager"}}));
    }
    if (!live && request.subresource.empty()) {
      FieldOwners owners;
      (void)Apply(Json::object(), request.patch, {request.field_manager, true, ""}, true, owners);
      Json wanted = request.patch;
      if (auto ok = CheckKind(resource, wanted); !ok) return tl::unexpected(ok.error());
      wanted["metadata"]["name"] = name;
      auto created = CreateLocked(resource, ns, std::move(wanted), options);
      if (created && !options.dry_run) owners_[(*created)["metadata"]["uid"]] = std::move(owners);
      return created;
    }
  }
  if (!live) return tl::unexpected(NotFound(resource, name));
  Json patched = request.subresource == "scale" ? ScaleOf(*live) : *live;
  switch (request.type) {
    case PatchRequest::Type::kMerge:
      if (!request.patch.is_object()) {
        return tl::unexpected(BadRequest("a merge patch must be a JSON object"));
      }
      patched.merge_patch(request.patch);
      break;
    case PatchRequest::Type::kJson:
      try {
        patched = patched.patch(request.patch);
      } catch (const Json::exception& e) {
        return tl::unexpected(
            Failure(422, "Invalid", std::string("the JSON patch can't be applied: ") + e.what()));
      }
      break;
    case PatchRequest::Type::kApply: {
      auto applied = ApplyPatchLocked(resource, ns, name, patched, request);
      if (!applied) return applied;
      patched = std::move(*applied);
      break;
    }
  }
  WriteOptions write = options;
  write.applied = request.type == PatchRequest::Type::kApply;
  if (!request.field_manager.empty()) write.field_manager = request.field_manager;
  return UpdateLocked(resource, ns, name, std::move(patched), request.subresource, write);
}

Answer<Json> Store::ApplyPatchLocked(const Resource& resource, const std::string&,
                                     const std::string& name, const Json& live,
                                     const PatchRequest& request) {
  if (!request.patch.is_object()) {
    return tl::unexpected(BadRequest("an apply configuration must be an object"));
  }
  Json config = request.patch;
  if (auto ok = CheckKind(resource, config); !ok) return tl::unexpected(ok.error());
  FieldOwners owners = owners_[live["metadata"]["uid"]];
  ApplyResult result = Apply(live, config, {request.field_manager, true, request.subresource},
                             request.force, owners);
  if (!result.conflicts.empty()) {
    std::string list;
    Json causes = Json::array();
    for (const auto& [manager, path] : result.conflicts) {
      std::string who = "conflict with \"" + manager.name + "\"";
      if (!manager.subresource.empty()) who += " with subresource \"" + manager.subresource + "\"";
      if (!manager.applies) who += " using " + resource.ApiVersion();
      list += (list.empty() ? "" : ", ") + (who + ": " + path);
      causes.push_back({{"reason", "FieldManagerConflict"}, {"message", who}, {"field", path}});
    }
    size_t n = result.conflicts.size();
    Json status = Failure(409, "Conflict",
                          "Apply failed with " + std::to_string(n) +
                              (n == 1 ? " conflict: " : " conflicts: ") + list);
    status["details"] = {{"name", name}, {"causes", std::move(causes)}};
    return tl::unexpected(std::move(status));
  }
  owners_[live["metadata"]["uid"]] = std::move(owners);
  return std::move(result.object);
}

Answer<void> Store::Bind(const std::string& ns, const std::string& pod, const std::string& node) {
  std::lock_guard lock(mu_);
  Object live = Find(kube::Pods(), ns, pod);
  if (!live) return tl::unexpected(NotFound(kube::Pods(), pod));
  if (!(*live)["spec"].value("nodeName", "").empty()) {
    return tl::unexpected(Conflict(kube::Pods(), pod,
                                   "pod " + pod + " is already assigned to node \"" +
                                       (*live)["spec"].value("nodeName", "") + "\""));
  }
  Json bound = *live;
  bound["spec"]["nodeName"] = node;
  Json conditions = Json::array();
  for (const Json& c : bound["status"].value("conditions", Json::array())) {
    if (c.value("type", "") != "PodScheduled") conditions.push_back(c);
  }
  conditions.push_back(
      {{"type", "PodScheduled"}, {"status", "True"}, {"lastTransitionTime", Now()}});
  bound["status"]["conditions"] = std::move(conditions);
  Commit(kube::Pods(), {ns, pod}, live, std::move(bound));
  return {};
}

}  // namespace ringmaster::local
