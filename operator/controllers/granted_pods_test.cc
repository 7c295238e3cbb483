#include "operator/controllers/granted_pods.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

class GrantedPodsTest : public testing::PartsTest {
 protected:
  std::shared_ptr<const kube::Json> Of(int index, std::vector<std::string> keep_off = {}) {
    return pods_of_jobs_.Of(job_, {.index = index, .keep_off = std::move(keep_off)});
  }
  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
  GrantedPods::Pod answer_;
  int asked_ = 0;
  GrantedPods pods_of_jobs_{{},
                            [this](const auto&, int) {
                              ++asked_;
                              return answer_;
                            },
                            {.steady = [this] { return now_; }}};
};

TEST_F(GrantedPodsTest, ACopyIsWhatWouldHaveBeenBuilt) {
  const kube::Json first = *Of(0), copy = *Of(1);
  EXPECT_NE(first, copy);
  GrantedPods others{{}, [](const auto&, int) { return nullptr; }};
  EXPECT_EQ(*others.Of(job_, {.index = 1}), copy);
  EXPECT_EQ(runtime::MetaField(copy, "name"), "digits-worker-1");
}

TEST_F(GrantedPodsTest, TheyAreTheSameObjectsUntilTheSpecChanges) {
  const auto first = Of(0), second = Of(1);
  EXPECT_EQ(Of(0), first);
  EXPECT_EQ(Of(1), second);
  job_.spec.pods_digest = "another";
  job_.spec.worker.pod_template["spec"]["nodeSelector"] = {{"pool", "other"}};
  EXPECT_NE(Of(0), first);
  EXPECT_EQ((*Of(1))["spec"]["nodeSelector"]["pool"], "other");
}

TEST_F(GrantedPodsTest, APodThatKeepsOffOtherNodesIsAnotherOne) {
  const auto first = Of(0);
  EXPECT_NE((*Of(1, {"a"}))["spec"], (*first)["spec"]);
  EXPECT_EQ((*Of(2))["spec"], (*first)["spec"]);
}

TEST_F(GrantedPodsTest, OnceItHasAnsweredTheyAreAsTheApiServerWouldStoreThem) {
  const auto by_template = Of(1);
  Json stored = MakePod(0, {{"spec", {{"overhead", {{"cpu", "1"}}}}}}, false);
  stored["metadata"]["uid"] = "of the dry run";
  answer_ = std::make_shared<const Json>(std::move(stored));
  EXPECT_TRUE(pods_of_jobs_.TryOut(job_, 0));
  const Json pod = *Of(1);
  EXPECT_EQ(pod["spec"]["overhead"], Json({{"cpu", "1"}}));
  EXPECT_EQ(runtime::MetaField(pod, "name"), "digits-worker-1");
  EXPECT_EQ(runtime::MetaField(pod, "uid"), "");
  EXPECT_EQ(Of(1), Of(1));
  EXPECT_NE(pods_of_jobs_.Tried(job_), nullptr);
  ++job_.generation;
  EXPECT_NE(pods_of_jobs_.Tried(job_), nullptr) << "the job has another size, say";
  job_.spec.run_policy.scheduling_policy.priority_class = "high";
  EXPECT_EQ(pods_of_jobs_.Tried(job_), nullptr);
  EXPECT_FALSE((*Of(1))["spec"].contains("overhead"));
}

TEST_F(GrantedPodsTest, AnAnswerCountsForAWhileAndSilenceForAShorterOne) {
  EXPECT_FALSE(pods_of_jobs_.TryOut(job_, 0));
  EXPECT_FALSE(pods_of_jobs_.TryOut(job_, 0));
  EXPECT_EQ(asked_, 1);
  now_ += GrantedPods::kSilence;
  answer_ = std::make_shared<const Json>(MakePod(0));
  EXPECT_TRUE(pods_of_jobs_.TryOut(job_, 0));
  now_ += GrantedPods::kCounts - std::chrono::seconds(1);
  EXPECT_FALSE(pods_of_jobs_.TryOut(job_, 0));
  EXPECT_EQ(asked_, 2);
  now_ += std::chrono::seconds(1);
  answer_ = nullptr;
  EXPECT_FALSE(pods_of_jobs_.TryOut(job_, 0));
  EXPECT_EQ(asked_, 3);
  EXPECT_NE(pods_of_jobs_.Tried(job_), nullptr) << "it may not have changed";
}

}  // namespace
}  // namespace ringmaster::controllers
