#include "tests/sim/api_server.h"

#include "common/fields/fields.h"
#include "operator/api/time.h"

namespace ringmaster::app::sim {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Json;

tl::unexpected<Error> No(ErrorCode code, const std::string& message) {
  return tl::unexpected(Error{.code = code, .message = message});
}

Json& Meta(Json& object) { return object["metadata"]; }

const Json& Member(const Json& object, const char* field) { return fields::Member(object, field); }

// Of the metadata.
std::string Text(const Json& object, const char* field) {
  return fields::Text(Member(object, "metadata"), field);
}

bool Deleting(const Json& object) {
  return Member(Member(object, "metadata"), "deletionTimestamp").is_string();
}

}  // namespace

kube::Result<ObjectPtr> ApiServer::Get(const kube::Resource& resource,
                                       const std::string& name) const {
  const auto at = entries_.find({resource.plural, name});
  if (at == entries_.end()) return No(ErrorCode::kNotFound, resource.plural + " " + name);
  return at->second.object;
}

std::vector<ObjectPtr> ApiServer::All(const kube::Resource& resource) const {
  std::vector<ObjectPtr> all;
  for (const auto& [key, entry] : entries_) {
    if (key.first == resource.plural) all.push_back(entry.object);
  }
  return all;
}

kube::Result<ObjectPtr> ApiServer::Create(const kube::Resource& resource, Json object) {
  const Key key{resource.plural, Text(object, "name")};
  if (entries_.count(key) != 0) return No(ErrorCode::kAlreadyExists, key.second);
  Json& metadata = Meta(object);
  metadata["namespace"] = "default";
  metadata["uid"] = name_uid_(resource, object);
  metadata["generation"] = 1;
  metadata["creationTimestamp"] = api::FormatTime(clock_.wall());
  metadata["resourceVersion"] = std::to_string(++version_);
  auto stored = std::make_shared<const Json>(std::move(object));
  entries_[key].object = stored;
  watcher_(resource, {kube::WatchEvent::Type::kAdded, stored});
  return stored;
}

// `object`: as it is to be; what no writer may change stays as it was.
ObjectPtr ApiServer::Write(const kube::Resource& resource, Entry* entry, Json object) {
  const Json& before = *entry->object;
  const Json& fixed = before["metadata"];
  Json& metadata = Meta(object);
  for (const char* field :
       {"uid", "namespace", "creationTimestamp", "generation", "resourceVersion"})
    metadata[field] = fixed[field];
  if (Deleting(before)) metadata["deletionTimestamp"] = fixed["deletionTimestamp"];
  if (Member(object, "spec") != Member(before, "spec"))
    metadata["generation"] = metadata["generation"].get<std::int64_t>() + 1;
  if (object == before) return entry->object;
  metadata["resourceVersion"] = std::to_string(++version_);
  auto stored = std::make_shared<const Json>(std::move(object));
  entry->object = stored;
  const Key key{resource.plural, Text(*stored, "name")};
  if (!RemoveIfDue(resource, key)) watcher_(resource, {kube::WatchEvent::Type::kModified, stored});
  return stored;
}

kube::Result<ObjectPtr> ApiServer::Update(const kube::Resource& resource, const Json& object,
                                          const std::string& subresource) {
  const auto at = entries_.find({resource.plural, Text(object, "name")});
  if (at == entries_.end()) return No(ErrorCode::kNotFound, Text(object, "name"));
  const Json& before = *at->second.object;
  const std::string version = Text(object, "resourceVersion");
  if (!version.empty() && version != Text(before, "resourceVersion"))
    return No(ErrorCode::kConflict, Text(object, "name") + " has changed");
  Json whole = subresource == "status" ? before : object;
  if (const auto status = object.find("status"); subresource == "status") {
    whole["status"] = status == object.end() ? Json::object() : *status;
  } else if (before.contains("status")) {
    whole["status"] = before["status"];
  }
  return Write(resource, &at->second, std::move(whole));
}

kube::Result<ObjectPtr> ApiServer::Patch(const kube::Resource& resource, const std::string& name,
                                         Json patch, const std::string& subresource) {
  const auto at = entries_.find({resource.plural, name});
  if (at == entries_.end()) return No(ErrorCode::kNotFound, name);
  for (const char* condition : {"uid", "resourceVersion"}) {
    const std::string wanted = Text(patch, condition);
    if (!wanted.empty() && wanted != Text(*at->second.object, condition))
      return No(ErrorCode::kConflict, name + " is another by now");
    if (!wanted.empty()) Meta(patch).erase(condition);
  }
  if (subresource.empty()) patch.erase("status");
  Json whole = *at->second.object;
  whole.merge_patch(patch);
  return Write(resource, &at->second, std::move(whole));
}

kube::Result<void> ApiServer::Delete(const kube::Resource& resource, const std::string& name,
                                     const kube::DeleteOptions& options) {
  const Key key{resource.plural, name};
  const auto at = entries_.find(key);
  if (at == entries_.end()) return No(ErrorCode::kNotFound, name);
  Entry& entry = at->second;
  const Json& before = *entry.object;
  if (!options.uid.empty() && options.uid != Text(before, "uid"))
    return No(ErrorCode::kConflict, name + " is another by now");
  const bool pod = resource == kube::Pods();
  const bool placed = !fields::Text(Member(before, "spec"), "nodeName").empty();
  const auto grace = options.grace_period_seconds.value_or(static_cast<int>(
      fields::Integer(Member(before, "spec"), "terminationGracePeriodSeconds", 30)));
  entry.released = entry.released || !pod || !placed || grace == 0;
  if (!Deleting(before)) {
    const auto end = clock_.wall() + std::chrono::seconds(pod && placed ? grace : 0);
    Json object = before;
    Meta(object)["deletionTimestamp"] = api::FormatTime(end);
    Meta(object)["resourceVersion"] = std::to_string(++version_);
    entry.object = std::make_shared<const Json>(std::move(object));
    if (!RemoveIfDue(resource, key))
      watcher_(resource, {kube::WatchEvent::Type::kModified, entry.object});
    return {};
  }
  RemoveIfDue(resource, key);
  return {};
}

bool ApiServer::RemoveIfDue(const kube::Resource& resource, const Key& key) {
  const auto at = entries_.find(key);
  const ObjectPtr last = at->second.object;
  const bool held = !Member(Member(*last, "metadata"), "finalizers").empty();
  if (!at->second.released || !Deleting(*last) || held) return false;
  entries_.erase(at);
  watcher_(resource, {kube::WatchEvent::Type::kDeleted, last});
  return true;
}

// ---- The operator's calls

template <class Call>
auto OperatorsApi::Do(const Call& call) -> decltype(call()) {
  const CallFate fate = fate_();
  if (fate == CallFate::kRefused) return No(ErrorCode::kUnavailable, "no connection");
  auto result = call();
  if (fate == CallFate::kAnswerLost) return No(ErrorCode::kUnavailable, "no answer");
  return result;
}

template <class Call>
kube::Result<Json> OperatorsApi::Ask(const Call& call) {
  const kube::Result<ObjectPtr> answer = Do(call);
  if (!answer) return tl::unexpected(answer.error());
  return **answer;
}

kube::Result<Json> OperatorsApi::Get(const kube::Resource& resource, const std::string&,
                                     const std::string& name) {
  return Ask([&] { return server_->Get(resource, name); });
}

kube::Result<kube::List> OperatorsApi::ListAll(const kube::Resource& resource, const std::string&,
                                               const kube::ListOptions&) {
  return Do([&]() -> kube::Result<kube::List> {
    kube::List list{.items = {}, .resource_version = "1"};
    for (const ObjectPtr& object : server_->All(resource)) list.items.push_back(*object);
    return list;
  });
}

kube::Result<Json> OperatorsApi::Create(const kube::Resource& resource, const std::string&,
                                        const Json& object) {
  return Ask([&] { return server_->Create(resource, object); });
}

kube::Result<Json> OperatorsApi::Update(const kube::Resource& resource, const std::string&,
                                        const Json& object, const std::string& subresource) {
  return Ask([&] { return server_->Update(resource, object, subresource); });
}

kube::Result<Json> OperatorsApi::Patch(const kube::Resource& resource, const std::string&,
                                       const std::string& name, const Json& patch,
                                       const kube::PatchOptions& options) {
  return Ask([&] { return server_->Patch(resource, name, patch, options.subresource); });
}

kube::Result<void> OperatorsApi::Delete(const kube::Resource& resource, const std::string&,
                                        const std::string& name,
                                        const kube::DeleteOptions& options) {
  return Do([&] { return server_->Delete(resource, name, options); });
}

kube::Result<void> OperatorsApi::Watch(const kube::Resource&, const std::string&,
                                       const kube::WatchOptions&, const kube::WatchHandler&,
                                       std::stop_token) {
  return No(ErrorCode::kUnavailable, "watches are told by the simulation");
}

kube::Result<void> OperatorsApi::PodLog(const std::string&, const std::string&, const std::string&,
                                        bool, const std::function<bool(std::string_view)>&,
                                        std::stop_token) {
  return No(ErrorCode::kUnavailable, "there are no logs");
}

}  // namespace ringmaster::app::sim
