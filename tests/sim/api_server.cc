#include "tests/sim/api_server.h"

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

std::string Text(const Json& object, const char* field) {
  const auto metadata = object.find("metadata");
  return metadata == object.end() ? "" : metadata->value(field, "");
}

bool Deleting(const Json& object) { return !Text(object, "deletionTimestamp").empty(); }

}  // namespace

kube::Result<Json> ApiServer::Get(const kube::Resource& resource, const std::string& name) const {
  const auto at = entries_.find({resource.plural, name});
  if (at == entries_.end()) return No(ErrorCode::kNotFound, resource.plural + " " + name);
  return at->second.object;
}

std::vector<Json> ApiServer::All(const kube::Resource& resource) const {
  std::vector<Json> all;
  for (const auto& [key, entry] : entries_) {
    if (key.first == resource.plural) all.push_back(entry.object);
  }
  return all;
}

kube::Result<Json> ApiServer::Create(const kube::Resource& resource, Json object) {
  const Key key{resource.plural, Text(object, "name")};
  if (entries_.count(key) != 0) return No(ErrorCode::kAlreadyExists, key.second);
  Json& metadata = Meta(object);
  metadata["namespace"] = "default";
  metadata["uid"] = name_uid_(resource, object);
  metadata["generation"] = 1;
  metadata["creationTimestamp"] = api::FormatTime(clock_.wall());
  metadata["resourceVersion"] = std::to_string(++version_);
  entries_[key].object = object;
  watcher_(resource, {kube::WatchEvent::Type::kAdded, object});
  return object;
}

// The object as it is to be, with what no writer may change as it was.
kube::Result<Json> ApiServer::Write(const kube::Resource& resource, Entry* entry, Json object) {
  Json& before = entry->object;
  Json& metadata = Meta(object);
  for (const char* fixed : {"uid", "namespace", "creationTimestamp", "generation"})
    metadata[fixed] = Meta(before)[fixed];
  if (Deleting(before)) metadata["deletionTimestamp"] = Meta(before)["deletionTimestamp"];
  if (object.value("spec", Json()) != before.value("spec", Json()))
    metadata["generation"] = metadata["generation"].get<std::int64_t>() + 1;
  metadata["resourceVersion"] = Meta(before)["resourceVersion"];
  if (object == before) return object;
  metadata["resourceVersion"] = std::to_string(++version_);
  before = object;
  const Key key{resource.plural, Text(object, "name")};
  if (!RemoveIfDue(resource, key)) watcher_(resource, {kube::WatchEvent::Type::kModified, object});
  return object;
}

kube::Result<Json> ApiServer::Update(const kube::Resource& resource, Json object,
                                     const std::string& subresource) {
  const auto at = entries_.find({resource.plural, Text(object, "name")});
  if (at == entries_.end()) return No(ErrorCode::kNotFound, Text(object, "name"));
  const std::string version = Text(object, "resourceVersion");
  if (!version.empty() && version != Text(at->second.object, "resourceVersion"))
    return No(ErrorCode::kConflict, Text(object, "name") + " has changed");
  Json whole = subresource == "status" ? at->second.object : object;
  if (const auto status = object.find("status"); subresource == "status") {
    whole["status"] = status == object.end() ? Json::object() : *status;
  } else if (at->second.object.contains("status")) {
    whole["status"] = at->second.object["status"];
  }
  return Write(resource, &at->second, std::move(whole));
}

kube::Result<Json> ApiServer::Patch(const kube::Resource& resource, const std::string& name,
                                    Json patch, const std::string& subresource) {
  const auto at = entries_.find({resource.plural, name});
  if (at == entries_.end()) return No(ErrorCode::kNotFound, name);
  for (const char* condition : {"uid", "resourceVersion"}) {
    const std::string wanted = Text(patch, condition);
    if (!wanted.empty() && wanted != Text(at->second.object, condition))
      return No(ErrorCode::kConflict, name + " is another by now");
    if (!wanted.empty()) Meta(patch).erase(condition);
  }
  if (subresource.empty()) patch.erase("status");
  Json whole = at->second.object;
  whole.merge_patch(patch);
  return Write(resource, &at->second, std::move(whole));
}

kube::Result<void> ApiServer::Delete(const kube::Resource& resource, const std::string& name,
                                     const kube::DeleteOptions& options) {
  const Key key{resource.plural, name};
  const auto at = entries_.find(key);
  if (at == entries_.end()) return No(ErrorCode::kNotFound, name);
  Entry& entry = at->second;
  if (!options.uid.empty() && options.uid != Text(entry.object, "uid"))
    return No(ErrorCode::kConflict, name + " is another by now");
  const bool pod = resource == kube::Pods();
  const bool placed = entry.object.value("/spec/nodeName"_json_pointer, "") != "";
  const int grace = options.grace_period_seconds.value_or(
      entry.object.value("/spec/terminationGracePeriodSeconds"_json_pointer, 30));
  entry.released = entry.released || !pod || !placed || grace == 0;
  if (!Deleting(entry.object)) {
    const auto end = clock_.wall() + std::chrono::seconds(pod && placed ? grace : 0);
    Meta(entry.object)["deletionTimestamp"] = api::FormatTime(end);
    Meta(entry.object)["resourceVersion"] = std::to_string(++version_);
    if (!RemoveIfDue(resource, key))
      watcher_(resource, {kube::WatchEvent::Type::kModified, entry.object});
    return {};
  }
  RemoveIfDue(resource, key);
  return {};
}

bool ApiServer::RemoveIfDue(const kube::Resource& resource, const Key& key) {
  const auto at = entries_.find(key);
  const Json& object = at->second.object;
  const bool held = !object.value("/metadata/finalizers"_json_pointer, Json::array()).empty();
  if (!at->second.released || !Deleting(object) || held) return false;
  const Json last = object;
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

kube::Result<Json> OperatorsApi::Get(const kube::Resource& resource, const std::string&,
                                     const std::string& name) {
  return Do([&] { return server_->Get(resource, name); });
}

kube::Result<kube::List> OperatorsApi::ListAll(const kube::Resource& resource, const std::string&,
                                               const kube::ListOptions&) {
  return Do([&]() -> kube::Result<kube::List> { return kube::List{server_->All(resource), "1"}; });
}

kube::Result<Json> OperatorsApi::Create(const kube::Resource& resource, const std::string&,
                                        const Json& object) {
  return Do([&] { return server_->Create(resource, object); });
}

kube::Result<Json> OperatorsApi::Update(const kube::Resource& resource, const std::string&,
                                        const Json& object, const std::string& subresource) {
  return Do([&] { return server_->Update(resource, object, subresource); });
}

kube::Result<Json> OperatorsApi::Patch(const kube::Resource& resource, const std::string&,
                                       const std::string& name, const Json& patch,
                                       const kube::PatchOptions& options) {
  return Do([&] { return server_->Patch(resource, name, patch, options.subresource); });
}

kube::Result<void> OperatorsApi::Delete(const kube::Resource& resource, const std::string&,
                                        const std::string& name,
                                        const kube::DeleteOptions& options) {
  return Do([&] { return server_->Delete(resource, name, options); });
}

kube::Result<void> OperatorsApi::Watch(const kube::Resource&, const std::string&,
                                       const kube::WatchOptions&,
                                       const std::function<bool(const kube::WatchEvent&)>&,
                                       std::stop_token) {
  return No(ErrorCode::kUnavailable, "watches are told by the simulation");
}

kube::Result<void> OperatorsApi::PodLog(const std::string&, const std::string&, const std::string&,
                                        bool, const std::function<bool(std::string_view)>&,
                                        std::stop_token) {
  return No(ErrorCode::kUnavailable, "there are no logs");
}

}  // namespace ringmaster::app::sim
