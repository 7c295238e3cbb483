#include "operator/kube/kube_client.h"

#include <algorithm>
#include <utility>

#include "common/fields/fields.h"
#include "operator/kube/caller.h"
#include "operator/kube/parse_object.h"
#include "operator/kube/resources.h"

namespace ringmaster::kube {
namespace {

using Query = std::vector<std::pair<std::string, std::string>>;

// JSON must be UTF-8, so an object that isn't can't be sent.
Result<std::string> Encode(const CallContext& context, const Json& object) {
  try {
    return object.dump();
  } catch (const Json::exception& e) {
    return tl::unexpected(
        Error{ErrorCode::kInvalid, 0, "", context.text + ": the object is not UTF-8: " + e.what()});
  }
}

std::string WithQuery(std::string path, const Query& query) {
  char separator = '?';
  for (const auto& [name, value] : query) {
    if (value.empty()) continue;
    path += separator + name + "=" + PercentEncode(value);
    separator = '&';
  }
  return path;
}

int Number(const Json& object, const char* key, int otherwise) {
  auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<int>() : otherwise;
}

std::string NameOf(const Json& object) {
  return object.is_object() ? fields::Text(object.value("metadata", Json()), "name") : "";
}

// The server requires apiVersion and kind; callers may leave them out.
Json Typed(const Resource& resource, Json object) {
  if (object.is_object()) {
    if (!object.contains("apiVersion")) object["apiVersion"] = resource.ApiVersion();
    if (!object.contains("kind")) object["kind"] = resource.kind;
  }
  return object;
}

Json DeleteBody(const DeleteOptions& options) {
  Json body = {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  return body;
}

// Splits a stream into lines of JSON and passes each on as an event.
class EventReader {
 public:
  EventReader(const CallContext& context, Unread unread, const WatchHandler& on_event)
      : asked_(context.text), unread_(unread), on_event_(on_event) {}

  bool operator()(std::string_view data) {
    size_t seen = buffer_.size();
    buffer_.append(data);
    size_t begin = 0;
    for (size_t end; (end = buffer_.find('\n', std::max(begin, seen))) != std::string::npos;
         begin = end + 1) {
      if (end > begin && !Line(std::string_view(buffer_).substr(begin, end - begin))) return false;
    }
    buffer_.erase(0, begin);
    if (buffer_.size() <= kLongestLine) return true;
    error_ = Internal(asked_, "a line of the watch is longer than 64 MiB");
    return false;
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  static constexpr size_t kLongestLine = 64u << 20;

  bool Line(std::string_view text) {
    Json line = ParseObjectOrDiscard(text, {.bytes = kLongestLine, .depth = 128}, unread_);
    if (!line.is_object() || !line.contains("type") || !line.contains("object") ||
        !line["object"].is_object()) {
      error_ = Internal(asked_, "a line of the watch is not an event");
      return false;
    }
    const Json& type = line["type"];
    WatchEvent event{WatchEvent::Type::kAdded, std::move(line["object"])};
    if (type == "MODIFIED")
      event.type = WatchEvent::Type::kModified;
    else if (type == "DELETED")
      event.type = WatchEvent::Type::kDeleted;
    else if (type == "BOOKMARK")
      event.type = WatchEvent::Type::kBookmark;
    else if (type == "ERROR") {
      error_ = ErrorFromStatus(asked_, Number(event.object, "code", 500), event.object);
      return false;
    } else if (type != "ADDED") {
      return true;  // an event type that this client doesn't know
    }
    return on_event_(std::move(event));
  }

  const std::string& asked_;
  const Unread unread_;
  const WatchHandler& on_event_;
  std::string buffer_;
  std::optional<Error> error_;
};

class KubeClient : public KubeApi {
 public:
  KubeClient(const ClientConfig& config, std::unique_ptr<HttpConnections> http)
      : field_validation_(config.field_validation), caller_(config, std::move(http)) {}

  Result<Json> Get(const Resource& resource, const std::string& ns,
                   const std::string& name) override {
    CallContext context("get", resource, ns, name);
    if (name.empty()) return tl::unexpected(EmptyName(context));
    return caller_.Call(context, {"GET", ResourcePath(resource, ns, name, "")});
  }

  Result<List> ListAll(const Resource& resource, const std::string& ns,
                       const ListOptions& options) override {
    CallContext context("list", resource, ns, "");
    auto list = ListChunks(context, resource, ns, options, options.chunk);
    // The snapshot that the chunks are read from has expired: list again, in one answer.
    if (!list && list.error().code == ErrorCode::kGone)
      list = ListChunks(context, resource, ns, options, 0);
    return list;
  }

  Result<Json> Create(const Resource& resource, const std::string& ns,
                      const Json& object) override {
    return CreateWith(resource, ns, object, {});
  }

  Result<Json> CreateWith(const Resource& resource, const std::string& ns, const Json& object,
                          const CreateOptions& options) override {
    CallContext context("create", resource, ns, NameOf(object));
    const std::string& validation =
        options.field_validation.empty() ? field_validation_ : options.field_validation;
    return Write(
        context, "POST",
        WithQuery(ResourcePath(resource, ns, "", ""),
                  {{"fieldValidation", validation}, {"dryRun", options.dry_run ? "All" : ""}}),
        Typed(resource, object), "application/json", options.unread);
  }

  Result<Json> Update(const Resource& resource, const std::string& ns, const Json& object,
                      const std::string& subresource) override {
    CallContext context("update", resource, ns, NameOf(object), subresource);
    if (NameOf(object).empty()) return tl::unexpected(EmptyName(context));
    return Write(context, "PUT",
                 WithQuery(ResourcePath(resource, ns, NameOf(object), subresource),
                           {{"fieldValidation", field_validation_}}),
                 subresource == "scale" ? object : Typed(resource, object), "application/json");
  }

  Result<Json> Patch(const Resource& resource, const std::string& ns, const std::string& name,
                     const Json& patch, const PatchOptions& options) override {
    CallContext context("patch", resource, ns, name, options.subresource);
    if (name.empty()) return tl::unexpected(EmptyName(context));
    bool apply = options.type == PatchType::kApply;
    return Write(context, "PATCH",
                 WithQuery(ResourcePath(resource, ns, name, options.subresource),
                           {{"fieldManager", options.field_manager},
                            {"force", apply && options.force ? "true" : ""},
                            {"fieldValidation", field_validation_}}),
                 apply ? Typed(resource, patch) : patch,
                 apply ? "application/apply-patch+yaml" : "application/merge-patch+json");
  }

  Result<void> Delete(const Resource& resource, const std::string& ns, const std::string& name,
                      const DeleteOptions& options) override {
    CallContext context("delete", resource, ns, name);
    if (name.empty()) return tl::unexpected(EmptyName(context));
    auto answer = caller_.Call(context, {"DELETE", ResourcePath(resource, ns, name, ""),
                                         DeleteBody(options).dump(), "application/json"});
    if (!answer) return tl::unexpected(answer.error());
    return {};
  }

  Result<void> Watch(const Resource& resource, const std::string& ns, const WatchOptions& options,
                     const WatchHandler& on_event, std::stop_token stop) override {
    CallContext context("watch", resource, ns, "");
    // A watch without a version begins with the existing objects. It asks for version "0" and no
    // bookmarks, because API servers with an etcd older than 3.4.25 refuse to begin with the latest
    // version, and refuse bookmarks with it.
    const bool bookmarks = !options.resource_version.empty();
    HttpRequest request{"GET",
                        WithQuery(ResourcePath(resource, ns, "", ""),
                                  {{"watch", "true"},
                                   {"allowWatchBookmarks", bookmarks ? "true" : ""},
                                   {"timeoutSeconds", std::to_string(options.timeout.count())},
                                   {"resourceVersion", bookmarks ? options.resource_version : "0"},
                                   {"labelSelector", options.label_selector},
                                   {"fieldSelector", options.field_selector}})};
    // The server ends the watch after its timeout; the deadline ends a watch that stalls.
    request.deadline = options.timeout + std::chrono::seconds(5);
    if (bookmarks) request.quiet = options.quiet;
    EventReader reader(context, options.unread, on_event);
    auto done = caller_.Stream(
        context, request, [&](std::string_view data) { return reader(data); }, stop);
    if (reader.error()) return tl::unexpected(*reader.error());
    return done;
  }

  Result<void> PodLog(const std::string& ns, const std::string& pod, const std::string& container,
                      bool follow, const std::function<bool(std::string_view)>& on_text,
                      std::stop_token stop) override {
    return PodLogWith(ns, pod, {.container = container, .follow = follow}, on_text, stop);
  }

  Result<void> PodLogWith(const std::string& ns, const std::string& pod,
                          const PodLogOptions& options,
                          const std::function<bool(std::string_view)>& on_text,
                          std::stop_token stop) override {
    CallContext context("log", Pods(), ns, pod);
    HttpRequest request{
        "GET", WithQuery(ResourcePath(Pods(), ns, pod, "log"),
                         {{"container", options.container},
                          {"follow", options.follow ? "true" : ""},
                          {"tailLines", options.tail ? std::to_string(*options.tail) : ""}})};
    request.accept = "*/*";
    // A long log, or a reader that stops reading for a while, takes as long as it takes.
    request.deadline = std::chrono::hours(24);
    if (!options.follow) request.quiet = HttpRequest().deadline;
    return caller_.Stream(context, request, on_text, stop);
  }

  Result<std::string> PodProxy(const std::string& ns, const std::string& pod,
                               const PodProxyRequest& asked) override {
    constexpr size_t kMost = 16 << 20;
    CallContext context("get", Pods(), ns, pod, "proxy");
    HttpRequest request{"GET", ResourcePath(Pods(), ns, pod + ":" + std::to_string(asked.port),
                                            "proxy" + asked.path)};
    request.headers = asked.headers;
    request.deadline = asked.deadline;
    std::string body;
    auto on_data = [&](std::string_view data) {
      body += data;
      return body.size() <= kMost;
    };
    auto read = caller_.Stream(context, request, on_data, {});
    if (!read) return tl::unexpected(read.error());
    if (body.size() <= kMost) return body;
    return tl::unexpected(Internal(context.text, "the answer is too long"));
  }

 private:
  static Error EmptyName(const CallContext& context) {
    return Error{ErrorCode::kInvalid, 0, "", context.text + ": metadata.name is empty"};
  }

  Result<Json> Write(const CallContext& context, const char* method, const std::string& path,
                     const Json& object, const char* content_type, Unread unread = {}) {
    auto body = Encode(context, object);
    if (!body) return tl::unexpected(body.error());
    return caller_.Call(context, {method, path, std::move(*body), content_type}, unread);
  }

  Result<List> ListChunks(const CallContext& context, const Resource& resource,
                          const std::string& ns, const ListOptions& options, int chunk) {
    List list;
    std::string next;
    while (true) {
      auto answer =
          caller_.Call(context,
                       {"GET", WithQuery(ResourcePath(resource, ns, "", ""),
                                         {{"labelSelector", options.label_selector},
                                          {"fieldSelector", options.field_selector},
                                          {"limit", chunk > 0 ? std::to_string(chunk) : ""},
                                          {"continue", next}})},
                       options.unread);
      if (!answer) return tl::unexpected(answer.error());
      auto items = answer->find("items");
      // A server written in Go may send null for an empty list.
      if (items != answer->end() && items->is_null()) *items = Json::array();
      if (items == answer->end() || !items->is_array() || !answer->contains("metadata")) {
        return tl::unexpected(Internal(context.text, "the answer is not a list"));
      }
      list.resource_version = fields::Text((*answer)["metadata"], "resourceVersion");
      std::string following = fields::Text((*answer)["metadata"], "continue");
      for (Json& item : *items) list.items.push_back(Typed(resource, std::move(item)));
      if (options.on_chunk) {
        options.on_chunk(std::exchange(list.items, {}), list.resource_version, next.empty());
      }
      if (following.empty()) return list;
      if (following == next)
        return tl::unexpected(Internal(context.text, "the list goes on from where it began"));
      next = std::move(following);
    }
  }

  const std::string field_validation_;
  Caller caller_;
};

}  // namespace

Result<std::unique_ptr<KubeApi>> MakeKubeClient(const ClientConfig& config) {
  auto http = HttpConnections::Make(config);
  if (!http) return tl::unexpected(http.error());
  return std::make_unique<KubeClient>(config, std::move(*http));
}

Result<std::unique_ptr<KubeApi>> ConnectByKubeconfig(const std::filesystem::path& file) {
  auto config = LoadKubeconfig(file);
  if (!config) return tl::unexpected(config.error());
  return MakeKubeClient(*config);
}

}  // namespace ringmaster::kube
