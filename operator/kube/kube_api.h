// The Kubernetes API as the rest of the operator sees it. KubeClient (REST) implements it;
// controllers and the command line know only this interface. Objects are JSON as the API server
// sends them.
//
// Thread rule: every method is safe from any thread and blocks at most `deadline` (30 s by default;
// for a watch its timeout).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "operator/kube/unread.h"

namespace ringmaster::kube {

using Json = nlohmann::json;

// The code tells the caller what to do.
enum class ErrorCode {
  kNotFound,
  kAlreadyExists,
  kConflict,         // resourceVersion is old: read the object again and decide again
  kInvalid,          // the object is wrong (422, 400): repeating doesn't help until it changes
  kForbidden,        // 401, 403
  kGone,             // 410: list again
  kTooManyRequests,  // 429: retry after retry_after
  kUnavailable,      // no connection, 5xx, deadline: retry with backoff
  kInternal,         // an answer that is not what the API promises
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  int http_status = 0;  // 0: no answer
  std::string reason;   // metav1.Status.reason
  std::string message;  // for people: the call and the answer
  std::chrono::milliseconds retry_after{0};
};

template <class T>
using Result = tl::expected<T, Error>;

struct Resource {
  std::string group;  // "" for core
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;
  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
  friend bool operator==(const Resource&, const Resource&) = default;
};

// The resources the project uses.
const Resource& Pods();
const Resource& Nodes();
const Resource& Namespaces();
const Resource& ConfigMaps();
const Resource& Secrets();
const Resource& Services();
const Resource& Events();  // events.k8s.io/v1
const Resource& Leases();
const Resource& PodDisruptionBudgets();
const Resource& NetworkPolicies();
const Resource& EndpointSlices();
const Resource& CustomResourceDefinitions();
const Resource& HorovodJobs();
const Resource& PriorityClasses();
const Resource& Workloads();  // Kueue's, like the two below
const Resource& ResourceFlavors();
const Resource& WorkloadPriorityClasses();
const Resource& PodGroups();  // scheduling.k8s.io/v1beta1; served behind a feature gate

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  int chunk = 500;
  // Receives the objects chunk by chunk; List::items then stays empty. `version` is that of the
  // list. `first`: the list begins; that may happen again, because the server has forgotten the
  // snapshot of the first chunks. Fakes may ignore it and return the items.
  std::function<void(std::vector<Json> items, const std::string& version, bool first)> on_chunk;
  // What nobody reads of the objects: the client may leave it out.
  Unread unread = {};
};

struct CreateOptions {
  // "Strict" makes the server refuse unknown and duplicate fields and name all of them; other
  // values are "Warn" and "Ignore"; empty: the client's default.
  std::string field_validation;
  bool dry_run = false;
  Unread unread = {};  // of the answer, as in ListOptions
};

struct List {
  std::vector<Json> items;
  std::string resource_version;
};

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark };
  Type type = Type::kAdded;
  Json object;
};
// Returns false to end the watch.
using WatchHandler = std::function<bool(WatchEvent event)>;

struct WatchOptions {
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  std::chrono::seconds timeout{300};
  // A watch without an event or bookmark for this long has stalled and ends with kUnavailable. API
  // servers send a bookmark about every minute (none for events). It does not apply to a watch
  // without a version, which gets no bookmarks.
  std::chrono::milliseconds quiet{100'000};
  // What nobody reads of the objects: the client may leave it out.
  Unread unread;
};

enum class PatchType { kMerge, kApply };  // JSON merge patch; server-side apply

struct PatchOptions {
  PatchType type = PatchType::kMerge;
  std::string subresource;    // "", "status", "scale"
  std::string field_manager;  // required for kApply
  bool force = false;
};

struct PodLogOptions {
  std::string container;
  bool follow = false;      // until the container ends
  std::optional<int> tail;  // only the last so many of the existing lines
};

// An HTTP GET to a port of a pod, through the API server.
struct PodProxyRequest {
  int port = 0;
  std::string path;  // "/status"
  std::map<std::string, std::string> headers;
  std::chrono::milliseconds deadline{3000};
};

struct DeleteOptions {
  std::optional<int> grace_period_seconds;
  std::string propagation;  // "", "Background", "Foreground", "Orphan"
  std::string uid;          // preconditions; empty: none
  std::string resource_version;
};

class KubeApi {
 public:
  virtual ~KubeApi() = default;
  virtual Result<Json> Get(const Resource& resource, const std::string& ns,
                           const std::string& name) = 0;
  // `ns` empty: all namespaces.
  virtual Result<List> ListAll(const Resource& resource, const std::string& ns,
                               const ListOptions& options) = 0;
  virtual Result<Json> Create(const Resource& resource, const std::string& ns,
                              const Json& object) = 0;
  // The default implementation, for fakes, ignores the options.
  virtual Result<Json> CreateWith(const Resource& resource, const std::string& ns,
                                  const Json& object, const CreateOptions& options) {
    (void)options;
    return Create(resource, ns, object);
  }
  // PUT: fails with kConflict if metadata.resourceVersion is set and old. subresource: "",
  // "status", "scale".
  virtual Result<Json> Update(const Resource& resource, const std::string& ns, const Json& object,
                              const std::string& subresource = "") = 0;
  virtual Result<Json> Patch(const Resource& resource, const std::string& ns,
                             const std::string& name, const Json& patch,
                             const PatchOptions& options) = 0;
  virtual Result<void> Delete(const Resource& resource, const std::string& ns,
                              const std::string& name, const DeleteOptions& options) = 0;
  // Blocks and calls on_event for each event. Returns when the server ends the watch (no error:
  // watch again from the last resourceVersion), on an error (kGone: list again), when on_event
  // returns false, or when `stop` is requested.
  virtual Result<void> Watch(const Resource& resource, const std::string& ns,
                             const WatchOptions& options, const WatchHandler& on_event,
                             std::stop_token stop) = 0;
  // The log of a container as text. `follow`: until the container ends or `stop` is requested.
  virtual Result<void> PodLog(const std::string& ns, const std::string& pod,
                              const std::string& container, bool follow,
                              const std::function<bool(std::string_view)>& on_text,
                              std::stop_token stop) = 0;
  // The default implementation, for fakes, ignores `tail`.
  virtual Result<void> PodLogWith(const std::string& ns, const std::string& pod,
                                  const PodLogOptions& options,
                                  const std::function<bool(std::string_view)>& on_text,
                                  std::stop_token stop) {
    return PodLog(ns, pod, options.container, options.follow, on_text, std::move(stop));
  }
  // Returns the body of a 200 answer. The default implementation returns kUnavailable, for servers
  // that reach no pod.
  virtual Result<std::string> PodProxy(const std::string& ns, const std::string& pod,
                                       const PodProxyRequest& request) {
    (void)ns, (void)request;
    return tl::unexpected(
        Error{ErrorCode::kUnavailable, 0, "", "pod " + pod + " can't be reached from here"});
  }
};

}  // namespace ringmaster::kube
