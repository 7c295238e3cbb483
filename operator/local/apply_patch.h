// Server-side apply on plain JSON. Ownership is a set of leaf paths for each manager; lists of the
// API whose items have a key (containers by name, conditions by type, ...) are merged by it, other
// lists are one leaf. Pure.
//
// Simpler than the real thing in one point: only fields set by apply have an owner, so a value that
// was written by PUT or merge patch never conflicts.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/local/status.h"

namespace ringmaster::local {

using FieldOwners = std::map<std::string, std::set<std::string>>;  // manager -> leaf paths

struct ApplyResult {
  Json object;
  std::vector<std::pair<std::string, std::string>>
      conflicts;  // (manager, path); nothing was changed
};

ApplyResult Apply(const Json& live, const Json& config, const std::string& manager, bool force,
                  FieldOwners& owners);

}  // namespace ringmaster::local
