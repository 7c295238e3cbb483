// The objects of the embedded cluster, with the semantics of an API server: resourceVersion and
// conflict, generation, status and scale subresources, finalizers and graceful deletion,
// owner-reference garbage collection, watch with a window of history. No HTTP here: rest_server.h
// serves it.
//
// Thread rule: every method is safe from any thread; one lock, never held while a caller's code
// runs. Garbage collection happens inside the call that causes it, so nothing is pending when a
// call returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/local/store/field_ownership.h"
#include "operator/local/store/garbage_collector.h"
#include "operator/local/store/job_definition.h"
#include "operator/local/store/status.h"
#include "operator/local/store/versioned_objects.h"

namespace ringmaster::local {

struct StoreOptions {
  // Changes kept for each resource, and for how long: a watch from before them gets 410. Each is an
  // object as it was, so a job that changes for hours takes memory for all that is kept.
  size_t history = 2048;
  std::chrono::seconds history_age{60};
  std::string crd_yaml;  // CustomResourceDefinition of HorovodJob; empty: objects aren't validated
  std::function<std::chrono::system_clock::time_point()> now;  // empty: the clock
  // Volumes that a kubelet of processes can't give are refused (volume_kinds.h).
  bool local_volumes_only = false;
};

struct ListRequest {
  std::string label_selector;
  std::string field_selector;
};

struct ListAnswer {
  std::vector<Json> items;
  std::string resource_version;
};

struct WriteOptions {
  bool strict_fields = false;  // fieldValidation=Strict
  bool dry_run = false;
  bool core_event = false;                   // an Event of core/v1, of which less is demanded
  std::string field_manager = "ringmaster";  // whose the written fields are
  bool applied = false;                      // the owners are settled already
  // Unknown fields that were dropped, for warnings; may be null.
  std::vector<std::string>* dropped = nullptr;
};

struct PatchRequest {
  enum class Type { kMerge, kJson, kApply };
  Type type = Type::kMerge;
  Json patch;
  std::string subresource;
  std::string field_manager;
  bool force = false;
};

struct WatchRequest {
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;  // "" or "0": begin with an Added for each object
};

class Store;

// One reader's place in the history of a resource. Not thread-safe itself.
class WatchCursor {
 public:
  // `initial`: objects that are shown first, as added.
  WatchCursor(Store& store, Selection selection, uint64_t version, std::deque<Json> initial)
      : store_(&store),
        selection_(std::move(selection)),
        version_(version),
        initial_(std::move(initial)) {}

  // The next event; nullopt when `timeout` passed without one. The error: 410, and the cursor is
  // done.
  Answer<std::optional<kube::WatchEvent>> Next(std::chrono::milliseconds timeout);
  // The newest version that this cursor has seen or skipped: what a bookmark says.
  uint64_t version() const { return version_; }
  // Objects that are shown first have not all been shown.
  bool HasInitial() const { return !initial_.empty(); }

 private:
  Store* store_;
  Selection selection_;
  uint64_t version_;
  std::deque<Json> initial_;
};

class Store {
 public:
  explicit Store(StoreOptions options);

  Answer<Json> Get(const Resource& resource, const std::string& ns, const std::string& name) const;
  // All of them, never a page: an API server need not heed `limit`.
  Answer<ListAnswer> List(const Resource& resource, const std::string& ns,
                          const ListRequest& request) const;
  Answer<Json> Create(const Resource& resource, const std::string& ns, Json object,
                      const WriteOptions& options = {});
  Answer<Json> Update(const Resource& resource, const std::string& ns, const std::string& name,
                      Json object, const std::string& subresource,
                      const WriteOptions& options = {});
  Answer<Json> Patch(const Resource& resource, const std::string& ns, const std::string& name,
                     const PatchRequest& request, const WriteOptions& options = {});
  // The object as it is afterwards (with a deletionTimestamp), or as it was when it is gone; after
  // a dry run as it is.
  Answer<Json> Delete(const Resource& resource, const std::string& ns, const std::string& name,
                      const kube::DeleteOptions& options, bool dry_run = false);
  Answer<Json> GetScale(const std::string& ns, const std::string& name) const;
  // What a scheduler does: sets spec.nodeName and PodScheduled=True.
  Answer<void> Bind(const std::string& ns, const std::string& pod, const std::string& node);

  Answer<WatchCursor> Watch(const Resource& resource, const std::string& ns,
                            const WatchRequest& request);
  // The first event of the selection after `version`, which moves on; nullopt: none came within
  // `timeout`, or the store was closed or its readers woken. For WatchCursor.
  Answer<std::optional<kube::WatchEvent>> NextEvent(const Selection& selection, uint64_t& version,
                                                    std::chrono::milliseconds timeout);
  uint64_t version() const;
  // Wakes every waiting cursor; they report no event from then on. For a server that stops.
  void Close();
  // Wakes waiting cursors once, so that their owners can look at a stop token.
  void WakeAll();

 private:
  std::chrono::system_clock::time_point Now() const;
  Answer<Json> CreateLocked(const Resource& resource, const std::string& url_ns, Json object,
                            const WriteOptions& options) REQUIRES(mu_);
  Answer<Json> UpdateLocked(const Resource& resource, const std::string& ns,
                            const std::string& name, Json object, const std::string& subresource,
                            const WriteOptions& options) REQUIRES(mu_);
  void DropOldEvents() REQUIRES(mu_);
  Answer<Json> ScaleLocked(const Resource& resource, const Json& live, const Json& scale,
                           const WriteOptions& options) REQUIRES(mu_);
  Answer<Json> PatchLocked(const Resource& resource, const std::string& ns, const std::string& name,
                           const PatchRequest& request, const WriteOptions& options) REQUIRES(mu_);
  Answer<Json> CreateByApply(const Resource& resource, const std::string& ns,
                             const std::string& name, const PatchRequest& request,
                             const WriteOptions& options) REQUIRES(mu_);

  const StoreOptions options_;
  const JobDefinition jobs_;

  mutable sync::Mutex mu_;
  sync::CondVar changed_;
  bool closed_ GUARDED_BY(mu_) = false;
  uint64_t wakes_ GUARDED_BY(mu_) = 0;
  VersionedObjects objects_ GUARDED_BY(mu_);
  FieldOwnership fields_ GUARDED_BY(mu_);
  GarbageCollector garbage_collector_ GUARDED_BY(mu_);
  std::chrono::system_clock::time_point events_dropped_at_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::local
