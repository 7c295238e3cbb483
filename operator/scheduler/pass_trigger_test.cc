#include "operator/scheduler/pass_trigger.h"

#include <gtest/gtest.h>

namespace ringmaster::scheduler {
namespace {

Json Node(const std::string& cpu) {
  return {{"metadata", {{"name", "a"}}},
          {"status", {{"allocatable", {{"cpu", cpu}, {"pods", "9"}}}}}};
}

Json Pod() {
  return {{"metadata", {{"namespace", "ns"}, {"name", "p"}}},
          {"spec", {{"containers", {{{"resources", {{"requests", {{"cpu", "1"}}}}}}}}}}};
}

class PassTriggerTest : public testing::Test {
 protected:
  PassTriggerTest() {
    capacity_.SetNode(Node("1"));
    trigger_.BeginPass();
  }
  Capacity capacity_;
  PassTrigger trigger_{capacity_};
};

TEST_F(PassTriggerTest, AfterAPassNoneIsDue) {
  EXPECT_FALSE(trigger_.IsDue(true));
  EXPECT_FALSE(trigger_.HasChanged());
}

TEST_F(PassTriggerTest, TheFirstPassIsDueWhenAJobWaits) {
  const PassTrigger fresh(capacity_);
  EXPECT_TRUE(fresh.IsDue(true));
  EXPECT_FALSE(fresh.IsDue(false));
}

TEST_F(PassTriggerTest, WhoAsksGetsAPassThoughNobodyWaits) {
  trigger_.Ask();
  EXPECT_TRUE(trigger_.IsDue(false));
  EXPECT_TRUE(trigger_.HasChanged());
  trigger_.BeginPass();
  EXPECT_FALSE(trigger_.IsDue(true));
}

TEST_F(PassTriggerTest, GrowthIsOfUseOnlyToAJobThatWaits) {
  capacity_.SetNode(Node("2"));
  EXPECT_TRUE(trigger_.IsDue(true));
  EXPECT_FALSE(trigger_.IsDue(false));
  EXPECT_TRUE(trigger_.HasChanged());
  EXPECT_FALSE(trigger_.HasLost());
  trigger_.BeginPass();
  EXPECT_FALSE(trigger_.IsDue(true));
}

TEST_F(PassTriggerTest, ALostPlaceMakesAPassDueThoughNobodyWaits) {
  capacity_.Hold(Pod(), capacity_.shapes().Of(Pod()), "a", "ns/job");
  capacity_.RemoveNode("a");
  EXPECT_TRUE(trigger_.HasLost());
  EXPECT_TRUE(trigger_.IsDue(false));
  trigger_.BeginPass();
  EXPECT_FALSE(trigger_.HasLost());
}

TEST_F(PassTriggerTest, APassThatLeavesJobsUndecidedIsFollowedByAnotherWithoutAChange) {
  trigger_.EndPass(true);
  EXPECT_TRUE(trigger_.IsDue(false));
  EXPECT_FALSE(trigger_.HasChanged());
  trigger_.BeginPass();
  trigger_.EndPass(false);
  EXPECT_FALSE(trigger_.IsDue(true));
}

}  // namespace
}  // namespace ringmaster::scheduler
