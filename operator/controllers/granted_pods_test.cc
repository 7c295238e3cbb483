#include "operator/controllers/granted_pods.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

class GrantedPodsTest : public testing::PartsTest {
 protected:
  std::shared_ptr<const kube::Json> Of(int index, std::vector<std::string> keep_off = {}) {
    return pods_of_jobs_.Of(job_, {.index = index, .keep_off = std::move(keep_off)});
  }
  GrantedPods pods_of_jobs_{{}};
};

TEST_F(GrantedPodsTest, ACopyIsWhatWouldHaveBeenBuilt) {
  const kube::Json first = *Of(0), copy = *Of(1);
  EXPECT_NE(first, copy);
  GrantedPods others{{}};
  EXPECT_EQ(*others.Of(job_, {.index = 1}), copy);
  EXPECT_EQ(runtime::MetaField(copy, "name"), "digits-worker-1");
}

TEST_F(GrantedPodsTest, TheyAreTheSameObjectsUntilTheSpecChanges) {
  const auto first = Of(0), second = Of(1);
  EXPECT_EQ(Of(0), first);
  EXPECT_EQ(Of(1), second);
  ++job_.generation;
  job_.spec.worker.pod_template["spec"]["nodeSelector"] = {{"pool", "other"}};
  EXPECT_NE(Of(0), first);
  EXPECT_EQ((*Of(1))["spec"]["nodeSelector"]["pool"], "other");
}

TEST_F(GrantedPodsTest, APodThatKeepsOffOtherNodesIsAnotherOne) {
  const auto first = Of(0);
  EXPECT_NE((*Of(1, {"a"}))["spec"], (*first)["spec"]);
  EXPECT_EQ((*Of(2))["spec"], (*first)["spec"]);
}

}  // namespace
}  // namespace ringmaster::controllers
