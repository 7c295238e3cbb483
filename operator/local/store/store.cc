#include "operator/local/store/store.h"

#include <algorithm>

#include "common/fields/fields.h"
#include "operator/api/time.h"
#include "operator/kube/resources.h"
#include "operator/local/store/admission.h"
#include "operator/local/store/metadata_checks.h"
#include "operator/local/store/pod_types.h"
#include "operator/local/store/volume_kinds.h"
#include "operator/local/store/write_rules.h"

namespace ringmaster::local {
namespace {

std::optional<uint64_t> ParseVersion(const std::string& text) {
  if (text.empty() || text.size() > 19 ||
      !std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); })) {
    return std::nullopt;
  }
  return std::stoull(text);
}

Answer<Selection> Select(const Resource& resource, const std::string& ns, const std::string& labels,
                         const std::string& fields) {
  auto l = kube::LabelSelector::Parse(labels);
  if (!l) return tl::unexpected(BadRequest(l.error()));
  auto f = kube::FieldSelector::Parse(fields, SelectableFields(resource));
  if (!f) return tl::unexpected(BadRequest(f.error()));
  return Selection{kube::FindResource(resource.group, resource.version, resource.plural),
                   resource.namespaced ? ns : "", *l, *f};
}

Answer<void> CheckNamespace(const VersionedObjects& objects, const Resource& resource,
                            const std::string& ns) {
  if (!resource.namespaced) return {};
  const Object found = objects.Find(kube::Namespaces(), "", ns);
  if (!found) return tl::unexpected(NotFound(kube::Namespaces(), ns));
  if ((*found)["metadata"].contains("deletionTimestamp")) {
    return tl::unexpected(Failure(
        403, "Forbidden",
        "unable to create new content in namespace " + ns + " because it is being terminated"));
  }
  return {};
}

// A value of the wrong JSON type anywhere in an object is the caller's mistake.
tl::unexpected<Json> Malformed(const Json::exception& e) {
  return tl::unexpected(BadRequest(std::string("malformed object: ") + e.what()));
}

// Nobody applies an event, and there are thousands.
bool HasFieldOwners(const Resource& resource) { return resource != kube::Events(); }

}  // namespace

Store::Store(StoreOptions options)
    : options_(std::move(options)),
      jobs_(options_.crd_yaml),
      objects_({.changes = options_.history, .age = options_.history_age}),
      garbage_collector_(objects_, fields_) {
  for (const char* ns : {"default", "kube-system"}) {
    (void)Create(kube::Namespaces(), "", {{"metadata", {{"name", ns}}}}, {});
  }
  // Their definition came after the first versions, as on a real cluster.
  const sync::MutexLock lock(&mu_);
  objects_.ForgetHistory(kube::HorovodJobs());
}

std::chrono::system_clock::time_point Store::Now() const {
  return options_.now ? options_.now() : std::chrono::system_clock::now();
}

Answer<Json> Store::Get(const Resource& resource, const std::string& ns,
                        const std::string& name) const {
  const sync::MutexLock lock(&mu_);
  const Object object = objects_.Find(resource, ns, name);
  if (!object) return tl::unexpected(NotFound(resource, name));
  return *object;
}

Answer<ListAnswer> Store::List(const Resource& resource, const std::string& ns,
                               const ListRequest& request) const {
  const auto selection = Select(resource, ns, request.label_selector, request.field_selector);
  if (!selection) return tl::unexpected(selection.error());
  const sync::MutexLock lock(&mu_);
  ListAnswer answer{{}, std::to_string(objects_.version())};
  for (const auto& [key, object] : objects_.All(resource)) {
    if (selection->Matches(*object)) answer.items.push_back(*object);
  }
  return answer;
}

Answer<WatchCursor> Store::Watch(const Resource& resource, const std::string& ns,
                                 const WatchRequest& request) {
  const auto selection = Select(resource, ns, request.label_selector, request.field_selector);
  if (!selection) return tl::unexpected(selection.error());
  const sync::MutexLock lock(&mu_);
  if (request.resource_version.empty() || request.resource_version == "0") {
    std::deque<Json> initial;
    for (const auto& [key, object] : objects_.All(resource)) {
      if (selection->Matches(*object)) initial.push_back(*object);
    }
    return WatchCursor(*this, *selection, objects_.version(), std::move(initial));
  }
  const auto version = ParseVersion(request.resource_version);
  if (!version) {
    return tl::unexpected(BadRequest("Invalid value: \"" + request.resource_version +
                                     "\": invalid resource version"));
  }
  // A version from the future is one of an earlier life of this store: its reader must list again.
  if (*version < objects_.forgotten(resource) || *version > objects_.version()) {
    return tl::unexpected(Expired(*version, objects_.forgotten(resource)));
  }
  return WatchCursor(*this, *selection, *version, {});
}

Answer<std::optional<kube::WatchEvent>> WatchCursor::Next(std::chrono::milliseconds timeout) {
  if (initial_.empty()) return store_->NextEvent(selection_, version_, timeout);
  kube::WatchEvent event{kube::WatchEvent::Type::kAdded, std::move(initial_.front())};
  initial_.pop_front();
  return event;
}

Answer<std::optional<kube::WatchEvent>> Store::NextEvent(const Selection& selection,
                                                         uint64_t& version,
                                                         std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const sync::MutexLock lock(&mu_);
  const uint64_t wakes = wakes_;
  while (true) {
    auto event = objects_.NextEvent(selection, version);
    if (!event || *event) return event;
    if (closed_ || wakes_ != wakes || !changed_.WaitUntil(&mu_, deadline)) return std::nullopt;
  }
}

uint64_t Store::version() const {
  const sync::MutexLock lock(&mu_);
  return objects_.version();
}

void Store::Close() {
  const sync::MutexLock lock(&mu_);
  closed_ = true;
  changed_.NotifyAll();
}

void Store::WakeAll() {
  const sync::MutexLock lock(&mu_);
  ++wakes_;
  changed_.NotifyAll();
}

Answer<Json> Store::GetScale(const std::string& ns, const std::string& name) const {
  auto live = Get(kube::HorovodJobs(), ns, name);
  if (!live) return live;
  return jobs_.ScaleOf(*live);
}

Answer<Json> Store::Delete(const Resource& resource, const std::string& ns, const std::string& name,
                           const kube::DeleteOptions& options, bool dry_run) {
  const sync::MutexLock lock(&mu_);
  changed_.NotifyAll();
  try {
    if (dry_run) return garbage_collector_.Check(resource, ns, name, options);
    return garbage_collector_.Delete(resource, ns, name, options, Now());
  } catch (const Json::exception& e) {
    return Malformed(e);
  }
}

Answer<Json> Store::Create(const Resource& resource, const std::string& ns, Json object,
                           const WriteOptions& options) {
  const sync::MutexLock lock(&mu_);
  try {
    return CreateLocked(resource, ns, std::move(object), options);
  } catch (const Json::exception& e) {
    return Malformed(e);
  }
}

Answer<Json> Store::CreateLocked(const Resource& resource, const std::string& url_ns, Json object,
                                 const WriteOptions& options) {
  if (auto ok = CheckKind(resource, object); !ok) return tl::unexpected(ok.error());
  const auto ns = NamespaceToCreateIn(resource, url_ns, object["metadata"]);
  if (!ns) return tl::unexpected(ns.error());
  if (auto ok = CheckNamespace(objects_, resource, *ns); !ok) return tl::unexpected(ok.error());
  const auto& others = objects_.All(resource);
  const auto name = NameToCreate(resource, object["metadata"], [&](const std::string& one) {
    return others.contains({*ns, one});
  });
  if (!name) return tl::unexpected(name.error());
  const auto now = Now();
  SetIdentity(resource, *ns, *name, api::FormatTime(now), object);
  if (resource == kube::Pods()) DropNulls(object);
  if (auto ok = CheckFormat(resource, object); !ok) return tl::unexpected(ok.error());
  SetDefaults(resource, object);
  if (resource == kube::HorovodJobs()) {
    auto ok = jobs_.Admit(object, *name, nullptr, options.strict_fields, options.dropped);
    if (!ok) return tl::unexpected(ok.error());
  }
  std::vector<Cause> causes = CheckMetadata(object["metadata"]);
  if (causes.empty() && !options.core_event) causes = CheckCreate(resource, object);
  if (causes.empty() && options_.local_volumes_only) causes = CheckVolumes(resource, object);
  if (!causes.empty()) return tl::unexpected(Invalid(resource, *name, causes));
  if (options.dry_run) return object;

  if (resource == kube::Events()) DropOldEvents();
  const ObjectKey key{*ns, *name};
  Json created = objects_.Put(resource, key, std::move(object));
  changed_.NotifyAll();
  if (HasFieldOwners(resource))
    fields_.Claim(Json::object(), created, {options.field_manager, false, ""});
  garbage_collector_.Created(resource, key, created, now);
  return created;
}

// As a cluster keeps them. Looked for once in a while: there may be thousands.
void Store::DropOldEvents() {
  constexpr std::chrono::hours kKept{1};
  constexpr std::chrono::minutes kLook{1};
  const auto now = Now();
  if (now - events_dropped_at_ < kLook) return;
  events_dropped_at_ = now;
  // Texts of one format, so they are in the order of time.
  const std::string oldest = api::FormatTime(now - kKept);
  std::vector<ObjectKey> old;
  for (const auto& [key, event] : objects_.All(kube::Events())) {
    const std::string seen = std::max({fields::TextAt(*event, "/metadata/creationTimestamp"),
                                       fields::TextAt(*event, "/series/lastObservedTime"),
                                       fields::Text(*event, "deprecatedLastTimestamp")});
    if (seen < oldest) old.push_back(key);
  }
  for (const ObjectKey& key : old) garbage_collector_.Remove(kube::Events(), key, now);
}

Answer<Json> Store::Update(const Resource& resource, const std::string& ns, const std::string& name,
                           Json object, const std::string& subresource,
                           const WriteOptions& options) {
  const sync::MutexLock lock(&mu_);
  try {
    return UpdateLocked(resource, ns, name, std::move(object), subresource, options);
  } catch (const Json::exception& e) {
    return Malformed(e);
  }
}

Answer<Json> Store::UpdateLocked(const Resource& resource, const std::string& ns,
                                 const std::string& name, Json object,
                                 const std::string& subresource, const WriteOptions& options) {
  const Object live = objects_.Find(resource, ns, name);
  if (subresource == "scale") {
    if (!live) return tl::unexpected(NotFound(resource, name));
    return ScaleLocked(resource, *live, object, options);
  }
  const Traits traits = TraitsOf(resource);
  if (!subresource.empty() && !(subresource == "status" && traits.status))
    return tl::unexpected(NoSuchPath());
  if (auto ok = CheckKind(resource, object); !ok) return tl::unexpected(ok.error());
  if (std::string named = fields::Text(object["metadata"], "name"); named != name) {
    return tl::unexpected(BadRequest("the name of the object (" + named +
                                     ") does not match the name on the URL (" + name + ")"));
  }
  if (!live) return tl::unexpected(NotFound(resource, name));
  if (auto ok = PrepareUpdate(resource, *live, object, subresource); !ok) {
    return tl::unexpected(ok.error());
  }
  if (resource == kube::HorovodJobs()) {
    auto ok = jobs_.Admit(object, name, live.get(), options.strict_fields, options.dropped);
    if (!ok) return tl::unexpected(ok.error());
  }
  if (resource == kube::Pods()) DropNulls(object);
  if (auto ok = CheckFormat(resource, object); !ok) return tl::unexpected(ok.error());
  if (subresource.empty()) {
    std::vector<Cause> causes = CheckMetadata(object["metadata"]);
    if (causes.empty()) causes = CheckUpdate(resource, *live, object);
    if (causes.empty() && options_.local_volumes_only) causes = CheckVolumes(resource, object);
    if (!causes.empty()) return tl::unexpected(Invalid(resource, name, causes));
  }
  object["metadata"]["resourceVersion"] = (*live)["metadata"]["resourceVersion"];
  if (traits.generation && !SameSpec(*live, object)) {
    object["metadata"]["generation"] = (*live)["metadata"].value("generation", 0) + 1;
  }
  if (object == *live || options.dry_run) return object;
  const Json& meta = object["metadata"];
  const bool done = meta.contains("deletionTimestamp") &&
                    meta.value("deletionGracePeriodSeconds", 0) == 0 &&
                    !meta.contains("finalizers");
  const ObjectKey key{resource.namespaced ? ns : "", name};
  Json updated = objects_.Put(resource, key, std::move(object));
  changed_.NotifyAll();
  if (!options.applied && HasFieldOwners(resource)) {
    fields_.Claim(*live, updated, {options.field_manager, false, subresource});
  }
  if (done) garbage_collector_.Remove(resource, key, Now());
  return updated;
}

Answer<Json> Store::ScaleLocked(const Resource& resource, const Json& live, const Json& scale,
                                const WriteOptions& options) {
  if (resource != kube::HorovodJobs()) return tl::unexpected(NoSuchPath());
  auto scaled = jobs_.WithScale(live, scale);
  if (!scaled) return scaled;
  const Json& meta = live["metadata"];
  auto updated = UpdateLocked(resource, meta["namespace"], meta["name"], std::move(*scaled), "",
                              {.dry_run = options.dry_run, .field_manager = options.field_manager});
  if (!updated) return updated;
  return jobs_.ScaleOf(*updated);
}

Answer<Json> Store::Patch(const Resource& resource, const std::string& ns, const std::string& name,
                          const PatchRequest& request, const WriteOptions& options) {
  const sync::MutexLock lock(&mu_);
  try {
    return PatchLocked(resource, ns, name, request, options);
  } catch (const Json::exception& e) {
    return Malformed(e);
  }
}

Answer<Json> Store::PatchLocked(const Resource& resource, const std::string& ns,
                                const std::string& name, const PatchRequest& request,
                                const WriteOptions& options) {
  const Object live = objects_.Find(resource, ns, name);
  const bool apply = request.type == PatchRequest::Type::kApply;
  if (apply && request.field_manager.empty()) {
    return tl::unexpected(Invalid(
        {"meta.k8s.io", "v1", "patchoptions", "PatchOptions", false}, "",
        {{"FieldValueRequired", "Required value: is required for apply patch", "fieldManager"}}));
  }
  if (!live && apply && request.subresource.empty()) {
    return CreateByApply(resource, ns, name, request, options);
  }
  if (!live) return tl::unexpected(NotFound(resource, name));
  Json patched = request.subresource == "scale" ? jobs_.ScaleOf(*live) : *live;
  FieldOwnership::Owners owners;
  switch (request.type) {
    case PatchRequest::Type::kMerge:
      if (!request.patch.is_object()) {
        return tl::unexpected(BadRequest("a merge patch must be a JSON object"));
      }
      patched.merge_patch(request.patch);
      break;
    case PatchRequest::Type::kJson:
      if (auto ok = ApplyJsonPatch(request.patch, patched); !ok) return tl::unexpected(ok.error());
      break;
    case PatchRequest::Type::kApply: {
      if (!request.patch.is_object()) {
        return tl::unexpected(BadRequest("an apply configuration must be an object"));
      }
      Json config = request.patch;
      if (auto ok = CheckKind(resource, config); !ok) return tl::unexpected(ok.error());
      auto applied =
          fields_.Apply(resource, patched, config,
                        {request.field_manager, true, request.subresource}, request.force);
      if (!applied) return tl::unexpected(applied.error());
      patched = std::move(applied->object);
      owners = std::move(applied->owners);
      break;
    }
  }
  WriteOptions write = options;
  write.applied = apply;
  if (!request.field_manager.empty()) write.field_manager = request.field_manager;
  auto updated = UpdateLocked(resource, ns, name, std::move(patched), request.subresource, write);
  if (apply && updated && !options.dry_run && objects_.Find(resource, ns, name)) {
    fields_.Settle((*live)["metadata"]["uid"], std::move(owners));
  }
  return updated;
}

Answer<Json> Store::CreateByApply(const Resource& resource, const std::string& ns,
                                  const std::string& name, const PatchRequest& request,
                                  const WriteOptions& options) {
  Json wanted = request.patch;
  if (auto ok = CheckKind(resource, wanted); !ok) return tl::unexpected(ok.error());
  wanted["metadata"]["name"] = name;
  auto created = CreateLocked(resource, ns, std::move(wanted), options);
  if (created && !options.dry_run) {
    fields_.CreatedByApply((*created)["metadata"]["uid"], request.patch,
                           {request.field_manager, true, ""});
  }
  return created;
}

Answer<void> Store::Bind(const std::string& ns, const std::string& pod, const std::string& node) {
  const sync::MutexLock lock(&mu_);
  const Object live = objects_.Find(kube::Pods(), ns, pod);
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
  conditions.push_back({{"type", "PodScheduled"},
                        {"status", "True"},
                        {"lastTransitionTime", api::FormatTime(Now())}});
  bound["status"]["conditions"] = std::move(conditions);
  objects_.Put(kube::Pods(), {ns, pod}, std::move(bound));
  changed_.NotifyAll();
  return {};
}

}  // namespace ringmaster::local
