// The newest state of each object of one resource, from lists, watches and our own writes,
// whichever is newer.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::runtime {

using ObjectPtr = std::shared_ptr<const kube::Json>;

// metadata.<field> as text, empty if absent.
std::string MetaField(const kube::Json& object, const char* field);

class ObjectCache {
 public:
  // By what objects are found beside their names (pods: by their job); of one object it depends on
  // nothing else.
  using Index = std::function<std::string(const kube::Json&)>;
  explicit ObjectCache(Index index = nullptr) : index_(std::move(index)) {}

  using Key = std::pair<std::string, std::string>;  // namespace, name
  static Key KeyOf(const kube::Json& object);

  std::vector<ObjectPtr> All() const;
  ObjectPtr Get(const std::string& ns, const std::string& name) const;
  // By name.
  std::vector<ObjectPtr> Indexed(const std::string& value) const;

  // Each returns false if the cache has something newer already.
  // Of a watch: it is there, also if it had gone (out of the selection and back).
  bool Put(kube::Json object);
  // Of a list that was taken at `list_version`. What the list is newer than it replaces, also by
  // something older: the server was restored from a backup.
  bool PutListed(kube::Json object, const std::string& list_version);
  // The answer to a write of our own, which may be older than the object's end.
  bool PutWritten(kube::Json object);

  void Remove(const kube::Json& object);
  // Takes out what a list at `list_version` should have had and has not (`listed`).
  std::vector<ObjectPtr> RemoveUnlisted(const std::set<Key>& listed,
                                        const std::string& list_version);

 private:
  using Gone = std::pair<Key, std::string>;  // with uid
  bool PutLocked(kube::Json object) REQUIRES(mu_);
  void EraseLocked(const Key& key) REQUIRES(mu_);
  void RememberGone(Gone gone) REQUIRES(mu_);

  const Index index_;  // may be null
  mutable sync::Mutex mu_;
  std::set<Gone> gone_ GUARDED_BY(mu_);  // deleted ones
  std::deque<Gone> gone_in_order_
      GUARDED_BY(mu_);  // the same, the oldest first, and some of before
  std::map<Key, ObjectPtr> objects_ GUARDED_BY(mu_);
  std::map<std::string, std::set<Key>> indexed_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::runtime
