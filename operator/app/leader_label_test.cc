#include "operator/app/leader_label.h"

#include <gtest/gtest.h>

#include "operator/local/testing/conformance.h"
#include "tests/support/until.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using support::Until;
using namespace std::chrono_literals;

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

TEST_P(LeaderLabelTest, AMarkThatIsTakenAwayComesBack) {
  AddPod("a");
  LeaderLabel label(api_, ns_, "a", LabelPace(1h, 1h, 5ms));
  label.Start();
  ASSERT_TRUE(Becomes("a", "true"));
  ASSERT_TRUE(api_->Patch(kube::Pods(), ns_, "a",
                          {{"metadata", {{"labels", {{kLeaderLabel, nullptr}}}}}}, {}));
  EXPECT_TRUE(Becomes("a", "true"));
}

TEST(LabelPace, TriesMoreAndMoreSeldomAndLooksAgainSeldom) {
  LabelPace pace;
  EXPECT_EQ(pace.After(true), 30s);
  for (const auto retry : {500ms, 1000ms, 2000ms, 4000ms, 8000ms, 10'000ms, 10'000ms}) {
    EXPECT_EQ(pace.After(false), retry);
  }
  EXPECT_EQ(pace.After(true), 30s);
  EXPECT_EQ(pace.After(false), 500ms) << "the next trouble is a new one";
}

TEST_P(LeaderLabelTest, ItTriesUntilItSucceedsAndSaysWhyNot) {
  LeaderLabel label(api_, ns_, "late", LabelPace(5ms, 5ms, 1h));
  label.Start();
  EXPECT_TRUE(Until([&] { return label.error().find("late") != std::string::npos; }))
      << label.error();
  AddPod("late");
  EXPECT_TRUE(Becomes("late", "true"));
}

RM_ON_EVERY_SERVER(LeaderLabelTest);

}  // namespace
}  // namespace ringmaster::app
