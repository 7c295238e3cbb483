// The objects that a handler was told of and of whose deletion it was not: the uid of each by its
// name. A list shows a deletion only by the object's absence, or by another object with its name.
//
// Thread rule: the reflector's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/runtime/object_cache.h"

namespace ringmaster::runtime {

class ToldObjects {
 public:
  // Whether the object of this name and uid has gone.
  using HasGone = std::function<bool(const ObjectCache::Key& key, const std::string& uid)>;

  void Add(const kube::Json& object);
  // Forgets this object, but not another one with its name.
  void Remove(const kube::Json& object);
  // Forgets whichever object has the name of this one.
  void RemoveName(const kube::Json& object);
  // The uid of the object that had this one's name before, if it was another one; that is then
  // forgotten.
  std::optional<std::string> TakeReplaced(const kube::Json& by);
  // Forgets the objects that have gone, and returns what is known of them.
  std::vector<kube::Json> TakeGone(const HasGone& has_gone);

 private:
  // By "namespace/name". The keys are strings, because there may be very many.
  std::unordered_map<std::string, std::string> uids_;
};

// All that is known of an object that isn't stored.
kube::Json Stub(const std::string& ns, const std::string& name, const std::string& uid);

}  // namespace ringmaster::runtime
