// What growth does with the jobs that it is handed; growth_test.cc has tables of whole passes.
#include "operator/scheduler/fair_growth.h"

#include <gtest/gtest.h>

namespace ringmaster::scheduler {
namespace {

class FairGrowthTest : public testing::Test {
 protected:
  void Room(int pods) {
    capacity_.SetNode(
        {{"metadata", {{"name", "a"}}},
         {"status", {{"allocatable", {{"cpu", std::to_string(pods)}, {"pods", "99"}}}}}});
  }
  static Json Pod(const std::string& name) {
    return {{"metadata", {{"namespace", "ns"}, {"name", name}, {"uid", name}}},
            {"spec", {{"containers", {{{"resources", {{"requests", {{"cpu", "1"}}}}}}}}}}};
  }
  // A job that has some pods and requests `sizes.back()` more.
  WaitingJob Job(const std::string& name, int has, std::vector<int> sizes) {
    for (int i = 0; i < has; ++i) {
      Json pod = Pod(name + "-has-" + std::to_string(i));
      pod["spec"]["nodeName"] = "a";
      capacity_.SetPod(pod, "ns/" + name);
    }
    WaitingJob job{.request = {.job = "ns/" + name, .state = GangState::kRuns, .sizes = sizes}};
    for (int i = 0; i < sizes.back(); ++i) {
      const auto pod = std::make_shared<const Json>(Pod(name + "-" + std::to_string(i)));
      job.request.pods.push_back(pod);
      job.shapes.push_back(capacity_.shapes().Of(*pod));
    }
    job.anywhere = job.shapes;
    return job;
  }
  Capacity capacity_;
  Grants grants_{&capacity_};
  Reservation reservation_{&capacity_, &grants_};
  Topology topology_{&capacity_};
  FairGrowth growth_{capacity_, &reservation_, &topology_};
};

TEST_F(FairGrowthTest, WhoHasLessGrowsUntilBothHaveAsMuch) {
  Room(9);
  WaitingJob large = Job("large", 4, {1, 2, 3, 4, 5}), small = Job("small", 1, {1, 2, 3, 4, 5});
  growth_.Grow({&large, &small}, false);
  EXPECT_EQ(large.answer.fit, 1) << "equal shares go by the line";
  EXPECT_EQ(small.answer.fit, 3);
}

TEST_F(FairGrowthTest, OnceGivesTheSmallestSizeAlone) {
  Room(9);
  WaitingJob a = Job("a", 1, {2, 4}), b = Job("b", 1, {1, 5});
  growth_.Grow({&a, &b}, true);
  EXPECT_EQ(a.answer.fit, 2);
  EXPECT_EQ(b.answer.fit, 1);
}

TEST_F(FairGrowthTest, AJobAloneGetsAllThatItWants) {
  Room(9);
  WaitingJob a = Job("a", 1, {2, 4, 6});
  growth_.Grow({&a}, false);
  EXPECT_EQ(a.answer.fit, 6);
}

TEST_F(FairGrowthTest, SharesAreCountedAnewInEachPass) {
  Room(3);
  WaitingJob a = Job("a", 1, {1}), b = Job("b", 2, {1});
  growth_.Grow({&a, &b}, false);
  ASSERT_EQ(a.answer.fit + b.answer.fit, 0) << "nothing is free";
  a = Job("a", 4, {1});
  Room(7);
  grants_.ForgetBounds();
  growth_.BeginPass();
  growth_.Grow({&a, &b}, false);
  EXPECT_EQ(a.answer.fit, 0);
  EXPECT_EQ(b.answer.fit, 1);
}

TEST_F(FairGrowthTest, NoMoreThanTheTargetIsGranted) {
  Room(9);
  WaitingJob a = Job("a", 0, {1, 2, 3, 4});
  growth_.GrowTo(3, &a);
  EXPECT_EQ(a.answer.fit, 3);
  EXPECT_EQ(capacity_.held().size(), 3u);
}

}  // namespace
}  // namespace ringmaster::scheduler
