// What the store does beyond the conformance suite: its window of history, the schema.
#include "operator/local/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/time.h"
#include "operator/kube/resources.h"

namespace ringmaster::local {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr char kCrd[] = R"(
kind: CustomResourceDefinition
spec:
  names: {shortNames: [hvdjob]}
  versions:
    - name: v1alpha1
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              properties:
                n: {type: integer, minimum: 1, default: 3}
                mode: {type: string, enum: [A, B]}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
)";

Json Job(Json spec) { return {{"metadata", {{"name", "j"}}}, {"spec", std::move(spec)}}; }

TEST(Store, AWatchFromBeforeTheWindowIsExpired) {
  Store store({.history = 2});
  std::string old = std::to_string(store.version());
  auto cursor = store.Watch(kube::ConfigMaps(), "default", {"", "", old});
  ASSERT_TRUE(cursor.has_value());
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(store.Create(kube::ConfigMaps(), "default", {{"metadata", {{"name", name}}}}));
  }
  auto late = store.Watch(kube::ConfigMaps(), "default", {"", "", old});
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error()["code"], 410);
  auto slow = cursor->Next(milliseconds(0));
  ASSERT_FALSE(slow.has_value());
  EXPECT_EQ(slow.error()["reason"], "Expired");
}

Json Event(const char* name) {
  return {{"metadata", {{"name", name}}},
          {"reason", "R"},
          {"type", "Normal"},
          {"action", "A"},
          {"eventTime", "2026-01-31T12:00:00.000000Z"},
          {"reportingController", "c"},
          {"reportingInstance", "i"}};
}

TEST(Store, EventsAreKeptForAnHourSinceTheyWereSeenLast) {
  auto now = std::chrono::system_clock::now();
  Store store({.now = [&] { return now; }});
  for (const char* name : {"old", "seen"})
    ASSERT_TRUE(store.Create(kube::Events(), "default", Event(name)));
  now += std::chrono::minutes(50);
  Json seen = store.Get(kube::Events(), "default", "seen").value();
  seen["series"] = {{"count", 2}, {"lastObservedTime", api::FormatMicroTime(now)}};
  ASSERT_TRUE(store.Update(kube::Events(), "default", "seen", seen, ""));
  now += std::chrono::minutes(11);
  ASSERT_TRUE(store.Create(kube::Events(), "default", Event("new")));
  EXPECT_FALSE(store.Get(kube::Events(), "default", "old").has_value());
  EXPECT_TRUE(store.Get(kube::Events(), "default", "seen").has_value());
  EXPECT_TRUE(store.Get(kube::Events(), "default", "new").has_value());
}

// Owners of thousands of events would take more memory than the events.
TEST(Store, NobodyOwnsTheFieldsOfAnEvent) {
  Store store({});
  ASSERT_TRUE(store.Create(kube::Events(), "default", Event("e"), {.field_manager = "first"}));
  Json seen = store.Get(kube::Events(), "default", "e").value();
  seen["note"] = "again";
  ASSERT_TRUE(store.Update(kube::Events(), "default", "e", seen, "", {.field_manager = "second"}));
  const PatchRequest apply{.type = PatchRequest::Type::kApply,
                           .patch = {{"type", "Warning"}, {"note", "once more"}},
                           .field_manager = "third"};
  EXPECT_TRUE(store.Patch(kube::Events(), "default", "e", apply)) << "no conflict with an owner";
}

TEST(Store, AWatchSaysWhetherObjectsAreLeftThatItShowsFirst) {
  Store store({});
  ASSERT_TRUE(store.Create(kube::ConfigMaps(), "default", {{"metadata", {{"name", "a"}}}}));
  auto cursor = store.Watch(kube::ConfigMaps(), "default", {});
  ASSERT_TRUE(cursor.has_value());
  EXPECT_TRUE(cursor->HasInitial());
  EXPECT_TRUE(cursor->Next(milliseconds(0)).value().has_value());
  EXPECT_FALSE(cursor->HasInitial());
}

TEST(Store, UnknownFieldsArePrunedAndRefusedWhenStrict) {
  Store store({.crd_yaml = kCrd});
  auto strict =
      store.Create(kube::HorovodJobs(), "default", Job({{"foo", 1}}), {.strict_fields = true});
  ASSERT_FALSE(strict.has_value());
  EXPECT_EQ(strict.error()["code"], 400);
  EXPECT_THAT(strict.error()["message"].get<std::string>(),
              HasSubstr("strict decoding error: unknown field \"spec.foo\""));
  auto pruned =
      store.Create(kube::HorovodJobs(), "default", Job({{"foo", 1}, {"free", {{"x", 1}}}}));
  ASSERT_TRUE(pruned.has_value());
  EXPECT_EQ((*pruned)["spec"], Json({{"free", {{"x", 1}}}, {"n", 3}}));
}

TEST(Store, WrongValuesNameTheirFields) {
  Store store({.crd_yaml = kCrd});
  struct Case {
    Json spec;
    const char* message;
  };
  for (const Case& c :
       {Case{{{"n", 0}}, "spec.n in body should be greater than or equal to 1"},
        Case{{{"n", "x"}}, "spec.n in body must be of type integer: \"string\""},
        Case{{{"mode", "C"}}, "Unsupported value: \"C\": supported values: \"A\", \"B\""}}) {
    auto created = store.Create(kube::HorovodJobs(), "default", Job(c.spec));
    ASSERT_FALSE(created.has_value()) << c.spec;
    EXPECT_EQ(created.error()["code"], 422);
    EXPECT_THAT(created.error()["message"].get<std::string>(), HasSubstr(c.message));
  }
  auto none = store.Create(kube::HorovodJobs(), "default", {{"metadata", {{"name", "j"}}}});
  EXPECT_THAT(none.error()["message"].get<std::string>(), HasSubstr("spec: Required value"));
}

TEST(Store, MalformedObjectsAreRefusedNotThrown) {
  Store store({});
  for (Json bad : {Json(1), Json::array(), Json({{"metadata", 1}}),
                   Json({{"metadata", {{"name", "p"}}}, {"spec", 1}}),
                   Json({{"metadata", {{"name", "p"}}}, {"spec", {{"containers", {{"a", 1}}}}}})}) {
    EXPECT_FALSE(store.Create(kube::Pods(), "default", bad).has_value()) << bad;
  }
}

TEST(Store, FieldsOfAPodThatTheClusterReadsHaveTheirTypes) {
  Store store({});
  const Json pod = {{"metadata", {{"name", "p"}}},
                    {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}};
  const Json wrong = {{"nodeName", 5},
                      {"schedulerName", Json::object()},
                      {"restartPolicy", 5},
                      {"schedulingGates", {1}},
                      {"terminationGracePeriodSeconds", 1e300}};
  for (const auto& [field, value] : wrong.items()) {
    Json bad = pod;
    bad["spec"][field] = value;
    const auto refused = store.Create(kube::Pods(), "default", bad);
    ASSERT_FALSE(refused.has_value()) << field;
    EXPECT_EQ(refused.error()["code"], 400) << field;
  }
  ASSERT_TRUE(store.Create(kube::Pods(), "default", pod));
  const auto before = store.version();
  for (const Json& status : {Json(5), Json({{"phase", 5}}), Json({{"conditions", 5}}),
                             Json({{"conditions", {{{"type", 5}}}}}),
                             Json({{"conditions", {{{"type", "A"}, {"message", 5}}}}})}) {
    const PatchRequest patch{.patch = {{"status", status}}, .subresource = "status"};
    EXPECT_FALSE(store.Patch(kube::Pods(), "default", "p", patch).has_value()) << status;
  }
  EXPECT_EQ(store.version(), before);
  EXPECT_TRUE(store.Bind("default", "p", "n"));
}

TEST(Store, ItemsWithAKeyOfAnotherTypeAreStoredAndOwned) {
  Store store({});
  const Json object = {{"metadata", {{"name", "m"}}},
                       {"conditions", {{{"type", 1}, {"status", "a"}}, 2}}};
  ASSERT_TRUE(store.Create(kube::ConfigMaps(), "default", object, {.field_manager = "first"}));
  const PatchRequest apply{.type = PatchRequest::Type::kApply,
                           .patch = {{"conditions", {{{"type", 1}, {"status", "b"}}}}},
                           .field_manager = "second"};
  const auto refused = store.Patch(kube::ConfigMaps(), "default", "m", apply);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error()["code"], 409);
}

TEST(Store, AnApplyThatIsRefusedOrDryTakesNoField) {
  Store store({});
  PatchRequest apply{.type = PatchRequest::Type::kApply,
                     .patch = {{"data", {{"a", "1"}}}},
                     .field_manager = "first"};
  ASSERT_TRUE(store.Patch(kube::ConfigMaps(), "default", "m", apply));
  apply.field_manager = "second";
  apply.patch = {{"data", {{"a", "2"}}}, {"metadata", {{"labels", {{"-", "x"}}}}}};
  apply.force = true;
  EXPECT_FALSE(store.Patch(kube::ConfigMaps(), "default", "m", apply)) << "of its label";
  apply.patch = {{"data", {{"a", "2"}}}};
  EXPECT_TRUE(store.Patch(kube::ConfigMaps(), "default", "m", apply, {.dry_run = true}));
  apply.force = false;
  const auto refused = store.Patch(kube::ConfigMaps(), "default", "m", apply);
  ASSERT_FALSE(refused.has_value()) << "it is still the first one's";
  EXPECT_EQ(refused.error()["code"], 409);
}

TEST(Store, ADryRunDeletesNothing) {
  Store store({});
  ASSERT_TRUE(store.Create(kube::ConfigMaps(), "default", {{"metadata", {{"name", "m"}}}}));
  const auto kept = store.Delete(kube::ConfigMaps(), "default", "m", {}, /*dry_run=*/true);
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ((*kept)["metadata"]["name"], "m");
  EXPECT_TRUE(store.Get(kube::ConfigMaps(), "default", "m").has_value());
  EXPECT_FALSE(store.Delete(kube::ConfigMaps(), "default", "m", {.uid = "another"}, true));
  EXPECT_FALSE(store.Delete(kube::ConfigMaps(), "default", "other", {}, true));
}

TEST(Store, AJsonPatchCantMakeAnObjectOfAnySizeOrDepth) {
  Store store({});
  const Json object = {{"metadata", {{"name", "m"}}}, {"data", {{"a", "1"}}}};
  ASSERT_TRUE(store.Create(kube::ConfigMaps(), "default", object));
  const auto copy = [](const std::string& from, const std::string& to) {
    return Json{{"op", "copy"}, {"from", from}, {"path", to}};
  };
  PatchRequest doubles{.type = PatchRequest::Type::kJson, .patch = Json::array()};
  PatchRequest deepens = doubles;
  for (int i = 0; i < 200; ++i) {
    doubles.patch.push_back(copy("", "/x" + std::to_string(i)));
    deepens.patch.push_back(copy("/data", "/data/a"));
  }
  for (const PatchRequest& patch : {doubles, deepens}) {
    const auto refused = store.Patch(kube::ConfigMaps(), "default", "m", patch);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error()["code"], 422);
  }
  const PatchRequest once{.type = PatchRequest::Type::kJson,
                          .patch = Json::array({copy("/data/a", "/data/b")})};
  const auto patched = store.Patch(kube::ConfigMaps(), "default", "m", once);
  ASSERT_TRUE(patched.has_value());
  EXPECT_EQ((*patched)["data"], Json({{"a", "1"}, {"b", "1"}}));
}

}  // namespace
}  // namespace ringmaster::local
