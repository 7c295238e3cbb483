#include "operator/local/store/versioned_objects.h"

#include <gtest/gtest.h>

#include "operator/kube/resources.h"

namespace ringmaster::local {
namespace {

using Type = kube::WatchEvent::Type;
using namespace std::chrono_literals;

const ObjectKey kKey{"default", "a"};

Json Map(const std::string& value) {
  return {{"metadata", {{"name", "a"}, {"namespace", "default"}, {"labels", {{"v", value}}}}}};
}

Selection Where(const std::string& labels) {
  return {&kube::ConfigMaps(), "default", *kube::LabelSelector::Parse(labels), {}};
}

TEST(VersionedObjects, EveryChangeGetsTheNextVersion) {
  VersionedObjects objects({.changes = 8, .age = 60s});
  const uint64_t before = objects.version();
  const Json stored = objects.Put(kube::ConfigMaps(), kKey, Map("1"));
  EXPECT_EQ(stored["metadata"]["resourceVersion"], std::to_string(before + 1));
  objects.Erase(kube::ConfigMaps(), kKey);
  EXPECT_EQ(objects.version(), before + 2);
  EXPECT_EQ(objects.Find(kube::ConfigMaps(), "default", "a"), nullptr);
}

TEST(VersionedObjects, AnObjectThatLeavesTheSelectionIsDeletedInIt) {
  VersionedObjects objects({.changes = 8, .age = 60s});
  uint64_t version = objects.version();
  objects.Put(kube::ConfigMaps(), kKey, Map("1"));
  objects.Put(kube::ConfigMaps(), kKey, Map("2"));
  const Selection selection = Where("v=1");
  for (Type type : {Type::kAdded, Type::kDeleted}) {
    auto event = objects.NextEvent(selection, version);
    ASSERT_TRUE(event.has_value() && event->has_value());
    EXPECT_EQ((*event)->type, type);
  }
  auto none = objects.NextEvent(selection, version);
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(none->has_value());
  EXPECT_EQ(version, objects.version());
}

TEST(VersionedObjects, WhatTheHistoryHasLostIsExpired) {
  VersionedObjects objects({.changes = 1, .age = 60s});
  const uint64_t old = objects.version();
  for (const char* value : {"1", "2"}) objects.Put(kube::ConfigMaps(), kKey, Map(value));
  EXPECT_EQ(objects.forgotten(kube::ConfigMaps()), old + 1);
  uint64_t version = old;
  auto expired = objects.NextEvent(Where(""), version);
  ASSERT_FALSE(expired.has_value());
  EXPECT_EQ(expired.error()["code"], 410);
  objects.ForgetHistory(kube::ConfigMaps());
  version = objects.version() - 1;
  EXPECT_FALSE(objects.NextEvent(Where(""), version).has_value());
}

TEST(VersionedObjects, WhatIsOldIsForgotten) {
  VersionedObjects::Time now;
  VersionedObjects objects({.changes = 8, .age = 60s, .now = [&] { return now; }});
  const uint64_t old = objects.version();
  for (const char* value : {"1", "2"}) {
    objects.Put(kube::ConfigMaps(), kKey, Map(value));
    now += 40s;
  }
  EXPECT_LT(objects.forgotten(kube::ConfigMaps()), old + 1) << "the first is 40 s old";
  objects.Put(kube::ConfigMaps(), kKey, Map("3"));
  EXPECT_EQ(objects.forgotten(kube::ConfigMaps()), old + 1) << "it was 80 s old";
  objects.Erase(kube::ConfigMaps(), kKey);
  EXPECT_EQ(objects.forgotten(kube::ConfigMaps()), old + 1) << "the second is 40 s old";
}

}  // namespace
}  // namespace ringmaster::local
