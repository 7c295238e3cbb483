#include "operator/app/leader_label.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "operator/kube/testing/wrapped_api.h"
#include "operator/local/testing/conformance.h"
#include "tests/support/until.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using support::Until;

class LeaderLabelTest : public local::testing::OnEveryServer {
 protected:
  void AddPod(const std::string& name, Json labels = Json::object()) {
    const auto created =
        api_->Create(kube::Pods(), ns_,
                     {{"metadata", {{"name", name}, {"labels", std::move(labels)}}},
                      {"spec", {{"containers", {{{"name", "operator"}, {"image", "x"}}}}}}});
    ASSERT_TRUE(created) << created.error().message;
  }
  std::string Mark(const std::string& pod) {
    const auto got = api_->Get(kube::Pods(), ns_, pod);
    return got ? (*got)["metadata"].value("labels", Json::object()).value(kLeaderLabel, "")
               : "no pod";
  }
  testing::AssertionResult Becomes(const std::string& pod, const std::string& mark) {
    if (Until([&] { return Mark(pod) == mark; })) return testing::AssertionSuccess();
    return testing::AssertionFailure() << pod << " has \"" << Mark(pod) << "\"";
  }
};

TEST_P(LeaderLabelTest, TheMarkMovesToTheLeadersPodAndGoesWithIt) {
  AddPod("a", {{kLeaderLabel, "true"}, {"app", "x"}});
  AddPod("b");
  LeaderLabel label(api_, ns_, "b");
  EXPECT_NE(label.error(), "");
  label.Start();
  EXPECT_TRUE(Becomes("b", "true"));
  EXPECT_TRUE(Becomes("a", "")) << "its leader has died with the mark";
  EXPECT_EQ((*api_->Get(kube::Pods(), ns_, "a"))["metadata"]["labels"]["app"], "x");
  label.Stop();
  EXPECT_EQ(Mark("b"), "");
}

TEST_P(LeaderLabelTest, AnotherInstallationsLeaderKeepsItsMark) {
  AddPod("a", {{kLeaderLabel, "true"}, {"app.kubernetes.io/instance", "blue"}});
  AddPod("b", {{"app.kubernetes.io/instance", "green"}});
  AddPod("c", {{kLeaderLabel, "true"}, {"app.kubernetes.io/instance", "green"}});
  LeaderLabel label(api_, ns_, "b");
  label.Start();
  EXPECT_TRUE(Becomes("c", ""));
  EXPECT_EQ(Mark("a"), "true");
}

TEST_P(LeaderLabelTest, AMarkOfAFormerLifeIsCleared) {
  AddPod("a", {{kLeaderLabel, "true"}});
  LeaderLabel label(api_, ns_, "a");
  label.Clear();
  EXPECT_EQ(Mark("a"), "");
}

TEST_P(LeaderLabelTest, ItTriesUntilItSucceedsAndSaysWhyNot) {
  LeaderLabel label(api_, ns_, "late");
  label.Start();
  EXPECT_TRUE(Until([&] { return label.error().find("late") != std::string::npos; }))
      << label.error();
  AddPod("late");
  EXPECT_TRUE(Becomes("late", "true"));
}

// Counts who asks for pods.
class CountingApi : public kube::testing::WrappedApi {
 public:
  using WrappedApi::WrappedApi;
  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    ++gets;
    return WrappedApi::Get(resource, ns, name);
  }
  std::atomic<int> gets = 0;
};

TEST_P(LeaderLabelTest, ItDoesNotTurnRoundHot) {
  for (const char* pod : {"none", "there"}) {
    if (pod == std::string("there")) AddPod(pod);
    const auto api = std::make_shared<CountingApi>(api_);
    LeaderLabel label(api, ns_, pod);
    label.Start();
    ASSERT_TRUE(Until([&] { return api->gets > 0; }));
    (void)Until([] { return false; }, std::chrono::milliseconds(300));
    EXPECT_LE(api->gets, 2) << pod;
    label.Stop();
  }
}

TEST(MarkPaceTest, TriesComeMoreAndMoreSlowlyUntilOneSucceeds) {
  MarkPace pace;
  std::vector<int> waits;
  for (int i = 0; i < 7; ++i) waits.push_back(static_cast<int>(pace.After(false).count()));
  EXPECT_EQ(waits, (std::vector<int>{500, 1000, 2000, 4000, 8000, 10'000, 10'000}));
  EXPECT_EQ(pace.After(true), MarkPace::kLookAgain);
  EXPECT_EQ(pace.After(true), MarkPace::kLookAgain);
  EXPECT_EQ(pace.After(false), MarkPace::kFirstRetry) << "from the beginning";
}

RM_ON_EVERY_SERVER(LeaderLabelTest);

}  // namespace
}  // namespace ringmaster::app
