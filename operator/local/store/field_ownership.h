// Server-side apply on plain JSON, and whose each field is. Ownership is a set of leaf paths for
// each manager; lists of the API whose items have a key (containers by name, conditions by type,
// ...) are merged by it, other lists are one leaf.
//
// Owner and thread: Store, under its lock.
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/local/store/status.h"

namespace ringmaster::local {

struct FieldManager {
  std::string name;
  bool applies = false;  // by apply; else by any other write
  std::string subresource;
  auto operator<=>(const FieldManager&) const = default;
};

class FieldOwnership {
 public:
  using Owners = std::map<FieldManager, std::set<std::string>>;  // leaf paths

  struct Applied {
    Json object;
    Owners owners;  // as they are when the object is written
  };
  // `live` with the configuration applied; what the manager applied before and no longer names is
  // gone. The error: 409, a field belongs to another manager. Nothing is changed before Settle().
  Answer<Applied> Apply(const Resource& resource, const Json& live, const Json& config,
                        const FieldManager& manager, bool force) const;
  // What was applied is written.
  void Settle(const std::string& uid, Owners owners) { by_uid_[uid] = std::move(owners); }
  // An object that an apply has made: the fields of the configuration are the manager's.
  void CreatedByApply(const std::string& uid, const Json& config, const FieldManager& manager);
  // After any other write: the leaves that it has changed are its manager's alone.
  void Claim(const Json& before, const Json& after, const FieldManager& manager);
  void Forget(const std::string& uid) { by_uid_.erase(uid); }

 private:
  using Conflict = std::pair<FieldManager, std::string>;

  static Json ConflictStatus(const Resource& resource, const std::string& name,
                             const std::vector<Conflict>& conflicts);

  std::map<std::string, Owners> by_uid_;
};

}  // namespace ringmaster::local
