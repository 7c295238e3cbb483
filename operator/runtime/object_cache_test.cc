#include "operator/runtime/object_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/runtime/testing/scripted_api.h"

namespace ringmaster::runtime {
namespace {

ObjectPtr Shared(kube::Json object) {
  return std::make_shared<const kube::Json>(std::move(object));
}

// With each way of keeping objects.
class ObjectCacheTest : public testing::TestWithParam<bool> {
 protected:
  std::string VersionOf(const std::string& name) {
    const ObjectPtr object = cache_.Get("ns", name);
    return object == nullptr ? "none" : MetaField(*object, "resourceVersion");
  }
  static ObjectCache::Key Key(const std::string& name) { return {"ns", name}; }
  ObjectCache cache_{nullptr, {.packed = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Packed, ObjectCacheTest, testing::Bool());

TEST_P(ObjectCacheTest, TheNewerStateStays) {
  EXPECT_TRUE(cache_.Put(Shared(Object("a", 20))));
  EXPECT_FALSE(cache_.Put(Shared(Object("a", 15))));
  EXPECT_TRUE(cache_.PutWritten(Shared(Object("a", 21))));
  EXPECT_EQ(VersionOf("a"), "21");
}

TEST_P(ObjectCacheTest, OnlyTheAnswerToAWriteMayNotBringBackWhatIsGone) {
  cache_.Put(Shared(Object("a", 10)));
  cache_.Remove(Object("a", 12));
  EXPECT_FALSE(cache_.PutWritten(Shared(Object("a", 11))));
  EXPECT_EQ(VersionOf("a"), "none");
  EXPECT_TRUE(cache_.PutWritten(Shared(Object("a", 13, "another uid"))));
  EXPECT_TRUE(cache_.Put(Shared(Object("a", 14))));
  EXPECT_TRUE(cache_.PutWritten(Shared(Object("a", 15)))) << "the watch has told that it is back";
}

TEST_P(ObjectCacheTest, TheEndOfAFormerObjectLeavesItsSuccessor) {
  cache_.PutWritten(Shared(Object("a", 20, "second")));
  cache_.Remove(Object("a", 12, "first"));
  EXPECT_EQ(VersionOf("a"), "20");
}

TEST_P(ObjectCacheTest, AListReplacesWhatItIsNewerThanAlsoByTheOlder) {
  cache_.Put(Shared(Object("a", 20)));
  cache_.Put(Shared(Object("b", 40)));
  EXPECT_TRUE(cache_.PutListed(Shared(Object("a", 7)), "30"));
  EXPECT_FALSE(cache_.PutListed(Shared(Object("b", 7)), "30"));
  EXPECT_EQ(VersionOf("a"), "7");
  EXPECT_EQ(VersionOf("b"), "40");
}

TEST_P(ObjectCacheTest, WhatAListLacksIsRemovedUnlessItIsNewer) {
  for (const auto& [name, version] : {std::pair("a", 5), {"b", 6}, {"new", 31}}) {
    cache_.Put(Shared(Object(name, version)));
  }
  const auto removed = cache_.RemoveUnlisted({Key("a")}, "30");
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(MetaField(*removed[0], "name"), "b");
  EXPECT_EQ(cache_.All().size(), 2u);
}

TEST_P(ObjectCacheTest, ALateAnswerDoesNotBringBackWhatAListHadNoMore) {
  cache_.Put(Shared(Object("a", 5)));
  cache_.RemoveUnlisted({}, "30");
  EXPECT_FALSE(cache_.PutWritten(Shared(Object("a", 6))))
      << "the answer to a write before it was deleted";
  EXPECT_EQ(cache_.Get("ns", "a"), nullptr);
  EXPECT_TRUE(cache_.PutWritten(Shared(Object("a", 40, "another uid"))));
}

TEST_P(ObjectCacheTest, ALateAnswerDoesNotBringBackWhatItHasNeverHadAndAListLacks) {
  cache_.RemoveUnlisted({}, "30");
  EXPECT_FALSE(cache_.PutWritten(Shared(Object("made", 20)))) << "it was deleted before the list";
  EXPECT_TRUE(cache_.PutWritten(Shared(Object("made", 31))));
  EXPECT_TRUE(cache_.Put(Shared(Object("watched", 25))));
  EXPECT_TRUE(cache_.PutWritten(Shared(Object("watched", 26)))) << "which is there";
}

TEST_P(ObjectCacheTest, WhatTheWatchShowsOfOurOwnWriteLeavesTheStoredObject) {
  cache_.PutWritten(Shared(Object("a", 20)));
  const ObjectPtr written = cache_.Get("ns", "a");
  EXPECT_TRUE(cache_.Put(Shared(Object("a", 20)))) << "it is news to those who hear of the watch";
  EXPECT_EQ(cache_.Get("ns", "a"), written);
  kube::Json other = Object("a", 20);
  other["more"] = true;
  EXPECT_TRUE(cache_.Put(Shared(other)));
  EXPECT_EQ(*cache_.Get("ns", "a"), other);
}

TEST_P(ObjectCacheTest, WhatWeHaveDeletedStaysSoWhateverALateWatchShows) {
  const auto since = [&] { return MetaField(*cache_.Get("ns", "a"), "deletionTimestamp"); };
  cache_.Put(Shared(Object("a", 20, "first")));
  cache_.MarkDeleting(Key("a"), "another", "2026-01-31T12:00:00Z");
  EXPECT_EQ(since(), "");
  cache_.MarkDeleting(Key("b"), "first", "2026-01-31T12:00:00Z");
  EXPECT_EQ(cache_.Get("ns", "b"), nullptr);
  cache_.MarkDeleting(Key("a"), "first", "2026-01-31T12:00:00Z");
  EXPECT_FALSE(cache_.Put(Shared(Object("a", 20, "first")))) << "our last write before";
  EXPECT_FALSE(cache_.Put(Shared(Object("a", 21, "first")))) << "another client's";
  EXPECT_EQ(since(), "2026-01-31T12:00:00Z");
  kube::Json deleting = Object("a", 22, "first");
  deleting["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:01Z";
  EXPECT_TRUE(cache_.Put(Shared(deleting))) << "a finalizer keeps it";
  cache_.MarkDeleting(Key("a"), "first", "2026-01-31T12:00:05Z");
  EXPECT_EQ(since(), "2026-01-31T12:00:01Z");
  EXPECT_TRUE(cache_.Put(Shared(Object("a", 24, "second"))));
  EXPECT_EQ(since(), "");
}

TEST_P(ObjectCacheTest, AListThatWasAskedForBeforeADeletionDoesNotTakeItBack) {
  const auto since = [&] { return MetaField(*cache_.Get("ns", "a"), "deletionTimestamp"); };
  cache_.Put(Shared(Object("a", 20, "first")));
  cache_.ListBegins();
  cache_.MarkDeleting(Key("a"), "first", "2026-01-31T12:00:00Z");
  EXPECT_FALSE(cache_.PutListed(Shared(Object("a", 20, "first")), "30"));
  EXPECT_EQ(since(), "2026-01-31T12:00:00Z");
  cache_.ListBegins();
  EXPECT_TRUE(cache_.PutListed(Shared(Object("a", 20, "first")), "31")) << "restored from a backup";
  EXPECT_EQ(since(), "");
}

TEST_P(ObjectCacheTest, ManyDeletionsDontMakeItForgetTheLatest) {
  for (int i = 0; i < 5000; ++i) cache_.Remove(Object("pod-" + std::to_string(i), i + 1));
  EXPECT_FALSE(cache_.PutWritten(Shared(Object("pod-4200", 1))));
  EXPECT_TRUE(cache_.PutWritten(Shared(Object("pod-0", 1)))) << "its memory has an end";
}

TEST(PackedObjectCacheTest, TheCacheKeepsNoTreeOfWhatItHasLookedAt) {
  ObjectCache cache(nullptr, {.packed = true});
  cache.Put(Shared(Object("a", 20, "first")));
  cache.MarkDeleting({"ns", "a"}, "another", "2026-01-31T12:00:00Z");
  cache.Remove(Object("a", 20, "another"));
  const ObjectPtr one = cache.Get("ns", "a"), other = cache.All().front();
  EXPECT_TRUE(one == other);
  EXPECT_NE(&*one, &*other);
}

TEST(PackedObjectCacheTest, TheExtractIsOfTheObjectAsItIsNow) {
  ObjectCache cache(nullptr, {.packed = true, .extract = [](const kube::Json& object) {
                                return std::make_shared<const std::string>(
                                    MetaField(object, "deletionTimestamp"));
                              }});
  const auto since = [&] { return *cache.Get("ns", "a").extract<std::string>(); };
  cache.Put(Shared(Object("a", 20, "first")));
  EXPECT_EQ(since(), "");
  cache.MarkDeleting({"ns", "a"}, "first", "2026-01-31T12:00:00Z");
  EXPECT_EQ(since(), "2026-01-31T12:00:00Z");
  cache.Put(Shared(Object("a", 21, "second")));
  EXPECT_EQ(since(), "");
}

TEST(IndexedObjectCacheTest, ObjectsAreFoundByWhatTheySay) {
  ObjectCache cache([](const kube::Json& object) { return object.value("team", ""); });
  const auto of = [](const std::string& name, int version, const char* team) {
    kube::Json object = Object(name, version);
    object["team"] = team;
    return object;
  };
  const auto names = [&](const char* team) {
    std::string all;
    for (const ObjectPtr& object : cache.Indexed(team)) all += MetaField(*object, "name");
    return all;
  };
  cache.Put(Shared(of("b", 1, "red")));
  cache.Put(Shared(of("a", 2, "red")));
  cache.Put(Shared(of("c", 3, "blue")));
  EXPECT_EQ(names("red"), "ab");
  cache.Put(Shared(of("a", 4, "blue")));
  EXPECT_EQ(names("red"), "b");
  EXPECT_EQ(names("blue"), "ac");
  cache.Remove(of("b", 5, "green"));
  EXPECT_EQ(names("red"), "") << "it stood there until it was deleted, whatever its end says";
  cache.RemoveUnlisted({}, "30");
  EXPECT_EQ(names("blue"), "");
}

}  // namespace
}  // namespace ringmaster::runtime
