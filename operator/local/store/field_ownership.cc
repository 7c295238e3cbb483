#include "operator/local/store/field_ownership.h"

#include <algorithm>

#include "common/fields/fields.h"

namespace ringmaster::local {
namespace {

// The key of a list's items; null: the list is one value.
const char* ListKey(const std::string& field) {
  static const std::map<std::string, const char*> kKeys = {
      {"containers", "name"},        {"initContainers", "name"},
      {"volumes", "name"},           {"env", "name"},
      {"conditions", "type"},        {"ownerReferences", "uid"},
      {"volumeMounts", "mountPath"}, {"schedulingGates", "name"},
  };
  auto it = kKeys.find(field);
  return it == kKeys.end() ? nullptr : it->second;
}

// What tells an item of such a list from the others. Nobody has checked its type.
std::string KeyOf(const Json& item, const char* key) {
  const Json& value = fields::Member(item, key);
  return value.is_null() || value.is_string() ? fields::Text(item, key) : value.dump();
}

std::string ItemPath(const std::string& path, const char* key, const Json& item) {
  return path + "[" + key + "=" + KeyOf(item, key) + "]";
}

// Lists that are sets: each item is a leaf.
bool IsSet(const std::string& field) { return field == "finalizers"; }

std::string MemberPath(const std::string& path, const Json& item) {
  return path + "[" + item.dump() + "]";
}

Json* FindItem(Json& list, const char* key, const Json& like) {
  for (Json& item : list) {
    const bool same =
        item.is_object() && like.is_object() ? KeyOf(item, key) == KeyOf(like, key) : item == like;
    if (same) return &item;
  }
  return nullptr;
}

// Calls leaf(path, value) for each leaf of `config`.
template <class F>
void ForEachLeaf(const Json& config, const std::string& path, const std::string& field, F leaf) {
  if (config.is_object() && !config.empty()) {
    for (const auto& [key, value] : config.items()) ForEachLeaf(value, path + "." + key, key, leaf);
    return;
  }
  if (config.is_array() && IsSet(field)) {
    for (const Json& item : config) leaf(MemberPath(path, item), item);
    return;
  }
  const char* key = config.is_array() ? ListKey(field) : nullptr;
  if (key == nullptr) {
    leaf(path, config);
    return;
  }
  for (const Json& item : config) {
    if (item.is_object()) ForEachLeaf(item, ItemPath(path, key, item), "", leaf);
  }
}

void Merge(Json& live, const Json& config, const std::string& field) {
  if (config.is_object() && live.is_object()) {
    for (const auto& [key, value] : config.items()) {
      if (live.contains(key)) {
        Merge(live[key], value, key);
      } else {
        live[key] = value;
      }
    }
    return;
  }
  if (config.is_array() && live.is_array() && IsSet(field)) {
    for (const Json& item : config) {
      if (std::find(live.begin(), live.end(), item) == live.end()) live.push_back(item);
    }
    return;
  }
  const char* key = config.is_array() && live.is_array() ? ListKey(field) : nullptr;
  if (key == nullptr) {
    live = config;
    return;
  }
  for (const Json& item : config) {
    if (Json* same = FindItem(live, key, item)) {
      Merge(*same, item, "");
    } else {
      live.push_back(item);
    }
  }
}

// Removes the leaves named in `paths`, and what is empty without them.
bool RemoveLeaves(Json& live, const std::string& path, const std::string& field,
                  const std::set<std::string>& paths) {
  if (paths.count(path)) return true;
  if (live.is_object()) {
    bool any = false;
    for (auto it = live.begin(); it != live.end();) {
      if (RemoveLeaves(*it, path + "." + it.key(), it.key(), paths)) {
        it = live.erase(it);
        any = true;
      } else {
        ++it;
      }
    }
    return any && live.empty();
  }
  const bool set = live.is_array() && IsSet(field);
  const char* key = live.is_array() ? ListKey(field) : nullptr;
  if (key == nullptr && !set) return false;
  Json kept = Json::array();
  bool any = false;
  for (Json& item : live) {
    if (set && paths.count(MemberPath(path, item))) {
      any = true;
    } else if (!set && item.is_object() &&
               RemoveLeaves(item, ItemPath(path, key, item), "", paths)) {
      any = true;
    } else {
      kept.push_back(std::move(item));
    }
  }
  live = std::move(kept);
  return any && live.empty();
}

// What the server sets in every object belongs to nobody.
bool SetByServer(const std::string& path) {
  static const std::set<std::string> kPaths = {".apiVersion",
                                               ".kind",
                                               ".metadata.name",
                                               ".metadata.namespace",
                                               ".metadata.uid",
                                               ".metadata.resourceVersion",
                                               ".metadata.generation",
                                               ".metadata.generateName",
                                               ".metadata.creationTimestamp",
                                               ".metadata.deletionTimestamp",
                                               ".metadata.deletionGracePeriodSeconds"};
  return kPaths.contains(path);
}

std::map<std::string, Json> Leaves(const Json& object) {
  std::map<std::string, Json> leaves;
  ForEachLeaf(object, "", "", [&](const std::string& p, const Json& v) { leaves[p] = v; });
  return leaves;
}

}  // namespace

Json FieldOwnership::ConflictStatus(const Resource& resource, const std::string& name,
                                    const std::vector<Conflict>& conflicts) {
  std::string list;
  Json causes = Json::array();
  for (const auto& [manager, path] : conflicts) {
    std::string with = "conflict with \"" + manager.name + "\"";
    if (!manager.subresource.empty()) with += " with subresource \"" + manager.subresource + "\"";
    if (!manager.applies) with += " using " + resource.ApiVersion();
    list += (list.empty() ? "" : ", ") + (with + ": " + path);
    causes.push_back({{"reason", "FieldManagerConflict"}, {"message", with}, {"field", path}});
  }
  const size_t n = conflicts.size();
  Json status = Failure(
      409, "Conflict",
      "Apply failed with " + std::to_string(n) + (n == 1 ? " conflict: " : " conflicts: ") + list);
  status["details"] = {{"name", name}, {"causes", std::move(causes)}};
  return status;
}

Answer<FieldOwnership::Applied> FieldOwnership::Apply(const Resource& resource, const Json& live,
                                                      const Json& config,
                                                      const FieldManager& manager,
                                                      bool force) const {
  const auto known = by_uid_.find(live["metadata"]["uid"]);
  Owners owners = known == by_uid_.end() ? Owners() : known->second;
  const auto wanted = Leaves(config), present = Leaves(live);
  std::vector<Conflict> conflicts;
  for (const auto& [other, paths] : owners) {
    if (other == manager) continue;
    for (const auto& [path, value] : wanted) {
      auto now = present.find(path);
      if (paths.count(path) && (now == present.end() || now->second != value)) {
        conflicts.push_back({other, path});
      }
    }
  }
  if (!conflicts.empty() && !force) {
    return tl::unexpected(ConflictStatus(resource, live["metadata"]["name"], conflicts));
  }
  for (const auto& [other, path] : conflicts) owners[other].erase(path);

  std::set<std::string> dropped;
  for (const std::string& path : owners[manager]) {
    bool shared = false;
    for (const auto& [other, paths] : owners) shared |= other != manager && paths.count(path) > 0;
    if (!shared && !wanted.count(path)) dropped.insert(path);
  }
  owners[manager].clear();
  for (const auto& [path, value] : wanted) owners[manager].insert(path);

  Json object = live;
  RemoveLeaves(object, "", "", dropped);
  Merge(object, config, "");
  return Applied{std::move(object), std::move(owners)};
}

void FieldOwnership::CreatedByApply(const std::string& uid, const Json& config,
                                    const FieldManager& manager) {
  Owners owners;
  for (const auto& [path, value] : Leaves(config)) owners[manager].insert(path);
  by_uid_[uid] = std::move(owners);
}

void FieldOwnership::Claim(const Json& before, const Json& after, const FieldManager& manager) {
  Owners& owners = by_uid_[after["metadata"]["uid"]];
  const auto old_leaves = Leaves(before), leaves = Leaves(after);
  for (const auto& [path, value] : leaves) {
    auto old = old_leaves.find(path);
    if (SetByServer(path) || (old != old_leaves.end() && old->second == value)) continue;
    for (auto& [other, paths] : owners) paths.erase(path);
    owners[manager].insert(path);
  }
  for (const auto& [path, value] : old_leaves) {
    if (SetByServer(path) || leaves.contains(path)) continue;
    for (auto& [other, paths] : owners) paths.erase(path);
  }
}

}  // namespace ringmaster::local
