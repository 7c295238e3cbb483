#include "operator/kube/kube_client.h"

#include <thread>

#include "operator/kube/errors.h"
#include "operator/kube/http_connection.h"
#include "operator/kube/rate_limiter.h"
#include "operator/kube/resources.h"

namespace ringmaster::kube {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Query = std::vector<std::pair<std::string, std::string>>;

std::string WithQuery(std::string path, const Query& query) {
  char separator = '?';
  for (const auto& [name, value] : query) {
    if (value.empty()) continue;
    path += separator + name + "=" + PercentEncode(value);
    separator = '&';
  }
  return path;
}

Error Prefixed(const std::string& asked, Error error) {
  error.message = asked + ": " + error.message;
  return error;
}

Json Parse(const std::string& body) {
  Json json = Json::parse(body, nullptr, false);
  return json.is_discarded() ? Json(body) : json;
}

std::string NameOf(const Json& object) {
  if (!object.is_object() || !object.contains("metadata")) return "";
  const Json& meta = object["metadata"];
  return meta.is_object() && meta.contains("name") && meta["name"].is_string() ? meta["name"]
                                                                               : Json("");
}

// apiVersion and kind are required by the server; callers may leave them out.
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

// Cuts a stream into lines of JSON and hands them on as events.
class EventReader {
 public:
  EventReader(const std::string& asked, const std::function<bool(const WatchEvent&)>& on_event)
      : asked_(asked), on_event_(on_event) {}

  bool operator()(std::string_view data) {
    buffer_.append(data);
    size_t begin = 0;
    for (size_t end; (end = buffer_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (end > begin && !Line(std::string_view(buffer_).substr(begin, end - begin))) return false;
    }
    buffer_.erase(0, begin);
    return true;
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool Line(std::string_view text) {
    Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("type") || !line.contains("object")) {
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
      error_ = ErrorFromStatus(asked_, event.object.value("code", 500), event.object);
      return false;
    } else if (type != "ADDED") {
      return true;  // a kind of event that this client doesn't know
    }
    return on_event_(event);
  }

  const std::string& asked_;
  const std::function<bool(const WatchEvent&)>& on_event_;
  std::string buffer_;
  std::optional<Error> error_;
};

class KubeClient : public KubeApi {
 public:
  KubeClient(const ClientConfig& config, std::unique_ptr<HttpConnections> http)
      : config_(config),
        credentials_(config),
        limiter_(config.qps, config.burst),
        http_(std::move(http)) {}

  Result<Json> Get(const Resource& resource, const std::string& ns,
                   const std::string& name) override {
    std::string asked = Asked("get", resource, ns, name);
    if (name.empty()) return tl::unexpected(EmptyName(asked));
    return Call(asked, {"GET", ResourcePath(resource, ns, name, "")});
  }

  Result<List> ListAll(const Resource& resource, const std::string& ns,
                       const ListOptions& options) override {
    std::string asked = Asked("list", resource, ns, "");
    auto list = ListChunks(asked, resource, ns, options, options.chunk);
    // The chunks' snapshot has expired on the way: once more, all in one answer.
    if (!list && list.error().code == ErrorCode::kGone)
      list = ListChunks(asked, resource, ns, options, 0);
    return list;
  }

  Result<Json> Create(const Resource& resource, const std::string& ns,
                      const Json& object) override {
    return Call(Asked("create", resource, ns, NameOf(object)),
                {"POST",
                 WithQuery(ResourcePath(resource, ns, "", ""),
                           {{"fieldValidation", config_.field_validation}}),
                 Typed(resource, object).dump(), "application/json"});
  }

  Result<Json> Update(const Resource& resource, const std::string& ns, const Json& object,
                      const std::string& subresource) override {
    std::string asked = Asked("update", resource, ns, NameOf(object), subresource);
    if (NameOf(object).empty()) return tl::unexpected(EmptyName(asked));
    Json body = subresource == "scale" ? object : Typed(resource, object);
    return Call(asked, {"PUT",
                        WithQuery(ResourcePath(resource, ns, NameOf(object), subresource),
                                  {{"fieldValidation", config_.field_validation}}),
                        body.dump(), "application/json"});
  }

  Result<Json> Patch(const Resource& resource, const std::string& ns, const std::string& name,
                     const Json& patch, const PatchOptions& options) override {
    std::string asked = Asked("patch", resource, ns, name, options.subresource);
    if (name.empty()) return tl::unexpected(EmptyName(asked));
    bool apply = options.type == PatchType::kApply;
    return Call(asked, {"PATCH",
                        WithQuery(ResourcePath(resource, ns, name, options.subresource),
                                  {{"fieldManager", options.field_manager},
                                   {"force", apply && options.force ? "true" : ""},
                                   {"fieldValidation", config_.field_validation}}),
                        (apply ? Typed(resource, patch) : patch).dump(),
                        apply ? "application/apply-patch+yaml" : "application/merge-patch+json"});
  }

  Result<void> Delete(const Resource& resource, const std::string& ns, const std::string& name,
                      const DeleteOptions& options) override {
    std::string asked = Asked("delete", resource, ns, name);
    if (name.empty()) return tl::unexpected(EmptyName(asked));
    auto answer = Call(asked, {"DELETE", ResourcePath(resource, ns, name, ""),
                               DeleteBody(options).dump(), "application/json"});
    if (!answer) return tl::unexpected(answer.error());
    return {};
  }

  Result<void> Watch(const Resource& resource, const std::string& ns, const WatchOptions& options,
                     const std::function<bool(const WatchEvent&)>& on_event,
                     std::stop_token stop) override {
    std::string asked = Asked("watch", resource, ns, "");
    HttpRequest request{"GET",
                        WithQuery(ResourcePath(resource, ns, "", ""),
                                  {{"watch", "true"},
                                   {"allowWatchBookmarks", "true"},
                                   {"timeoutSeconds", std::to_string(options.timeout.count())},
                                   {"resourceVersion", options.resource_version},
                                   {"labelSelector", options.label_selector},
                                   {"fieldSelector", options.field_selector}})};
    // The server ends the watch; this ends one that stalls.
    request.deadline = options.timeout + std::chrono::seconds(5);
    EventReader reader(asked, on_event);
    auto done = Stream(
        asked, request, [&](std::string_view data) { return reader(data); }, stop);
    if (reader.error()) return tl::unexpected(*reader.error());
    return done;
  }

  Result<void> PodLog(const std::string& ns, const std::string& pod, const std::string& container,
                      bool follow, const std::function<bool(std::string_view)>& on_text,
                      std::stop_token stop) override {
    std::string asked = Asked("log", Pods(), ns, pod);
    HttpRequest request{"GET",
                        WithQuery(ResourcePath(Pods(), ns, pod, "log"),
                                  {{"container", container}, {"follow", follow ? "true" : ""}})};
    request.accept = "*/*";
    if (follow) request.deadline = std::chrono::hours(24);
    return Stream(asked, request, on_text, stop);
  }

  Result<void> Evict(const std::string& ns, const std::string& pod,
                     const DeleteOptions& options) override {
    Json body = {{"apiVersion", "policy/v1"},
                 {"kind", "Eviction"},
                 {"metadata", {{"name", pod}, {"namespace", ns}}},
                 {"deleteOptions", DeleteBody(options)}};
    // A 429 here is a disruption budget's answer, for the caller to act on.
    auto answer =
        Call(Asked("evict", Pods(), ns, pod),
             {"POST", ResourcePath(Pods(), ns, pod, "eviction"), body.dump(), "application/json"},
             false);
    if (!answer) return tl::unexpected(answer.error());
    return {};
  }

 private:
  static Error EmptyName(const std::string& asked) {
    return Error{ErrorCode::kInvalid, 0, "", asked + ": metadata.name is empty"};
  }

  Result<List> ListChunks(const std::string& asked, const Resource& resource, const std::string& ns,
                          const ListOptions& options, int chunk) {
    List list;
    std::string next;
    do {
      auto answer =
          Call(asked, {"GET", WithQuery(ResourcePath(resource, ns, "", ""),
                                        {{"labelSelector", options.label_selector},
                                         {"fieldSelector", options.field_selector},
                                         {"limit", chunk > 0 ? std::to_string(chunk) : ""},
                                         {"continue", next}})});
      if (!answer) return tl::unexpected(answer.error());
      if (!answer->contains("items") || !answer->contains("metadata")) {
        return tl::unexpected(Internal(asked, "the answer is not a list"));
      }
      const Json& meta = (*answer)["metadata"];
      list.resource_version = meta.value("resourceVersion", "");
      next = meta.value("continue", "");
      for (Json& item : (*answer)["items"]) list.items.push_back(Typed(resource, std::move(item)));
    } while (!next.empty());
    return list;
  }

  // Waits for the client's own rate limit.
  Result<void> Admit(const std::string& asked, Clock::time_point deadline) {
    auto wait = limiter_.Reserve(Clock::now());
    if (wait.count() == 0) return {};
    if (Clock::now() + wait >= deadline) {
      return tl::unexpected(Unavailable(
          asked, "the client's own limit of " + std::to_string(static_cast<int>(config_.qps)) +
                     " calls a second leaves no time before the deadline"));
    }
    std::this_thread::sleep_for(wait);
    return {};
  }

  Result<Json> Call(const std::string& asked, HttpRequest request, bool wait_when_busy = true) {
    auto deadline = Clock::now() + config_.deadline;
    bool renewed = false;
    while (true) {
      if (auto ok = Admit(asked, deadline); !ok) return tl::unexpected(ok.error());
      auto credential = credentials_.Get();
      if (!credential) return tl::unexpected(Prefixed(asked, credential.error()));
      request.deadline = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
      if (request.deadline.count() <= 0)
        return tl::unexpected(Unavailable(asked, "no answer before the deadline"));
      auto response = http_->Send(request, *credential);
      if (!response) return tl::unexpected(Prefixed(asked, response.error()));
      if (response->status == 401 && !renewed) {
        renewed = true;
        credentials_.Expire();
        continue;
      }
      Json body = Parse(response->body);
      if (response->status >= 200 && response->status < 300) {
        if (body.is_object()) return body;
        return tl::unexpected(Internal(asked, "the answer is not a JSON object"));
      }
      Error error = ErrorFromStatus(asked, response->status, body);
      if (response->retry_after.count() >= 0) error.retry_after = response->retry_after;
      bool busy = response->status == 429 && response->retry_after.count() >= 0;
      if (!busy || !wait_when_busy || Clock::now() + error.retry_after >= deadline)
        return tl::unexpected(error);
      std::this_thread::sleep_for(std::max<milliseconds>(error.retry_after, milliseconds(100)));
    }
  }

  Result<void> Stream(const std::string& asked, const HttpRequest& request,
                      const std::function<bool(std::string_view)>& on_data, std::stop_token stop) {
    if (auto ok = Admit(asked, Clock::now() + config_.deadline); !ok) return ok;
    for (bool renewed = false;; renewed = true) {
      auto credential = credentials_.Get();
      if (!credential) return tl::unexpected(Prefixed(asked, credential.error()));
      auto response = http_->Stream(request, *credential, on_data, stop);
      if (!response) return tl::unexpected(Prefixed(asked, response.error()));
      if (response->status == 200) return {};
      if (response->status != 401 || renewed) {
        Error error = ErrorFromStatus(asked, response->status, Parse(response->body));
        if (response->retry_after.count() >= 0) error.retry_after = response->retry_after;
        return tl::unexpected(error);
      }
      credentials_.Expire();
    }
  }

  const ClientConfig config_;
  Credentials credentials_;
  RateLimiter limiter_;
  const std::unique_ptr<HttpConnections> http_;
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
