// While many pods are being created slowly, a training pod is asked to leave: it is told so before
// most of the others are created.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "operator/api/labels.h"
#include "operator/controllers/testing/calls_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using support::Until;
using testing::Call;
using testing::JobControllerCallsTest;

constexpr std::chrono::seconds kSoon{10};
constexpr int kPods = 150;  // more than one reconcile creates

// Pods are created only as far as the test allows.
class BatchesTest : public JobControllerCallsTest {
 protected:
  void TearDown() override {
    LetThrough(10 * kPods);
    controller_->Stop();  // before the members that its calls use
  }
  // Holds the creation of pods of jobs whose names begin with `jobs`.
  void HoldCreations(const std::string& jobs) {
    api_->SetBefore([this, jobs](const Call& call) {
      if (call.verb != "create" || call.resource != "pods" || call.name.rfind(jobs, 0) != 0) return;
      std::unique_lock lock(mu_);
      const int mine = ++begun_;
      begun_of_[call.name.substr(0, call.name.find("-worker"))] += 1;
      // Longer than any wait of the test: a call that is held until then is too late.
      (void)let_through_.wait_for(lock, 5 * kSoon, [&] { return mine <= allowed_; });
    });
  }
  // Allows this many further pods.
  void LetThrough(int pods) {
    const std::lock_guard lock(mu_);
    allowed_ += pods;
    let_through_.notify_all();
  }
  int Begun() {
    const std::lock_guard lock(mu_);
    return begun_;
  }
  int BegunOf(const std::string& job) {
    const std::lock_guard lock(mu_);
    return begun_of_[job];
  }
  void ApplyMany(const std::string& job, int pods) {
    for (int i = 3; i < kPods; ++i) cluster_->NeverReady(planner::PodName(job, i));
    Apply(job, {{"elasticPolicy", {{"maxReplicas", kPods}}}, {"worker", {{"replicas", pods}}}});
  }
  // Patches the pod, and returns when the controller has seen that.
  void Ask(const std::string& pod, const Json& patch, const std::string& subresource = "") {
    ASSERT_TRUE(
        store_api_.Patch(kube::Pods(), "default", pod, patch, {.subresource = subresource}));
    // Changes are seen in order, so a controller that has seen the second has seen the first.
    ASSERT_TRUE(
        store_api_.Patch(kube::Pods(), "default", "digits-worker-0",
                         {{"metadata", {{"annotations", {{"ringmaster.dev/heard", "yes"}}}}}}, {}));
    ASSERT_TRUE(Until([&] { return Heard("digits-worker-0"); }, kSoon));
  }
  bool Heard(const std::string& pod) {
    for (const auto& object : controller_->Pods()) {
      if (runtime::MetaField(*object, "name") != pod) continue;
      return object->contains("/metadata/annotations/ringmaster.dev~1heard"_json_pointer);
    }
    return false;
  }
  // The other pods continue without the pod.
  bool HasLeft(const std::string& pod) {
    const auto members = cluster_->Members();
    return members.size() == 2 && std::count(members.begin(), members.end(), pod) == 0;
  }
  void ExpectToldAndLeft(const std::string& pod) {
    EXPECT_TRUE(Until([&] { return cluster_->WasTold(pod, "Drain"); }, kSoon)) << Begun();
    EXPECT_TRUE(Until([&] { return HasLeft(pod); }, kSoon));
    EXPECT_LT(Begun(), kPods / 2) << "most of them are still to be made";
  }
  // Three pods train, and the fourth to the last are being created.
  void ScaleUp() {
    ASSERT_NO_FATAL_FAILURE(ApplyMany("digits", 3));
    ASSERT_TRUE(Trains(3));
    HoldCreations("digits");
    LetThrough(kMade);
    Change({{"worker", {{"replicas", kPods}}}});
    ASSERT_TRUE(Until([&] { return Begun() > kMade; }, kSoon));
  }
  void ExpectAllAreMade() {
    LetThrough(kPods);
    EXPECT_TRUE(Until([&] { return Status().replicas >= kPods; }));
  }

  static constexpr int kMade = 5;  // in the middle of a batch
  // Two batches: calls in progress, and the reconciles that mark the pod and tell its sidecar.
  static constexpr int kMore = 16;
  const Json drain_ = {{"metadata", {{"annotations", {{api::kDrainAnnotation, "Requested"}}}}}};

 private:
  std::mutex mu_;
  std::condition_variable let_through_;
  int begun_ = 0;                        // guarded by mu_
  int allowed_ = 0;                      // guarded by mu_
  std::map<std::string, int> begun_of_;  // by job; guarded by mu_
};

TEST_F(BatchesTest, ADrainIsToldBeforeTheOtherPodsAreMade) {
  ASSERT_NO_FATAL_FAILURE(ScaleUp());
  ASSERT_NO_FATAL_FAILURE(Ask("digits-worker-1", drain_));
  LetThrough(kMore);
  ExpectToldAndLeft("digits-worker-1");
  ExpectAllAreMade();
}

TEST_F(BatchesTest, ADisruptionIsToldBeforeTheOtherPodsAreMade) {
  ASSERT_NO_FATAL_FAILURE(ScaleUp());
  Json conditions = Json::array();
  conditions.push_back(
      {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}});
  ASSERT_NO_FATAL_FAILURE(
      Ask("digits-worker-1", {{"status", {{"conditions", conditions}}}}, "status"));
  LetThrough(kMore);
  ExpectToldAndLeft("digits-worker-1");
  ExpectAllAreMade();
}

TEST_F(BatchesTest, ADrainIsToldThoughEveryWorkerMakesPodsOfOtherJobs) {
  ASSERT_NO_FATAL_FAILURE(ApplyMany("digits", 3));
  ASSERT_TRUE(Trains(3));
  HoldCreations("large");
  for (const char* job : {"large-a", "large-b"}) ApplyMany(job, kPods);
  ASSERT_TRUE(Until([&] { return BegunOf("large-a") > 0 && BegunOf("large-b") > 0; }, kSoon));
  ASSERT_NO_FATAL_FAILURE(Ask("digits-worker-1", drain_));
  LetThrough(2 * kMore);
  EXPECT_TRUE(Until([&] { return cluster_->WasTold("digits-worker-1", "Drain"); }, kSoon))
      << Begun();
}

}  // namespace
}  // namespace ringmaster::controllers
