#include "operator/app/leader_label.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "operator/api/labels.h"
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
  static constexpr char kNone[] = "no label";
  std::string LabelOf(const std::string& pod) {
    const auto got = api_->Get(kube::Pods(), ns_, pod);
    return got ? (*got)["metadata"].value("labels", Json::object()).value(api::kLeaderLabel, kNone)
               : "no pod";
  }
  testing::AssertionResult Becomes(const std::string& pod, const std::string& mark) {
    if (Until([&] { return LabelOf(pod) == mark; })) return testing::AssertionSuccess();
    return testing::AssertionFailure() << pod << " has \"" << LabelOf(pod) << "\"";
  }
};

TEST_P(LeaderLabelTest, TheMarkMovesToTheLeadersPodAndGoesWithIt) {
  AddPod("a", {{api::kLeaderLabel, "true"}, {"app", "x"}});
  AddPod("b");
  LeaderLabel label(api_, ns_, "b");
  EXPECT_NE(label.error(), "");
  label.Start();
  EXPECT_TRUE(Becomes("b", "true"));
  EXPECT_TRUE(Becomes("a", kNone)) << "its leader has died with the label";
  EXPECT_EQ((*api_->Get(kube::Pods(), ns_, "a"))["metadata"]["labels"]["app"], "x");
  label.Stop();
  EXPECT_EQ(LabelOf("b"), kNone);
}

TEST_P(LeaderLabelTest, AnotherInstallationsLeaderKeepsItsMark) {
  AddPod("a", {{api::kLeaderLabel, "true"}, {"app.kubernetes.io/instance", "blue"}});
  AddPod("b", {{"app.kubernetes.io/instance", "green"}});
  AddPod("c", {{api::kLeaderLabel, "true"}, {"app.kubernetes.io/instance", "green"}});
  LeaderLabel label(api_, ns_, "b");
  label.Start();
  EXPECT_TRUE(Becomes("c", kNone));
  EXPECT_EQ(LabelOf("a"), "true");
}

TEST_P(LeaderLabelTest, AMarkOfAFormerLifeIsCleared) {
  for (const char* mark : {"true", "false"}) {
    AddPod(mark, {{api::kLeaderLabel, mark}});
    LeaderLabel label(api_, ns_, mark);
    label.Stop();
    EXPECT_EQ(LabelOf(mark), mark) << "it was not started";
    label.Clear();
    EXPECT_EQ(LabelOf(mark), kNone);
  }
}

TEST_P(LeaderLabelTest, AMarkOfAFormerLifeThatIsNoMarkIsMadeOne) {
  AddPod("a", {{api::kLeaderLabel, "false"}});
  LeaderLabel label(api_, ns_, "a");
  label.Start();
  EXPECT_TRUE(Becomes("a", "true"));
}

TEST_P(LeaderLabelTest, ItTriesUntilItSucceedsAndSaysWhyNot) {
  LeaderLabel label(api_, ns_, "late");
  label.Start();
  EXPECT_TRUE(Until([&] { return label.error().find("late") != std::string::npos; }))
      << label.error();
  AddPod("late");
  EXPECT_TRUE(Becomes("late", "true"));
  EXPECT_TRUE(Until([&] { return label.error().empty(); })) << label.error();
}

// Counts calls about pods, and refuses those that a test names.
class RefusingApi : public kube::testing::WrappedApi {
 public:
  using WrappedApi::WrappedApi;
  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    ++gets;
    return WrappedApi::Get(resource, ns, name);
  }
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override {
    if (refused == "list") return tl::unexpected(kube::Error{.code = code, .message = "no list"});
    return WrappedApi::ListAll(resource, ns, options);
  }
  kube::Result<Json> Patch(const kube::Resource& resource, const std::string& ns,
                           const std::string& name, const Json& patch,
                           const kube::PatchOptions& options) override {
    ++patches;
    if (refused == name) return tl::unexpected(kube::Error{.code = code, .message = "no " + name});
    return WrappedApi::Patch(resource, ns, name, patch, options);
  }
  std::atomic<int> gets = 0, patches = 0;
  // Constant during use.
  std::string refused;  // refuses this pod's patches, or "list"
  kube::ErrorCode code = kube::ErrorCode::kForbidden;
};

TEST_P(LeaderLabelTest, WhatItMayNotDoIsSaid) {
  AddPod("a", {{api::kLeaderLabel, "true"}});
  AddPod("b");
  const struct {
    std::string refused;
    kube::ErrorCode code;
    std::string error;
  } cases[] = {{"b", kube::ErrorCode::kForbidden, "no b"},
               {"list", kube::ErrorCode::kForbidden, "no list"},
               {"a", kube::ErrorCode::kForbidden, "no a"},
               {"a", kube::ErrorCode::kNotFound, ""}};  // it is gone meanwhile
  for (const auto& c : cases) {
    const auto api = std::make_shared<RefusingApi>(api_);
    api->refused = c.refused;
    api->code = c.code;
    LeaderLabel label(api, ns_, "b");
    label.Start();
    EXPECT_TRUE(Until([&] { return label.error() != "not labelled yet"; }));
    EXPECT_EQ(label.error(), c.error);
  }
  EXPECT_EQ(LabelOf("b"), "true");
}

TEST_P(LeaderLabelTest, ItDoesNotTurnRoundHot) {
  AddPod("there");
  AddPod("other");
  const struct {
    std::string pod;
    int gets, patches;  // upper limits for the time of two checks for a missing pod
  } cases[] = {{"none", 2, 0}, {"there", 1, 1}};
  for (const auto& c : cases) {
    const auto api = std::make_shared<RefusingApi>(api_);
    LeaderLabel label(api, ns_, c.pod);
    label.Clear();
    EXPECT_EQ(api->patches, 0) << "there is no label";
    api->gets = 0;
    label.Start();
    ASSERT_TRUE(Until([&] { return api->gets > 0; }));
    (void)Until([] { return false; },
                LabelCheckInterval::kFirstRetry + std::chrono::milliseconds(200));
    EXPECT_LE(api->gets, c.gets) << c.pod;
    EXPECT_LE(api->patches, c.patches) << c.pod;
    label.Stop();
  }
}

TEST(LabelCheckIntervalTest, TriesComeMoreAndMoreSlowlyUntilOneSucceeds) {
  LabelCheckInterval interval;
  std::vector<int> waits;
  for (int i = 0; i < 7; ++i) waits.push_back(static_cast<int>(interval.After(false).count()));
  EXPECT_EQ(waits, (std::vector<int>{500, 1000, 2000, 4000, 8000, 10'000, 10'000}));
  EXPECT_EQ(interval.After(true), LabelCheckInterval::kCheckAgain);
  EXPECT_EQ(interval.After(true), LabelCheckInterval::kCheckAgain);
  EXPECT_EQ(interval.After(false), LabelCheckInterval::kFirstRetry) << "from the beginning";
}

RM_ON_EVERY_SERVER(LeaderLabelTest);

}  // namespace
}  // namespace ringmaster::app
