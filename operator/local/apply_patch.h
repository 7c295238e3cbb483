// Server-side apply on plain JSON. Ownership is a set of leaf paths for each manager; lists of the
// API whose items have a key (containers by name, conditions by type, ...) are merged by it, other
// lists are one leaf. Pure.
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/local/status.h"

namespace ringmaster::local {

struct FieldManager {
  std::string name;
  bool applies = false;  // by apply; else by any other write
  std::string subresource;
  auto operator<=>(const FieldManager&) const = default;
};

using FieldOwners = std::map<FieldManager, std::set<std::string>>;  // leaf paths

struct ApplyResult {
  Json object;
  std::vector<std::pair<FieldManager, std::string>>
      conflicts;  // (manager, path); nothing was changed
};

ApplyResult Apply(const Json& live, const Json& config, const FieldManager& manager, bool force,
                  FieldOwners& owners);

// After any other write: the leaves that it has changed are its manager's alone.
void ClaimChanged(const Json& before, const Json& after, const FieldManager& manager,
                  FieldOwners& owners);

}  // namespace ringmaster::local
