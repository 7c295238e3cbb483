#include "operator/local/store/garbage_collector.h"

#include <gtest/gtest.h>

#include "operator/kube/resources.h"

namespace ringmaster::local {
namespace {

class GarbageCollectorTest : public ::testing::Test {
 protected:
  const GarbageCollector::Time now_{std::chrono::seconds(1000)};

  // Its uid is its name.
  void Add(const kube::Resource& resource, const std::string& name, Json more = Json::object()) {
    Json object = {{"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}}},
                   {"spec", Json::object()}};
    object.merge_patch(more);
    const Json stored = objects_.Put(resource, {"default", name}, std::move(object));
    collector_.Created(resource, {"default", name}, stored, now_);
  }
  static Json OwnedBy(const std::string& owner, bool blocks = false) {
    return {
        {"metadata", {{"ownerReferences", {{{"uid", owner}, {"blockOwnerDeletion", blocks}}}}}}};
  }
  Answer<Json> Delete(const kube::Resource& resource, const std::string& name,
                      const kube::DeleteOptions& options = {}) {
    return collector_.Delete(resource, "default", name, options, now_);
  }
  Object Find(const kube::Resource& resource, const std::string& name) {
    return objects_.Find(resource, "default", name);
  }

  VersionedObjects objects_{{.changes = 64, .age = std::chrono::seconds(60)}};
  FieldOwnership fields_;
  GarbageCollector collector_{objects_, fields_};
};

TEST_F(GarbageCollectorTest, DependentsGoWithTheirOwner) {
  Add(kube::ConfigMaps(), "owner");
  Add(kube::Secrets(), "child", OwnedBy("owner"));
  Add(kube::Secrets(), "grandchild", OwnedBy("child"));
  ASSERT_TRUE(Delete(kube::ConfigMaps(), "owner").has_value());
  EXPECT_EQ(Find(kube::Secrets(), "child"), nullptr);
  EXPECT_EQ(Find(kube::Secrets(), "grandchild"), nullptr);
}

TEST_F(GarbageCollectorTest, AnObjectThatComesAfterItsOwnersEndGoesAtOnce) {
  Add(kube::Secrets(), "late", OwnedBy("nobody"));
  EXPECT_EQ(Find(kube::Secrets(), "late"), nullptr);
}

TEST_F(GarbageCollectorTest, ForegroundDeletionWaitsForADependentThatBlocks) {
  Add(kube::ConfigMaps(), "owner");
  Json child = OwnedBy("owner", true);
  child["metadata"]["finalizers"] = {"test/hold"};
  Add(kube::Secrets(), "child", child);
  ASSERT_TRUE(Delete(kube::ConfigMaps(), "owner", {.propagation = "Foreground"}).has_value());
  EXPECT_NE(Find(kube::ConfigMaps(), "owner"), nullptr);
  collector_.Remove(kube::Secrets(), {"default", "child"}, now_);
  EXPECT_EQ(Find(kube::ConfigMaps(), "owner"), nullptr);
}

TEST_F(GarbageCollectorTest, APodOnANodeHasItsGracePeriod) {
  Add(kube::Pods(), "p", {{"spec", {{"nodeName", "n"}, {"terminationGracePeriodSeconds", 20}}}});
  auto deleted = Delete(kube::Pods(), "p");
  ASSERT_TRUE(deleted.has_value());
  EXPECT_EQ((*deleted)["metadata"]["deletionTimestamp"], "1970-01-01T00:17:00Z");
  EXPECT_NE(Find(kube::Pods(), "p"), nullptr);
  ASSERT_TRUE(Delete(kube::Pods(), "p", {.grace_period_seconds = 0}).has_value());
}

TEST_F(GarbageCollectorTest, AnotherUidIsAConflict) {
  Add(kube::ConfigMaps(), "a");
  auto refused = Delete(kube::ConfigMaps(), "a", {.uid = "other"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error()["code"], 409);
}

}  // namespace
}  // namespace ringmaster::local
