#include "operator/runtime/object_cache.h"

#include <charconv>
#include <optional>
#include <utility>

namespace ringmaster::runtime {
namespace {

constexpr std::size_t kMaxGone = 4096;

// Versions of one resource can be compared if they are numbers, as those of etcd and the embedded
// server are. nullopt: not a number.
std::optional<std::uint64_t> Version(const std::string& text) {
  std::uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return version;
}

std::optional<std::uint64_t> VersionOf(const kube::Json& object) {
  return Version(MetaField(object, "resourceVersion"));
}

}  // namespace

std::string MetaField(const kube::Json& object, const char* field) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return "";
  const auto value = metadata->find(field);
  return value != metadata->end() && value->is_string() ? value->get<std::string>() : "";
}

kube::Json WithoutManagedFields(kube::Json object) {
  const auto metadata = object.find("metadata");
  if (metadata != object.end() && metadata->is_object()) metadata->erase("managedFields");
  return object;
}

ObjectCache::Key ObjectCache::KeyOf(const kube::Json& object) {
  return {MetaField(object, "namespace"), MetaField(object, "name")};
}

std::vector<ObjectPtr> ObjectCache::All() const {
  const sync::MutexLock lock(&mu_);
  std::vector<ObjectPtr> all;
  all.reserve(objects_.size());
  for (const auto& [key, entry] : objects_) all.push_back(entry.object);
  return all;
}

ObjectPtr ObjectCache::Get(const std::string& ns, const std::string& name) const {
  const sync::MutexLock lock(&mu_);
  const auto at = objects_.find({ns, name});
  return at == objects_.end() ? nullptr : at->second.object;
}

std::vector<ObjectPtr> ObjectCache::Indexed(const std::string& value) const {
  const sync::MutexLock lock(&mu_);
  std::vector<ObjectPtr> found;
  const auto keys = indexed_.find(value);
  if (keys == indexed_.end()) return found;
  for (const Key& key : keys->second) found.push_back(objects_.at(key).object);
  return found;
}

ObjectCache::Entry ObjectCache::EntryOf(const ObjectPtr& object) const {
  return {.object = storage_.packed ? object.Packed() : object,
          .version = VersionOf(*object),
          .index = {}};
}

void ObjectCache::ReadExtract(const kube::Json& object, Entry* entry) const {
  if (storage_.packed && storage_.extract) entry->object.SetExtract(storage_.extract(object));
}

bool ObjectCache::Put(const ObjectPtr& object) {
  const Key key = KeyOf(*object);
  Entry entry = EntryOf(object);
  const sync::MutexLock lock(&mu_);
  gone_.erase({key, MetaField(*object, "uid")});
  return PutEntry(key, *object, std::move(entry));
}

void ObjectCache::ListBegins() {
  const sync::MutexLock lock(&mu_);
  deleting_.clear();
}

bool ObjectCache::PutListed(const ObjectPtr& object, const std::string& list_version) {
  const auto listed = Version(list_version);
  const Key key = KeyOf(*object);
  Entry entry = EntryOf(object);
  const sync::MutexLock lock(&mu_);
  if (IsFromBeforeDeletion(*object)) return false;
  const auto at = objects_.find(key);
  if (at != objects_.end()) {
    const auto version = at->second.version;
    if (version && listed && *version <= *listed) EraseLocked(key);
  }
  gone_.erase({key, MetaField(*object, "uid")});
  return PutEntry(key, *object, std::move(entry));
}

bool ObjectCache::PutWritten(const ObjectPtr& object) {
  const Key key = KeyOf(*object);
  Entry entry = EntryOf(object);
  const sync::MutexLock lock(&mu_);
  // We wrote the object just before another client deleted it: the answer must not bring it back.
  if (gone_.count({key, MetaField(*object, "uid")}) != 0) return false;
  const bool listed = listed_at_ && entry.version && *entry.version <= *listed_at_;
  if (listed && objects_.count(key) == 0) return false;
  return PutEntry(key, *object, std::move(entry));
}

// A deletion that was accepted is never taken back.
bool ObjectCache::IsFromBeforeDeletion(const kube::Json& object) const {
  return deleting_.contains({KeyOf(object), MetaField(object, "uid")}) &&
         MetaField(object, "deletionTimestamp").empty();
}

bool ObjectCache::PutEntry(const Key& key, const kube::Json& object, Entry entry) {
  if (IsFromBeforeDeletion(object)) return false;
  const auto at = objects_.find(key);
  if (at != objects_.end()) {
    const Entry& stored = at->second;
    // The object is outdated: we have written a newer version and stored the result.
    if (entry.version && stored.version && *entry.version < *stored.version) return false;
    // The watch shows what we have written. The stored object stays, with what was read of it.
    if (stored.object.Equals(entry.object)) return true;
  }
  EraseLocked(key);
  ReadExtract(object, &entry);
  if (index_) {
    entry.index = indexed_.try_emplace(index_(object)).first;
    entry.index->second.insert(key);
  }
  objects_.emplace(key, std::move(entry));
  return true;
}

void ObjectCache::EraseLocked(const Key& key) {
  const auto at = objects_.find(key);
  if (at == objects_.end()) return;
  if (index_) {
    const auto keys = at->second.index;
    keys->second.erase(key);
    if (keys->second.empty()) indexed_.erase(keys);
  }
  objects_.erase(at);
}

// Deleted objects are remembered for races that take moments, so old ones are forgotten.
void ObjectCache::RememberGone(Gone gone) {
  gone_in_order_.push_back(gone);
  gone_.insert(std::move(gone));
  if (gone_in_order_.size() <= kMaxGone) return;
  gone_.erase(gone_in_order_.front());
  gone_in_order_.pop_front();
}

void ObjectCache::MarkDeleting(const Key& key, const std::string& uid, const std::string& since) {
  const sync::MutexLock lock(&mu_);
  const auto at = objects_.find(key);
  if (at == objects_.end()) return;
  kube::Json object = *ObjectPtr(at->second.object);
  if (MetaField(object, "uid") != uid) return;
  if (!MetaField(object, "deletionTimestamp").empty()) return;
  deleting_.insert({key, uid});
  object["metadata"]["deletionTimestamp"] = since;
  const auto tree = std::make_shared<const kube::Json>(std::move(object));
  Entry entry = EntryOf(tree);
  ReadExtract(*tree, &entry);
  at->second.object = std::move(entry.object);
}

void ObjectCache::Remove(const kube::Json& object) {
  const Key key = KeyOf(object);
  const std::string uid = MetaField(object, "uid");
  const sync::MutexLock lock(&mu_);
  deleting_.erase({key, uid});
  RememberGone({key, uid});
  const auto at = objects_.find(key);
  // We may have created another object with this name already, and stored it.
  if (at == objects_.end()) return;
  const ObjectPtr stored = at->second.object;
  if (MetaField(*stored, "uid") == uid) EraseLocked(key);
}

std::vector<ObjectPtr> ObjectCache::RemoveUnlisted(const std::set<Key>& listed,
                                                   const std::string& list_version) {
  const auto taken_at = Version(list_version);
  std::vector<ObjectPtr> removed;
  const sync::MutexLock lock(&mu_);
  listed_at_ = taken_at;
  for (const auto& [key, entry] : objects_) {
    // An object that we created after the list was taken can't be in it.
    const bool newer = entry.version && taken_at && *entry.version > *taken_at;
    if (listed.count(key) == 0 && !newer) removed.push_back(entry.object);
  }
  for (const ObjectPtr& object : removed) {
    const ObjectPtr looked = object.WithoutTree();  // there may be many, and trees are large
    // The answer to a write of ours may still arrive.
    const Gone gone(KeyOf(*looked), MetaField(*looked, "uid"));
    deleting_.erase(gone);
    RememberGone(gone);
    EraseLocked(gone.first);
  }
  return removed;
}

}  // namespace ringmaster::runtime
