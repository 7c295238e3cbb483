#include "operator/local/store/in_memory_api.h"

#include "common/fields/fields.h"
#include "operator/kube/errors.h"
#include "operator/kube/resources.h"
#include "operator/local/store/store.h"

namespace ringmaster::local {
namespace {

using kube::Asked;
using kube::Json;
using kube::Resource;

// An answer whose error is a Status becomes a Result, with the words that the REST client would
// use.
template <class T>
kube::Result<T> ToResult(Answer<T> answer, const std::string& asked) {
  if (answer) return kube::Result<T>(std::move(answer.value()));
  return tl::unexpected(
      kube::ErrorFromStatus(asked, answer.error().value("code", 500), answer.error()));
}

kube::Result<void> Known(const Resource& resource, const std::string& asked) {
  if (kube::FindResource(resource.group, resource.version, resource.plural)) return {};
  return tl::unexpected(kube::ErrorFromStatus(asked, 404, NoSuchPath()));
}

std::string NameOf(const Json& object) {
  return fields::Text(fields::Member(object, "metadata"), "name");
}

}  // namespace

InMemoryApi::InMemoryApi(std::shared_ptr<Store> store) : store_(std::move(store)) {}
InMemoryApi::~InMemoryApi() = default;

kube::Result<Json> InMemoryApi::Get(const Resource& resource, const std::string& ns,
                                    const std::string& name) {
  std::string asked = Asked("get", resource, ns, name);
  if (auto ok = Known(resource, asked); !ok) return tl::unexpected(ok.error());
  return ToResult(store_->Get(resource, ns, name), asked);
}

kube::Result<kube::List> InMemoryApi::ListAll(const Resource& resource, const std::string& ns,
                                              const kube::ListOptions& options) {
  std::string asked = Asked("list", resource, ns, "");
  if (auto ok = Known(resource, asked); !ok) return tl::unexpected(ok.error());
  auto answer =
      ToResult(store_->List(resource, ns, {options.label_selector, options.field_selector}), asked);
  if (!answer) return tl::unexpected(answer.error());
  return kube::List{std::move(answer->items), answer->resource_version};
}

kube::Result<Json> InMemoryApi::Create(const Resource& resource, const std::string& ns,
                                       const Json& object) {
  return CreateWith(resource, ns, object, {});
}

kube::Result<Json> InMemoryApi::CreateWith(const Resource& resource, const std::string& ns,
                                           const Json& object, const kube::CreateOptions& options) {
  std::string asked = Asked("create", resource, ns, NameOf(object));
  if (auto ok = Known(resource, asked); !ok) return tl::unexpected(ok.error());
  WriteOptions write;
  write.strict_fields = options.field_validation == "Strict";
  write.dry_run = options.dry_run;
  return ToResult(store_->Create(resource, ns, object, write), asked);
}

kube::Result<Json> InMemoryApi::Update(const Resource& resource, const std::string& ns,
                                       const Json& object, const std::string& subresource) {
  std::string asked = Asked("update", resource, ns, NameOf(object), subresource);
  if (auto ok = Known(resource, asked); !ok) return tl::unexpected(ok.error());
  return ToResult(store_->Update(resource, ns, NameOf(object), object, subresource), asked);
}

kube::Result<Json> InMemoryApi::Patch(const Resource& resource, const std::string& ns,
                                      const std::string& name, const Json& patch,
                                      const kube::PatchOptions& options) {
  std::string asked = Asked("patch", resource, ns, name, options.subresource);
  if (auto ok = Known(resource, asked); !ok) return tl::unexpected(ok.error());
  PatchRequest request;
  request.type = options.type == kube::PatchType::kApply ? PatchRequest::Type::kApply
                                                         : PatchRequest::Type::kMerge;
  request.patch = patch;
  request.subresource = options.subresource;
  request.field_manager = options.field_manager;
  request.force = options.force;
  return ToResult(store_->Patch(resource, ns, name, request), asked);
}

kube::Result<void> InMemoryApi::Delete(const Resource& resource, const std::string& ns,
                                       const std::string& name,
                                       const kube::DeleteOptions& options) {
  std::string asked = Asked("delete", resource, ns, name);
  if (auto ok = Known(resource, asked); !ok) return ok;
  auto result = ToResult(store_->Delete(resource, ns, name, options), asked);
  if (!result) return tl::unexpected(result.error());
  return {};
}

kube::Result<void> InMemoryApi::Watch(const Resource& resource, const std::string& ns,
                                      const kube::WatchOptions& options,
                                      const kube::WatchHandler& on_event, std::stop_token stop) {
  std::string asked = Asked("watch", resource, ns, "");
  if (auto ok = Known(resource, asked); !ok) return ok;
  auto cursor = ToResult(
      store_->Watch(resource, ns,
                    {options.label_selector, options.field_selector, options.resource_version}),
      asked);
  if (!cursor) return tl::unexpected(cursor.error());
  std::stop_callback wake(stop, [this] { store_->WakeAll(); });
  auto deadline = std::chrono::steady_clock::now() + options.timeout;
  while (!stop.stop_requested()) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left <= std::chrono::milliseconds(0)) break;
    // Short waits: a wake-up between the check of `stop` and the wait costs at most one of them.
    auto event = ToResult(cursor->Next(std::min(left, std::chrono::milliseconds(100))), asked);
    if (!event) return tl::unexpected(event.error());
    if (*event && !on_event(**event)) return {};
  }
  // As the server does before it ends a watch: the reader can go on from here.
  kube::WatchEvent bookmark{
      kube::WatchEvent::Type::kBookmark,
      {{"kind", resource.kind},
       {"apiVersion", resource.ApiVersion()},
       {"metadata", {{"resourceVersion", std::to_string(cursor->version())}}}}};
  if (!stop.stop_requested()) on_event(bookmark);
  return {};
}

kube::Result<void> InMemoryApi::PodLog(const std::string& ns, const std::string& pod,
                                       const std::string&, bool,
                                       const std::function<bool(std::string_view)>&,
                                       std::stop_token) {
  return tl::unexpected(
      kube::ErrorFromStatus(Asked("log", kube::Pods(), ns, pod), 404, NotFound(kube::Pods(), pod)));
}

}  // namespace ringmaster::local
