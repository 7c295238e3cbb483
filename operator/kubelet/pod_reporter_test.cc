#include "operator/kubelet/pod_reporter.h"

#include <gtest/gtest.h>

#include "operator/kubelet/testing/absent_api.h"
#include "tests/support/until.h"

namespace ringmaster::kubelet {
namespace {

using support::Until;

class PodReporterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto made =
        store_->Create(kube::Pods(), "default",
                       {{"metadata", {{"name", "p"}}},
                        {"spec", {{"containers", {{{"name", "main"}, {"image", "any"}}}}}}});
    ASSERT_TRUE(made) << made.error().dump();
    pod_ = {"default", "p", (*made)["metadata"]["uid"]};
    reporter_.Start();
  }
  static PodView Main(ContainerState::Phase phase, int exit_code = 0) {
    ContainerState state;
    state.name = "main";
    state.phase = phase;
    state.exit_code = exit_code;
    state.done = phase == ContainerState::Phase::kTerminated;
    PodView view;
    view.containers = {state};
    return view;
  }
  std::string Phase() {
    const auto pod = store_->Get(kube::Pods(), "default", "p");
    return pod ? (*pod)["status"].value("phase", "") : "gone";
  }

  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  const std::shared_ptr<testing::AbsentApi> api_ = std::make_shared<testing::AbsentApi>(store_);
  PodReporter reporter_{api_, "10.0.0.7"};
  PodName pod_;
};

TEST_F(PodReporterTest, APodHasTheAddressOfItsNode) {
  reporter_.Report(pod_, Main(ContainerState::Phase::kRunning), false);
  ASSERT_TRUE(Until([&] { return Phase() == "Running"; }));
  EXPECT_EQ((*store_->Get(kube::Pods(), "default", "p"))["status"]["podIP"], "10.0.0.7");
}

TEST_F(PodReporterTest, TheNewestStateIsToldWhenTheServerIsBack) {
  api_->away = true;
  reporter_.Report(pod_, Main(ContainerState::Phase::kRunning), false);
  ASSERT_TRUE(Until([&] { return api_->refused > 0; }));
  const int before = api_->refused;
  reporter_.Report(pod_, Main(ContainerState::Phase::kTerminated, 3), false);
  ASSERT_TRUE(Until([&] { return api_->refused > before; }));
  api_->away = false;
  ASSERT_TRUE(Until([&] { return Phase() == "Failed"; }));
}

TEST_F(PodReporterTest, ItsObjectGoesAfterItsLastState) {
  reporter_.Report(pod_, Main(ContainerState::Phase::kTerminated), true);
  ASSERT_TRUE(Until([&] { return Phase() == "gone"; }));
}

TEST_F(PodReporterTest, ToAServerInItsProcessItTellsAtOnce) {
  PodReporter near(api_, "127.0.0.1", true);
  near.Start();
  near.Report(pod_, Main(ContainerState::Phase::kRunning), false);
  EXPECT_EQ(Phase(), "Running");
  api_->away = true;
  near.Report(pod_, Main(ContainerState::Phase::kTerminated), false);
  EXPECT_EQ(Phase(), "Running");
  api_->away = false;
  ASSERT_TRUE(Until([&] { return Phase() == "Succeeded"; }));
}

TEST_F(PodReporterTest, StopTellsWhatIsLeft) {
  reporter_.Report(pod_, Main(ContainerState::Phase::kTerminated), false);
  reporter_.Stop(std::chrono::seconds(30));
  EXPECT_EQ(Phase(), "Succeeded");
}

TEST_F(PodReporterTest, AnotherPodOfTheNameIsLeftAlone) {
  reporter_.Report({"default", "p", "another-uid"}, Main(ContainerState::Phase::kTerminated), true);
  reporter_.Stop(std::chrono::seconds(30));
  EXPECT_EQ(Phase(), "Pending");
}

}  // namespace
}  // namespace ringmaster::kubelet
