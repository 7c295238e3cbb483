// The newest state of each object of one resource, from lists, watches and our own writes.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"
#include "operator/runtime/object_ptr.h"

namespace ringmaster::runtime {

// metadata.<field> as text, empty if absent.
std::string MetaField(const kube::Json& object, const char* field);

// Removes managedFields: they are half of an object in memory, and the operator does not read them.
kube::Json WithoutManagedFields(kube::Json object);

class ObjectCache {
 public:
  // `index` gives a value by which Indexed finds objects (for pods, their job). The value of an
  // object must never change.
  using Index = std::function<std::string(const kube::Json&)>;
  // How objects are kept.
  struct Storage {
    bool packed = false;
    Extract extract;  // of a packed object; may be empty
  };
  explicit ObjectCache(Index index = nullptr) : ObjectCache(std::move(index), {}) {}
  ObjectCache(Index index, Storage storage)
      : index_(std::move(index)), storage_(std::move(storage)) {}

  using Key = std::pair<std::string, std::string>;  // namespace, name
  static Key KeyOf(const kube::Json& object);

  std::vector<ObjectPtr> All() const;
  ObjectPtr Get(const std::string& ns, const std::string& name) const;
  // Objects with this index value, sorted by name.
  std::vector<ObjectPtr> Indexed(const std::string& value) const;

  // Each of the following returns false if the cache has a newer object.
  //
  // Stores an object from a watch, even if it was deleted before: it may have left the selection
  // and come back.
  bool Put(const ObjectPtr& object);
  // A list is asked for now; its objects follow. Deletions that were accepted before are forgotten:
  // if the list shows the object as living, the server was restored from a backup.
  void ListBegins();
  // Stores an object from a list that was taken at `list_version`. If the list is newer than the
  // stored object, even an older object replaces that: the server was restored from a backup.
  bool PutListed(const ObjectPtr& object, const std::string& list_version);
  // Stores the answer to a write of our own, unless the object was deleted since: a deletion was
  // seen, or a list that is newer than the answer has no such object.
  bool PutWritten(const ObjectPtr& object);

  // The API server has accepted the deletion of this object: it is shown as being deleted since
  // `since` (RFC 3339) until it has gone. What a late watch, or a list that was asked for before,
  // shows of it from before is outdated.
  // Does nothing if the cache has no object of this name and uid.
  void MarkDeleting(const Key& key, const std::string& uid, const std::string& since);
  void Remove(const kube::Json& object);
  // Removes and returns the objects that a list at `list_version` would contain if they still
  // existed, but doesn't (`listed`).
  std::vector<ObjectPtr> RemoveUnlisted(const std::set<Key>& listed,
                                        const std::string& list_version);

 private:
  using Gone = std::pair<Key, std::string>;  // with uid
  using Keys = std::map<std::string, std::set<Key>>;
  // With what is asked for so often that no object is unpacked for it.
  struct Entry {
    ObjectPtr object;
    std::optional<std::uint64_t> version;
    Keys::iterator index;  // where the object's key stands; of no use without an index
  };
  Entry EntryOf(const ObjectPtr& object) const;
  // `object` is what the entry was made of.
  bool PutEntry(const Key& key, const kube::Json& object, Entry entry) REQUIRES(mu_);
  void ReadExtract(const kube::Json& object, Entry* entry) const;
  bool IsFromBeforeDeletion(const kube::Json& object) const REQUIRES(mu_);
  void EraseLocked(const Key& key) REQUIRES(mu_);
  void RememberGone(Gone gone) REQUIRES(mu_);

  const Index index_;  // may be null
  const Storage storage_;
  mutable sync::Mutex mu_;
  std::set<Gone> gone_ GUARDED_BY(mu_);             // deleted objects
  std::deque<Gone> gone_in_order_ GUARDED_BY(mu_);  // oldest first, with some that left gone_
  std::set<Gone> deleting_ GUARDED_BY(mu_);         // marked since the last list began
  std::optional<std::uint64_t> listed_at_ GUARDED_BY(mu_);  // the version of the newest list
  std::map<Key, Entry> objects_ GUARDED_BY(mu_);
  Keys indexed_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::runtime
