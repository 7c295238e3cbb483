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
    return ownership_.Apply(kube::ConfigMaps(), live, {{"data", std::move(data)}},
                            {manager, true, ""}, force);
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
  auto applied = ownership_.Apply(kube::Pods(), live, config, {"me", true, ""}, false);
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ((*applied)["conditions"].size(), 2u);
  applied = ownership_.Apply(kube::Pods(), *applied, {{"conditions", Json::array()}},
                             {"me", true, ""}, false);
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ((*applied)["conditions"], live["conditions"]);
}

}  // namespace
}  // namespace ringmaster::local
