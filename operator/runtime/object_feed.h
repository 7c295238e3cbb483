// Keeps a cache in step with what lists and watches of one resource show, and tells a handler of
// each change: of an object before its deletion, and of its deletion before another object with its
// name.
//
// Thread rule: the reflector's thread, which calls the handler; cache(), Observe and
// ObserveDeletion are safe from any thread.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "operator/kube/kube_api.h"
#include "operator/runtime/object_cache.h"
#include "operator/runtime/told_objects.h"

namespace ringmaster::runtime {

// What is kept of which objects.
struct ObjectSelection {
  // Selects the parts of an object that are stored and passed on; none: all.
  std::function<kube::Json(kube::Json)> keep;
  // Selects the objects (after `keep`) that are stored; none: all. The others are only passed on.
  std::function<bool(const kube::Json&)> stores;
  ObjectCache::Index index;  // of the cache; may be empty
  ObjectCache::Storage storage;
  kube::Unread unread;  // fields that `keep` drops and a watch needn't bring
};

class ObjectFeed {
 public:
  // `object` is the newest state. For a deleted object it is the last state, or only namespace,
  // name and uid if the object isn't stored. If the handler was told of an object it is also told
  // of its deletion, and before it is told of another object with the same name.
  using Handler = std::function<void(const kube::Json& object, bool deleted)>;

  ObjectFeed(ObjectSelection selection, Handler handler);

  const ObjectCache& cache() const { return cache_; }

  // A list is asked for.
  void ListBegins() { cache_.ListBegins(); }
  // Its objects follow, perhaps once more from the first.
  void BeginList() { listed_.clear(); }
  void TakeListed(kube::Json object, const std::string& list_version);
  // The list is complete: objects that it lacks have gone. Calls `on_synced` when the cache is as
  // the list, before the handler hears of those.
  void EndList(const std::string& list_version, const std::function<void()>& on_synced);
  // An object that a watch shows as new or changed, or as deleted.
  void TakeWatched(kube::Json object);
  void TakeDeleted(const kube::Json& object);
  // Stores an object that we have just written, so that the cache is not older than our own writes.
  // Returns false if the cache is newer already.
  bool Observe(kube::Json object);
  // The API server has accepted our deletion of this object; see ObjectCache::MarkDeleting.
  void ObserveDeletion(const kube::Json& object, const std::string& since) {
    cache_.MarkDeleting(ObjectCache::KeyOf(object), MetaField(object, "uid"), since);
  }

 private:
  ObjectPtr Kept(kube::Json object) const;
  bool Stores(const kube::Json& kept) const;
  void PassOn(const kube::Json& kept);
  void Tell(const kube::Json& kept);
  void TellReplaced(const kube::Json& by);

  const ObjectSelection selection_;
  const Handler handler_;
  ObjectCache cache_;
  ToldObjects told_;
  std::set<ObjectCache::Key> listed_;  // keys seen by the list in progress
};

}  // namespace ringmaster::runtime
