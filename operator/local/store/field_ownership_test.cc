#include "operator/local/store/field_ownership.h"

#include <gtest/gtest.h>

#include "operator/kube/resources.h"

namespace ringmaster::local {
namespace {

Json Live(Json data) {
  return {{"metadata", {{"name", "m"}, {"uid", "u"}}}, {"data", std::move(data)}};
}

class FieldOwnershipTest : public ::testing::Test {
 protected:
  Answer<Json> Apply(const Json& live, Json data, const std::string& manager, bool force = false) {
    return ApplyConfig(live, {{"data", std::move(data)}}, manager, force);
  }
  Answer<Json> ApplyConfig(const Json& live, const Json& config, const std::string& manager = "me",
                           bool force = false) {
    auto applied = ownership_.Apply(kube::ConfigMaps(), live, config, {manager, true, ""}, force);
    if (!applied) return tl::unexpected(applied.error());
    ownership_.Settle("u", std::move(applied->owners));
    return std::move(applied->object);
  }
  FieldOwnership ownership_;
};

TEST_F(FieldOwnershipTest, WhatIsNoLongerAppliedIsRemoved) {
  auto applied = Apply(Live({{"others", "1"}}), {{"a", "1"}, {"b", "2"}}, "me");
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ((*applied)["data"], Json({{"others", "1"}, {"a", "1"}, {"b", "2"}}));
  applied = Apply(*applied, {{"b", "3"}}, "me");
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ((*applied)["data"], Json({{"others", "1"}, {"b", "3"}}));
}

TEST_F(FieldOwnershipTest, AFieldOfAnotherManagerIsAConflictThatChangesNothing) {
  ownership_.Claim(Json::object(), Live({{"a", "1"}}), {"other", false, ""});
  auto refused = Apply(Live({{"a", "1"}}), {{"a", "2"}}, "me");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error()["code"], 409);
  EXPECT_EQ(refused.error()["message"],
            "Apply failed with 1 conflict: conflict with \"other\" using v1: .data.a");
  EXPECT_FALSE(Apply(Live({{"a", "1"}}), {{"a", "2"}}, "me").has_value()) << "it is still theirs";
  EXPECT_TRUE(Apply(Live({{"a", "1"}}), {{"a", "2"}}, "me", true).has_value());
  EXPECT_TRUE(Apply(Live({{"a", "2"}}), {{"a", "3"}}, "me").has_value()) << "force has taken it";
}

TEST_F(FieldOwnershipTest, AForgottenObjectsFieldsBelongToNobody) {
  ownership_.CreatedByApply("u", {{"data", {{"a", "1"}}}}, {"other", true, ""});
  EXPECT_FALSE(Apply(Live({{"a", "1"}}), {{"a", "2"}}, "me").has_value());
  ownership_.Forget("u");
  EXPECT_TRUE(Apply(Live({{"a", "1"}}), {{"a", "2"}}, "me").has_value());
}

TEST_F(FieldOwnershipTest, ConditionsAreMergedByType) {
  const Json live = {{"metadata", {{"name", "m"}, {"uid", "u"}}},
                     {"conditions", {{{"type", "A"}, {"status", "True"}}}}};
  const Json config = {{"conditions", {{{"type", "B"}, {"status", "False"}}}}};
  auto applied = ApplyConfig(live, config);
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ((*applied)["conditions"].size(), 2u);
  applied = ApplyConfig(*applied, {{"conditions", Json::array()}});
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ((*applied)["conditions"], live["conditions"]);
}

TEST_F(FieldOwnershipTest, WhatIsAppliedBelongsToNobodyBeforeItIsWritten) {
  ownership_.Claim(Json::object(), Live({{"a", "1"}}), {"other", false, ""});
  const Json config = {{"data", {{"a", "2"}}}};
  ASSERT_TRUE(ownership_.Apply(kube::ConfigMaps(), Live({{"a", "1"}}), config, {"me", true, ""},
                               /*force=*/true));
  EXPECT_FALSE(Apply(Live({{"a", "1"}}), {{"a", "2"}}, "me").has_value()) << "it is still theirs";
}

TEST_F(FieldOwnershipTest, ItemsOfAnyTypeAreMerged) {
  const Json live = {{"metadata", {{"name", "m"}, {"uid", "u"}}},
                     {"env", {5, {{"name", 1}, {"value", "a"}}, {{"value", "no name"}}}}};
  const Json config = {{"env", {5, "new", {{"name", 1}, {"value", "b"}}}}};
  ownership_.Claim(Json::object(), live, {"other", false, ""});
  EXPECT_FALSE(ApplyConfig(live, config).has_value()) << "the value of 1 is theirs";
  const auto applied = ApplyConfig(live, config, "me", true);
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ((*applied)["env"],
            Json({5, {{"name", 1}, {"value", "b"}}, {{"value", "no name"}}, "new"}));
}

}  // namespace
}  // namespace ringmaster::local
