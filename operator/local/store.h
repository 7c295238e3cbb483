// The objects of the embedded cluster, with the semantics of an API server: resourceVersion and
// conflict, generation, status and scale subresources, finalizers and graceful deletion,
// owner-reference garbage collection, watch with a window of history. No HTTP here: rest_server.h
// serves it, in_memory_api.h is KubeApi over it.
//
// Thread rule: every method is safe from any thread; one lock, never held while a caller's code
// runs. Garbage collection happens inside the call that causes it, so nothing is pending when a
// call returns.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/selectors.h"
#include "operator/local/apply_patch.h"
#include "operator/local/schema.h"
#include "operator/local/status.h"

namespace ringmaster::local {

struct StoreOptions {
  size_t history = 2048;  // events kept for each resource; a watch from before them gets 410
  std::string crd_yaml;   // CustomResourceDefinition of HorovodJob; empty: objects aren't validated
  std::function<std::chrono::system_clock::time_point()> now;  // empty: the clock
};

struct ListRequest {
  std::string label_selector;
  std::string field_selector;
  int limit = 0;  // 0: all
  std::string continue_token;
};

struct ListAnswer {
  std::vector<Json> items;
  std::string resource_version;
  std::string continue_token;
  size_t remaining = 0;
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
  // The next event; nullopt when `timeout` passed without one. The error: 410, and the cursor is
  // done.
  Answer<std::optional<kube::WatchEvent>> Next(std::chrono::milliseconds timeout);
  // The newest version that this cursor has seen or skipped: what a bookmark says.
  uint64_t version() const { return version_; }

 private:
  friend class Store;
  Store* store_ = nullptr;
  const Resource* resource_ = nullptr;
  std::string ns_;
  kube::LabelSelector labels_;
  kube::FieldSelector fields_;
  std::deque<Json> initial_;
  uint64_t version_ = 0;
};

class Store {
 public:
  explicit Store(StoreOptions options);

  Answer<Json> Get(const Resource& resource, const std::string& ns, const std::string& name) const;
  Answer<ListAnswer> List(const Resource& resource, const std::string& ns,
                          const ListRequest& request) const;
  Answer<Json> Create(const Resource& resource, const std::string& ns, Json object,
                      const WriteOptions& options = {});
  Answer<Json> Update(const Resource& resource, const std::string& ns, const std::string& name,
                      Json object, const std::string& subresource,
                      const WriteOptions& options = {});
  Answer<Json> Patch(const Resource& resource, const std::string& ns, const std::string& name,
                     const PatchRequest& request, const WriteOptions& options = {});
  // The object as it is afterwards (with a deletionTimestamp), or as it was when it is gone.
  Answer<Json> Delete(const Resource& resource, const std::string& ns, const std::string& name,
                      const kube::DeleteOptions& options);
  Answer<Json> GetScale(const std::string& ns, const std::string& name) const;
  // 429 while a PodDisruptionBudget allows no disruption.
  Answer<void> Evict(const std::string& ns, const std::string& pod,
                     const kube::DeleteOptions& options);
  // What a scheduler does: sets spec.nodeName and PodScheduled=True.
  Answer<void> Bind(const std::string& ns, const std::string& pod, const std::string& node);

  Answer<WatchCursor> Watch(const Resource& resource, const std::string& ns,
                            const WatchRequest& request);
  uint64_t version() const;
  // Wakes every waiting cursor; they report no event from then on. For a server that stops.
  void Close();
  // Wakes waiting cursors once, so that their owners can look at a stop token.
  void WakeAll();

 private:
  friend class WatchCursor;
  using Object = std::shared_ptr<const Json>;
  using Key = std::pair<std::string, std::string>;  // namespace, name
  struct Event {
    uint64_t version;
    Object before;  // null: created
    Object after;   // null: deleted; `gone` is its last state
    Object gone;
  };
  struct Bucket {
    std::map<Key, Object> objects;
    std::deque<Event> history;
    uint64_t forgotten = 0;  // the newest version that history no longer has
  };

  // Runs a write under the lock; a value of the wrong JSON type anywhere in the object is the
  // caller's 400.
  template <class F>
  auto Locked(F write) const -> decltype(write()) {
    std::lock_guard lock(mu_);
    try {
      return write();
    } catch (const Json::exception& e) {
      return tl::unexpected(BadRequest(std::string("malformed object: ") + e.what()));
    }
  }

  Bucket& BucketOf(const Resource& resource) { return buckets_.at(resource.plural); }
  const Bucket& BucketOf(const Resource& resource) const { return buckets_.at(resource.plural); }
  Object Find(const Resource& resource, const std::string& ns, const std::string& name) const;
  std::string Now() const;

  Answer<Json> CreateLocked(const Resource& resource, const std::string& ns, Json object,
                            const WriteOptions& options);
  Answer<Json> UpdateLocked(const Resource& resource, const std::string& ns,
                            const std::string& name, Json object, const std::string& subresource,
                            const WriteOptions& options);
  Answer<Json> PatchLocked(const Resource& resource, const std::string& ns, const std::string& name,
                           const PatchRequest& request, const WriteOptions& options);
  Answer<Json> ApplyPatchLocked(const Resource& resource, const std::string& ns,
                                const std::string& name, const Json& live,
                                const PatchRequest& request);
  Answer<Json> DeleteLocked(const Resource& resource, const std::string& ns,
                            const std::string& name, const kube::DeleteOptions& options);
  Answer<void> EvictLocked(const std::string& ns, const std::string& pod,
                           const kube::DeleteOptions& options);
  Answer<Json> UpdateScaleLocked(const Resource& resource, const Json& live, const Json& scale);
  Json ScaleOf(const Json& object) const;
  struct BudgetCount {
    kube::LabelSelector selector;
    int total, healthy, needed;
  };
  std::optional<BudgetCount> CountBudget(const std::string& ns, const Json& budget) const;
  void UpdateBudgets(const std::string& ns);
  Answer<void> CheckBudgets(const Json& pod) const;
  std::map<Key, Object> StateAt(const Resource& resource, uint64_t version) const;
  Answer<void> Admit(const Resource& resource, Json& object, const std::string& name,
                     const WriteOptions& options, const Json* before) const;
  Answer<void> CheckNamespace(const Resource& resource, const std::string& ns) const;

  // Stores `object` under a new version and tells the watchers; null `object`: removed.
  Json Commit(const Resource& resource, const Key& key, Object before, std::optional<Json> object);
  void Remove(const Resource& resource, const Key& key);
  std::vector<std::pair<const Resource*, Key>> Dependents(const std::string& owner_uid) const;
  void CollectDependents(const std::string& owner_uid, const std::string& propagation);
  void FinishForeground(const std::string& owner_uid);
  bool OwnersGone(const Json& object) const;
  void OrphanDependents(const std::string& owner_uid);
  void EmptyNamespace(const std::string& ns);

  const StoreOptions options_;
  const std::optional<CrdSchema> crd_;

  mutable std::mutex mu_;
  std::condition_variable changed_;
  bool closed_ = false;
  uint64_t wakes_ = 0;
  uint64_t version_ = 1;
  uint64_t names_ = 0;
  std::map<std::string, Bucket> buckets_;
  std::map<std::string, std::pair<const Resource*, Key>> uids_;
  std::map<std::string, FieldOwners> owners_;  // by uid
};

// Fails with a sentence when StoreOptions::crd_yaml can't be read; Store itself ignores such a
// text.
tl::expected<void, std::string> CheckCrd(const std::string& crd_yaml);

}  // namespace ringmaster::local
