#include "operator/kueue/pod_changes.h"

#include <gmock/gmock.h>

namespace ringmaster::kueue {
namespace {

using ::testing::HasSubstr;

Json Flavor(const std::string& name, const Json& labels, const Json& tolerations = Json::array()) {
  return {{"metadata", {{"name", name}}},
          {"spec", {{"nodeLabels", labels}, {"tolerations", tolerations}}}};
}

const Json kToleration = {{"key", "spot"}, {"operator", "Exists"}};

TEST(PodChangesTest, NodeLabelsAndTolerationsOfAllFlavorsReachThePod) {
  const auto changes =
      ChangesOf({Flavor("a", {{"pool", "spot"}}, Json::array({kToleration})),
                 Flavor("b", {{"gpu", "a100"}, {"pool", "spot"}}, Json::array({kToleration}))},
                {}, Json::object());
  ASSERT_TRUE(changes) << changes.error();
  Json pod = {{"metadata", {{"name", "p"}}},
              {"spec", {{"nodeSelector", {{"zone", "z"}}}, {"tolerations", {{{"key", "mine"}}}}}}};
  Apply(*changes, &pod);
  EXPECT_EQ(pod["spec"]["nodeSelector"], Json({{"zone", "z"}, {"pool", "spot"}, {"gpu", "a100"}}));
  Json both = {{{"key", "mine"}}};
  both.push_back(kToleration);
  EXPECT_EQ(pod["spec"]["tolerations"], both);
}

TEST(PodChangesTest, AdmissionChecksAddToThePod) {
  const Json update = {{"labels", {{"l", "1"}}},
                       {"annotations", {{"a", "2"}}},
                       {"nodeSelector", {{"n", "3"}}},
                       {"tolerations", {kToleration}}};
  const auto changes = ChangesOf({}, {update}, Json::object());
  ASSERT_TRUE(changes) << changes.error();
  Json pod = {{"metadata", Json::object()}, {"spec", Json::object()}};
  Apply(*changes, &pod);
  EXPECT_EQ(pod["metadata"]["labels"]["l"], "1");
  EXPECT_EQ(pod["metadata"]["annotations"]["a"], "2");
  EXPECT_EQ(pod["spec"]["nodeSelector"]["n"], "3");
  EXPECT_EQ(pod["spec"]["tolerations"], Json::array({kToleration}));
}

TEST(PodChangesTest, WhatContradictsItselfIsNamed) {
  const auto flavors =
      ChangesOf({Flavor("a", {{"pool", "x"}}), Flavor("b", {{"pool", "y"}})}, {}, Json::object());
  ASSERT_FALSE(flavors);
  EXPECT_EQ(flavors.error(), "flavour b wants node label pool=y, and it is x already");
  const auto user = ChangesOf({Flavor("a", {{"pool", "x"}})}, {},
                              {{"spec", {{"nodeSelector", {{"pool", "mine"}}}}}});
  ASSERT_FALSE(user);
  EXPECT_THAT(user.error(), HasSubstr("node label pool=x, and it is mine already"));
}

}  // namespace
}  // namespace ringmaster::kueue
