#include "operator/runtime/object_feed.h"

#include <utility>
#include <vector>

namespace ringmaster::runtime {

ObjectFeed::ObjectFeed(ObjectSelection selection, Handler handler)
    : selection_(std::move(selection)),
      handler_(std::move(handler)),
      cache_(selection_.index, selection_.storage) {}

ObjectPtr ObjectFeed::Kept(kube::Json object) const {
  if (selection_.keep) object = selection_.keep(std::move(object));
  return std::make_shared<const kube::Json>(std::move(object));
}

bool ObjectFeed::Stores(const kube::Json& kept) const {
  return !selection_.stores || selection_.stores(kept);
}

void ObjectFeed::TakeListed(kube::Json object, const std::string& list_version) {
  listed_.insert(ObjectCache::KeyOf(object));
  const ObjectPtr kept = Kept(std::move(object));
  if (!Stores(*kept)) return PassOn(*kept);
  TellReplaced(*kept);
  if (cache_.PutListed(kept, list_version)) Tell(*kept);
}

void ObjectFeed::EndList(const std::string& list_version, const std::function<void()>& on_synced) {
  const std::vector<ObjectPtr> gone = cache_.RemoveUnlisted(listed_, list_version);
  for (const ObjectPtr& object : gone) told_.Remove(*object.WithoutTree());
  const std::vector<kube::Json> others =
      told_.TakeGone([this](const ObjectCache::Key& key, const std::string& uid) {
        if (listed_.count(key) != 0) return false;
        const ObjectPtr stored =
            cache_.Get(key.first, key.second);  // not null: newer than the list
        return stored == nullptr || MetaField(*stored, "uid") != uid;
      });
  listed_.clear();
  on_synced();
  for (const ObjectPtr& object : gone) handler_(*object.WithoutTree(), true);
  for (const kube::Json& object : others) handler_(object, true);
}

void ObjectFeed::TakeWatched(kube::Json object) {
  const ObjectPtr kept = Kept(std::move(object));
  if (!Stores(*kept)) return PassOn(*kept);
  TellReplaced(*kept);
  if (cache_.Put(kept)) Tell(*kept);
}

void ObjectFeed::TakeDeleted(const kube::Json& object) {
  cache_.Remove(object);
  told_.Remove(object);
  handler_(object, true);
}

bool ObjectFeed::Observe(kube::Json object) {
  const ObjectPtr kept = Kept(std::move(object));
  return Stores(*kept) && cache_.PutWritten(kept);
}

void ObjectFeed::PassOn(const kube::Json& kept) {
  if (const ObjectPtr stored = cache_.Get(MetaField(kept, "namespace"), MetaField(kept, "name"))) {
    cache_.Remove(*stored);  // the object used to be among the stored ones
    told_.RemoveName(kept);
    handler_(*stored, true);
  }
  TellReplaced(kept);
  Tell(kept);
}

void ObjectFeed::Tell(const kube::Json& kept) {
  told_.Add(kept);
  handler_(kept, false);
}

// Another object has the name now, and the deletion of the earlier one was not reported.
void ObjectFeed::TellReplaced(const kube::Json& by) {
  const auto uid = told_.TakeReplaced(by);
  if (!uid) return;
  const std::string ns = MetaField(by, "namespace"), name = MetaField(by, "name");
  const ObjectPtr last = cache_.Get(ns, name);
  if (last == nullptr || MetaField(*last, "uid") != *uid)
    return handler_(Stub(ns, name, *uid), true);
  cache_.Remove(*last);
  handler_(*last, true);
}

}  // namespace ringmaster::runtime
