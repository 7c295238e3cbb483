// What the store does beyond the conformance suite: its window of history, the schema.
#include "operator/local/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ringmaster::local
