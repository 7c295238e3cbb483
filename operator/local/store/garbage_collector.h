// How objects go: grace periods and finalizers, and with an object those that it owns, as the
// cascading deletion of a cluster's garbage collector and namespace controller has it. It happens
// inside the call that causes it: nothing is pending when a call returns.
//
// Owner and thread: Store, under its lock.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/local/store/field_ownership.h"
#include "operator/local/store/versioned_objects.h"

namespace ringmaster::local {

class GarbageCollector {
 public:
  using Time = std::chrono::system_clock::time_point;

  // Both must live as long.
  GarbageCollector(VersionedObjects& objects, FieldOwnership& fields)
      : objects_(objects), fields_(fields) {}

  // An object that was created; it goes at once if its owners are all gone.
  void Created(const Resource& resource, const ObjectKey& key, const Json& object, Time now);
  // The object as it is afterwards (with a deletionTimestamp), or as it was when it is gone.
  Answer<Json> Delete(const Resource& resource, const std::string& ns, const std::string& name,
                      const kube::DeleteOptions& options, Time now);
  // The object, if it may be deleted so.
  Answer<Json> Check(const Resource& resource, const std::string& ns, const std::string& name,
                     const kube::DeleteOptions& options) const;
  // An object that nothing holds any more: without grace, whatever its finalizers say.
  void Remove(const Resource& resource, const ObjectKey& key, Time now);

 private:
  using Place = std::pair<const Resource*, ObjectKey>;

  std::vector<Place> Dependents(const std::string& owner_uid) const;
  bool OwnersGone(const Json& object) const;
  void CollectDependents(const std::string& owner_uid, const std::string& propagation, Time now);
  void FinishForeground(const std::string& owner_uid, Time now);
  bool IsEmpty(const std::string& ns) const;
  void EmptyNamespace(const std::string& ns, Time now);

  VersionedObjects& objects_;
  FieldOwnership& fields_;
  std::map<std::string, Place> by_uid_;
  std::set<std::string> emptying_;  // namespaces
};

}  // namespace ringmaster::local
