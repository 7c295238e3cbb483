// Server-side apply.
#include "operator/local/testing/conformance_fixture.h"

namespace ringmaster::local::testing {
namespace {

TEST_P(KubeConformance, ApplyCreatesChangesAndRemovesItsOwnFields) {
  kube::PatchOptions options;
  options.type = kube::PatchType::kApply;
  options.field_manager = "one";
  Json config = {{"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata", {{"name", "a"}}},
                 {"data", {{"x", "1"}, {"y", "1"}}}};
  auto created = api().Patch(kube::ConfigMaps(), ns_, "a", config, options);
  ASSERT_TRUE(created.has_value()) << created.error().message;
  config["data"] = {{"x", "2"}};
  auto changed = api().Patch(kube::ConfigMaps(), ns_, "a", config, options);
  ASSERT_TRUE(changed.has_value()) << changed.error().message;
  EXPECT_EQ((*changed)["data"], Json({{"x", "2"}}));
}

TEST_P(KubeConformance, ApplyOfAnothersFieldIsAConflictUnlessForced) {
  kube::PatchOptions options;
  options.type = kube::PatchType::kApply;
  options.field_manager = "one";
  Json config = {{"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata", {{"name", "a"}}},
                 {"data", {{"x", "1"}}}};
  ASSERT_TRUE(api().Patch(kube::ConfigMaps(), ns_, "a", config, options).has_value());
  options.field_manager = "two";
  config["data"]["x"] = "2";
  auto refused = api().Patch(kube::ConfigMaps(), ns_, "a", config, options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("conflict with \"one\": .data.x"));
  options.force = true;
  auto forced = api().Patch(kube::ConfigMaps(), ns_, "a", config, options);
  ASSERT_TRUE(forced.has_value()) << forced.error().message;
  EXPECT_EQ((*forced)["data"]["x"], "2");
}

TEST_P(KubeApply, NeedsAFieldManager) {
  auto error = Refused(Apply("", {{"x", "1"}}));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("fieldManager: Required value: is required for apply"));
}

TEST_P(KubeApply, AFieldThatTwoWantAlikeBelongsToBothUntilBothLetGo) {
  ASSERT_TRUE(Apply("one", {{"x", "1"}, {"y", "1"}}).has_value());
  ASSERT_TRUE(Apply("two", {{"x", "1"}}).has_value());
  auto still = Apply("one", {{"y", "1"}});
  ASSERT_TRUE(still.has_value()) << still.error().message;
  EXPECT_EQ((*still)["data"], Json({{"x", "1"}, {"y", "1"}}));
  auto gone = Apply("two", Json::object());
  ASSERT_TRUE(gone.has_value()) << gone.error().message;
  EXPECT_EQ((*gone)["data"], Json({{"y", "1"}}));
}

TEST_P(KubeApply, AForcedFieldIsNoLongerTheOthers) {
  ASSERT_TRUE(Apply("one", {{"x", "1"}}).has_value());
  ASSERT_TRUE(Apply("two", {{"x", "2"}}, true).has_value());
  // It has lost the field: leaving it out takes nothing away.
  auto left = Apply("one", Json::object());
  ASSERT_TRUE(left.has_value()) << left.error().message;
  EXPECT_EQ((*left)["data"], Json({{"x", "2"}}));
}

TEST_P(KubeApply, AFieldThatSomebodyHasUpdatedIsHis) {
  ASSERT_TRUE(Apply("one", {{"x", "1"}, {"y", "1"}}).has_value());
  kube::PatchOptions merge;
  merge.field_manager = "hand";
  ASSERT_TRUE(
      api().Patch(kube::ConfigMaps(), ns_, "a", {{"data", {{"x", "by hand"}}}}, merge).has_value());
  auto error = Refused(Apply("one", {{"x", "1"}, {"y", "1"}}));
  EXPECT_EQ(error.code, ErrorCode::kConflict);
  EXPECT_THAT(error.message, HasSubstr("conflict with \"hand\""));
  EXPECT_THAT(error.message, HasSubstr(".data.x"));
  EXPECT_TRUE(Apply("one", {{"x", "by hand"}, {"y", "2"}}).has_value());  // agreed with
}

TEST_P(KubeApply, ListsAreMergedByTheirKeys) {
  kube::PatchOptions options;
  options.type = kube::PatchType::kApply;
  options.field_manager = "one";
  Json pod = Pod("p");
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["metadata"]["finalizers"] = {"ringmaster.dev/test"};
  ASSERT_TRUE(api().Patch(kube::Pods(), ns_, "p", pod, options).has_value());
  options.field_manager = "two";
  Json other = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", {{"name", "p"}, {"finalizers", {"ringmaster.dev/other"}}}}};
  auto both = api().Patch(kube::Pods(), ns_, "p", other, options);
  ASSERT_TRUE(both.has_value()) << both.error().message;
  EXPECT_THAT((*both)["metadata"]["finalizers"],
              UnorderedElementsAre("ringmaster.dev/test", "ringmaster.dev/other"));
  other["metadata"].erase("finalizers");
  auto one = api().Patch(kube::Pods(), ns_, "p", other, options);
  ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_EQ((*one)["metadata"]["finalizers"], Json::array({"ringmaster.dev/test"}));
  ASSERT_TRUE(api()
                  .Patch(kube::Pods(), ns_, "p", {{"metadata", {{"finalizers", nullptr}}}}, {})
                  .has_value());
}

TEST_P(KubeApply, AnObjectThatIsGoneIsMadeAgain) {
  ASSERT_TRUE(Apply("one", {{"x", "1"}, {"y", "1"}}).has_value());
  ASSERT_TRUE(api().Delete(kube::ConfigMaps(), ns_, "a", {}).has_value());
  auto again = Apply("one", {{"x", "1"}});
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ((*again)["data"], Json({{"x", "1"}}));
}

TEST_P(KubeApply, ApplyToTheStatusLeavesTheRestAlone) {
  MustCreate(kube::HorovodJobs(), Job("j"));
  kube::PatchOptions options;
  options.type = kube::PatchType::kApply;
  options.field_manager = "one";
  options.subresource = "status";
  Json status = {{"apiVersion", "ringmaster.dev/v1alpha1"},
                 {"kind", "HorovodJob"},
                 {"metadata", {{"name", "j"}}},
                 {"status", {{"worldSize", 3}}}};
  auto applied = api().Patch(kube::HorovodJobs(), ns_, "j", status, options);
  ASSERT_TRUE(applied.has_value()) << applied.error().message;
  EXPECT_EQ((*applied)["status"]["worldSize"], 3);
  EXPECT_EQ((*applied)["spec"]["worker"]["replicas"], 2);
}

}  // namespace
}  // namespace ringmaster::local::testing
