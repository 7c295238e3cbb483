#include "operator/app/leader_label.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "operator/local/in_memory_api.h"
#include "operator/local/store.h"

namespace ringmaster::app {
namespace {

using kube::Json;

class LeaderLabelTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(api_->Create(kube::Namespaces(), "", {{"metadata", {{"name", "ops"}}}}));
  }
  void AddPod(const std::string& name, Json labels = Json::object()) {
    const auto created =
        api_->Create(kube::Pods(), "ops",
                     {{"metadata", {{"name", name}, {"labels", std::move(labels)}}},
                      {"spec", {{"containers", {{{"name", "operator"}, {"image", "x"}}}}}}});
    ASSERT_TRUE(created) << created.error().message;
  }
  std::string Mark(const std::string& pod) {
    const auto got = api_->Get(kube::Pods(), "ops", pod);
    return got ? (*got)["metadata"].value("labels", Json::object()).value(kLeaderLabel, "")
               : "no pod";
  }
  testing::AssertionResult Becomes(const std::string& pod, const std::string& mark) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (Mark(pod) != mark) {
      if (std::chrono::steady_clock::now() > end) {
        return testing::AssertionFailure() << pod << " has \"" << Mark(pod) << "\"";
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return testing::AssertionSuccess();
  }

  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  const std::shared_ptr<kube::KubeApi> api_ = std::make_shared<local::InMemoryApi>(store_);
};

TEST_F(LeaderLabelTest, TheMarkMovesToTheLeadersPodAndGoesWithIt) {
  AddPod("a", {{kLeaderLabel, "true"}, {"app", "x"}});
  AddPod("b");
  LeaderLabel label(api_, "ops", "b");
  EXPECT_NE(label.error(), "");
  label.Start();
  EXPECT_TRUE(Becomes("b", "true"));
  EXPECT_TRUE(Becomes("a", "")) << "its leader has died with the mark";
  EXPECT_EQ((*api_->Get(kube::Pods(), "ops", "a"))["metadata"]["labels"]["app"], "x");
  label.Stop();
  EXPECT_EQ(Mark("b"), "");
}

TEST_F(LeaderLabelTest, AnotherInstallationsLeaderKeepsItsMark) {
  AddPod("a", {{kLeaderLabel, "true"}, {"app.kubernetes.io/instance", "blue"}});
  AddPod("b", {{"app.kubernetes.io/instance", "green"}});
  AddPod("c", {{kLeaderLabel, "true"}, {"app.kubernetes.io/instance", "green"}});
  LeaderLabel label(api_, "ops", "b");
  label.Start();
  EXPECT_TRUE(Becomes("c", ""));
  EXPECT_EQ(Mark("a"), "true");
}

TEST_F(LeaderLabelTest, AMarkOfAFormerLifeIsCleared) {
  AddPod("a", {{kLeaderLabel, "true"}});
  LeaderLabel label(api_, "ops", "a");
  label.Clear();
  EXPECT_EQ(Mark("a"), "");
}

TEST_F(LeaderLabelTest, ItTriesUntilItSucceedsAndSaysWhyNot) {
  LeaderLabel label(api_, "ops", "late");
  label.Start();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (label.error().find("late") == std::string::npos &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_NE(label.error().find("late"), std::string::npos) << label.error();
  AddPod("late");
  EXPECT_TRUE(Becomes("late", "true"));
}

}  // namespace
}  // namespace ringmaster::app
