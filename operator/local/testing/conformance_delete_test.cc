// Deletion: preconditions, finalizers, owners.
#include "operator/local/testing/conformance_fixture.h"

namespace ringmaster::local::testing {
namespace {

TEST_P(KubeConformance, DeletePreconditionsAreChecked) {
  Json object = MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  kube::DeleteOptions options;
  options.uid = "00000000-0000-0000-0000-000000000000";
  auto refused = api().Delete(kube::ConfigMaps(), ns_, "a", options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("the UID in the precondition (0000"));
  options.uid = object["metadata"]["uid"];
  options.resource_version = Version(object);
  EXPECT_TRUE(api().Delete(kube::ConfigMaps(), ns_, "a", options).has_value());
}

TEST_P(KubeConformance, FinalizersHoldAnObjectUntilTheyAreGone) {
  Json object = ConfigMap("a");
  object["metadata"]["finalizers"] = {"ringmaster.dev/test"};
  MustCreate(kube::ConfigMaps(), object);
  ASSERT_TRUE(api().Delete(kube::ConfigMaps(), ns_, "a", {}).has_value());
  auto held = api().Get(kube::ConfigMaps(), ns_, "a");
  ASSERT_TRUE(held.has_value());
  EXPECT_TRUE((*held)["metadata"].contains("deletionTimestamp"));
  Json more = *held;
  more["metadata"]["finalizers"].push_back("ringmaster.dev/another");
  auto refused = api().Update(kube::ConfigMaps(), ns_, more);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  (*held)["metadata"].erase("finalizers");
  ASSERT_TRUE(api().Update(kube::ConfigMaps(), ns_, *held).has_value());
  EXPECT_TRUE(Goes(kube::ConfigMaps(), "a"));
}

TEST_P(KubeConformance, DependentsGoWithTheirOwner) {
  Json owner = MustCreate(kube::HorovodJobs(), Job("j"));
  Json child = ConfigMap("child");
  child["metadata"]["ownerReferences"] = Json::array({OwnerRef(owner)});
  MustCreate(kube::ConfigMaps(), child);
  kube::DeleteOptions options;
  options.propagation = "Background";
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "j", options).has_value());
  EXPECT_TRUE(Goes(kube::ConfigMaps(), "child"));
}

TEST_P(KubeConformance, OrphanedDependentsStay) {
  Json owner = MustCreate(kube::HorovodJobs(), Job("j"));
  Json child = ConfigMap("child");
  child["metadata"]["ownerReferences"] = Json::array({OwnerRef(owner)});
  MustCreate(kube::ConfigMaps(), child);
  kube::DeleteOptions options;
  options.propagation = "Orphan";
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "j", options).has_value());
  EXPECT_TRUE(Goes(kube::HorovodJobs(), "j"));
  auto left = api().Get(kube::ConfigMaps(), ns_, "child");
  ASSERT_TRUE(left.has_value());
  EXPECT_FALSE((*left)["metadata"].contains("ownerReferences"));
}

TEST_P(KubeConformance, ForegroundDeletionWaitsForBlockingDependents) {
  Json owner = MustCreate(kube::HorovodJobs(), Job("j"));
  Json child = ConfigMap("child");
  child["metadata"]["ownerReferences"] = Json::array({OwnerRef(owner, true)});
  child["metadata"]["finalizers"] = {"ringmaster.dev/test"};
  MustCreate(kube::ConfigMaps(), child);
  kube::DeleteOptions options;
  options.propagation = "Foreground";
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "j", options).has_value());
  ASSERT_TRUE(Until([&] {
    auto c = api().Get(kube::ConfigMaps(), ns_, "child");
    return c && (*c)["metadata"].contains("deletionTimestamp");
  }));
  auto held = api().Get(kube::HorovodJobs(), ns_, "j");
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ((*held)["metadata"]["finalizers"], Json::array({"foregroundDeletion"}));
  ASSERT_TRUE(
      api()
          .Patch(kube::ConfigMaps(), ns_, "child", {{"metadata", {{"finalizers", nullptr}}}}, {})
          .has_value());
  EXPECT_TRUE(Goes(kube::ConfigMaps(), "child"));
  EXPECT_TRUE(Goes(kube::HorovodJobs(), "j"));
}

TEST_P(KubeConformance, AWrongPropagationPolicyIsInvalid) {
  MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  kube::DeleteOptions options;
  options.propagation = "Sometimes";
  auto error = Refused(api().Delete(kube::ConfigMaps(), ns_, "a", options));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("propagationPolicy: Unsupported value: \"Sometimes\""));
}

TEST_P(KubeConformance, ASecondDeletionDoesntMoveTheFirstsTime) {
  Json job = Job("j");
  job["metadata"]["finalizers"] = {"ringmaster.dev/test"};
  MustCreate(kube::HorovodJobs(), job);
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "j", {}).has_value());
  auto first = api().Get(kube::HorovodJobs(), ns_, "j");
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ((*first)["metadata"]["generation"], 2) << "a deletion is a change that is asked for";
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "j", {}).has_value());
  auto second = api().Get(kube::HorovodJobs(), ns_, "j");
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ((*second)["metadata"]["deletionTimestamp"], (*first)["metadata"]["deletionTimestamp"]);
  EXPECT_EQ((*second)["metadata"]["generation"], 2);
  ASSERT_TRUE(
      api()
          .Patch(kube::HorovodJobs(), ns_, "j", {{"metadata", {{"finalizers", nullptr}}}}, {})
          .has_value());
  EXPECT_TRUE(Goes(kube::HorovodJobs(), "j"));
}

TEST_P(KubeConformance, ADependentOfSeveralOwnersGoesWithTheLast) {
  Json one = MustCreate(kube::HorovodJobs(), Job("one"));
  Json two = MustCreate(kube::HorovodJobs(), Job("two"));
  Json child = ConfigMap("child");
  child["metadata"]["ownerReferences"] = {OwnerRef(one), OwnerRef(two)};
  MustCreate(kube::ConfigMaps(), child);
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "one", {}).has_value());
  EXPECT_TRUE(Until([&] {
    auto got = api().Get(kube::ConfigMaps(), ns_, "child");
    return got && (*got)["metadata"]["ownerReferences"].size() == 1;
  }));
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "two", {}).has_value());
  EXPECT_TRUE(Goes(kube::ConfigMaps(), "child"));
}

TEST_P(KubeConformance, AnObjectWhoseOwnerIsGoneAlreadyGoesToo) {
  Json owner = MustCreate(kube::HorovodJobs(), Job("j"));
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "j", {}).has_value());
  ASSERT_TRUE(Goes(kube::HorovodJobs(), "j"));
  Json child = ConfigMap("late");
  child["metadata"]["ownerReferences"] = Json::array({OwnerRef(owner)});
  MustCreate(kube::ConfigMaps(), child);
  EXPECT_TRUE(Goes(kube::ConfigMaps(), "late"));
}

TEST_P(KubeConformance, ANamespaceTakesItsObjectsWithItAndTakesNoNewOnes) {
  auto made = api().Create(kube::Namespaces(), "",
                           {{"metadata", {{"generateName", "kube-conformance-gone-"}}}});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const std::string ns = (*made)["metadata"]["name"];
  Json held = ConfigMap("held");
  held["metadata"]["finalizers"] = {"ringmaster.dev/test"};
  ASSERT_TRUE(api().Create(kube::ConfigMaps(), ns, held).has_value());
  ASSERT_TRUE(api().Create(kube::ConfigMaps(), ns, ConfigMap("free")).has_value());
  ASSERT_TRUE(api().Delete(kube::Namespaces(), "", ns, {}).has_value());
  EXPECT_TRUE(Until([&] { return !api().Get(kube::ConfigMaps(), ns, "free").has_value(); }));
  auto error = Refused(api().Create(kube::ConfigMaps(), ns, ConfigMap("late")));
  EXPECT_EQ(error.code, ErrorCode::kForbidden);
  EXPECT_THAT(error.message, HasSubstr("because it is being terminated"));
  ASSERT_TRUE(
      api()
          .Patch(kube::ConfigMaps(), ns, "held", {{"metadata", {{"finalizers", nullptr}}}}, {})
          .has_value());
  EXPECT_TRUE(Until([&] { return !api().Get(kube::Namespaces(), "", ns).has_value(); }));
}

}  // namespace
}  // namespace ringmaster::local::testing
