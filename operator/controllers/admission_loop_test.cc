#include "operator/controllers/admission_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controllers/slim_objects.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "operator/runtime/informer.h"
#include "tests/support/until.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using support::Until;

const Json kAsItIs = Json::object();  // no changes

// A node "n" with two CPUs.
Json Node() {
  return Json::parse(R"({"metadata": {"name": "n", "labels": {"pool": "gpu"}},
      "status": {"allocatable": {"cpu": "2", "pods": "110"}}})");
}

Json Pod(const std::string& name, const char* cpu = "1") {
  return {{"metadata", {{"name", name}, {"namespace", "default"}}},
          {"spec",
           {{"containers",
             {{{"name", "c"}, {"image", "i"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}}}}}};
}

// Uses a store with one node and perhaps another pod: how many of two pods, each requesting a CPU,
// find room.
class AdmissionLoopTest : public ::testing::Test {
 protected:
  ~AdmissionLoopTest() override {
    pods_.Stop();
    nodes_.Stop();
    loop_.Stop();
    store_->Close();
  }
  void Make(const kube::Resource& resource, const Json& object, const Json& changes) {
    Json changed = object;
    changed.merge_patch(changes);
    const Json status = changed.value("status", Json::object());
    const std::string ns = resource == kube::Nodes() ? "" : "default";
    const auto made = api_->Create(resource, ns, changed);
    ASSERT_TRUE(made) << made.error().message;
    const auto patched = api_->Patch(resource, ns, runtime::MetaField(*made, "name"),
                                     {{"status", status}}, {.subresource = "status"});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  // Starts the caches with everything that was created.
  void Start() {
    for (runtime::Informer* cache : {&nodes_, &pods_}) {
      cache->Start();
      ASSERT_TRUE(cache->WaitForSync(std::chrono::seconds(20))) << cache->LastError();
    }
  }
  int Fit(const Json& changes = Json::object()) {
    scheduler::AdmissionRequest request{.job = "default/job", .sizes = {1, 2}};
    for (const char* name : {"a", "b"}) {
      Json pod = Pod(name);
      pod.merge_patch(changes);
      request.pods.push_back(std::make_shared<const Json>(std::move(pod)));
    }
    const scheduler::GangFit fit = loop_.Ask(std::move(request), {});
    loop_.Withdraw("default/job");
    why_ = fit.why;
    return fit.fit;
  }

  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  const std::shared_ptr<kube::KubeApi> api_ = std::make_shared<local::InMemoryApi>(store_);
  sync::Mutex mu_;
  std::vector<std::string> changed_ GUARDED_BY(mu_);
  AdmissionLoop loop_{[this](const std::string& job) {
    const sync::MutexLock lock(&mu_);
    changed_.push_back(job);
  }};
  runtime::Informer nodes_{
      api_, kube::Nodes(), {.keep = SlimNode}, [this](const Json& node, bool deleted) {
        loop_.OnNode(node, deleted);
      }};
  runtime::Informer pods_{api_,
                          kube::Pods(),
                          {.keep = SlimPod, .stores = IsWorkerPod},
                          [this](const Json& pod, bool deleted) { loop_.OnPod(pod, deleted); }};
  std::string why_;
};

struct RoomCase {
  std::string name;
  Json node;   // changes of the node
  Json other;  // changes of the other pod, which requests a CPU, too; null: it doesn't exist
  int fit;
  Json pods = Json::object();  // changes of the two pods
};

class RoomTable : public AdmissionLoopTest, public ::testing::WithParamInterface<RoomCase> {};

TEST_P(RoomTable, CountsWhatPlacementLooksAt) {
  ASSERT_NO_FATAL_FAILURE(Make(kube::Nodes(), Node(), GetParam().node));
  if (!GetParam().other.is_null()) {
    ASSERT_NO_FATAL_FAILURE(Make(kube::Pods(), Pod("other"), GetParam().other));
  }
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_EQ(Fit(GetParam().pods), GetParam().fit) << why_;
}

const Json kTainted = {{"spec", {{"taints", {{{"key", "gpu"}, {"effect", "NoSchedule"}}}}}}};
const Json kTolerates = {{"spec", {{"tolerations", {{{"operator", "Exists"}}}}}}};

Json On(const char* node) { return {{"spec", {{"nodeName", node}}}}; }

Json WithInit(const char* restart_policy) {
  Json pod = On("n");
  Json init = {{"name", "i"}, {"image", "i"}, {"resources", {{"requests", {{"cpu", "1"}}}}}};
  if (*restart_policy != 0) init["restartPolicy"] = restart_policy;
  pod["spec"]["initContainers"] = {init};
  return pod;
}

Json WithAffinity(const char* pool) {
  const Json term = {
      {"matchExpressions", {{{"key", "pool"}, {"operator", "In"}, {"values", {pool}}}}}};
  return {{"spec",
           {{"affinity",
             {{"nodeAffinity",
               {{"requiredDuringSchedulingIgnoredDuringExecution",
                 {{"nodeSelectorTerms", {term}}}}}}}}}}};
}

INSTANTIATE_TEST_SUITE_P(
    AdmissionLoopTest, RoomTable,
    ::testing::Values(
        RoomCase{"AnEmptyNode", kAsItIs, nullptr, 2}, RoomCase{"APodThatRuns", kAsItIs, On("n"), 1},
        RoomCase{"APodThatRunsElsewhere", kAsItIs, On("m"), 2},
        RoomCase{"APodThatHasEnded",
                 kAsItIs,
                 {{"spec", {{"nodeName", "n"}}}, {"status", {{"phase", "Succeeded"}}}},
                 2},
        RoomCase{"APodThatWaitsForTheScheduler", kAsItIs, kAsItIs, 1},
        RoomCase{"AGatedPod", kAsItIs, {{"spec", {{"schedulingGates", {{{"name", "x/y"}}}}}}}, 2},
        RoomCase{"APodThatSelectsAnotherNode",
                 kAsItIs,
                 {{"spec", {{"nodeSelector", {{"pool", "x"}}}}}},
                 2},
        RoomCase{"APodThatSelectsThisNode",
                 kAsItIs,
                 {{"spec", {{"nodeSelector", {{"pool", "gpu"}}}}}},
                 1},
        RoomCase{"APodWithAffinityToAnotherNode", kAsItIs, WithAffinity("x"), 2},
        RoomCase{"APodWithAffinityToThisNode", kAsItIs, WithAffinity("gpu"), 1},
        RoomCase{"APodThatToleratesTheTaint", kTainted, kTolerates, 1, kTolerates},
        RoomCase{"APodThatDoesNot", kTainted, kAsItIs, 2, kTolerates},
        RoomCase{"ATaint", kTainted, nullptr, 0},
        RoomCase{"ACordon", {{"spec", {{"unschedulable", true}}}}, nullptr, 0},
        RoomCase{"ASidecarBesideAContainer", kAsItIs, WithInit("Always"), 0},
        RoomCase{"AnInitContainerBeforeAContainer", kAsItIs, WithInit(""), 1}),
    [](const auto& info) { return info.param.name; });

TEST_F(AdmissionLoopTest, ADeletedPodThatNeverRanTakesNothing) {
  ASSERT_NO_FATAL_FAILURE(Make(kube::Nodes(), Node(), kAsItIs));
  ASSERT_NO_FATAL_FAILURE(
      Make(kube::Pods(), Pod("other"), {{"metadata", {{"finalizers", {"example.com/mine"}}}}}));
  ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "other", {}));
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_EQ(Fit(), 2) << why_;
}

TEST_F(AdmissionLoopTest, WhatComesAndGoesIsFollowed) {
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_EQ(Fit(), 0) << "no node";
  ASSERT_NO_FATAL_FAILURE(Make(kube::Nodes(), Node(), kAsItIs));
  EXPECT_TRUE(Until([&] { return Fit() == 2; }));
  ASSERT_NO_FATAL_FAILURE(Make(kube::Pods(), Pod("other"), On("n")));
  EXPECT_TRUE(Until([&] { return Fit() == 1; }));
  ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "other", {.grace_period_seconds = 0}));
  EXPECT_TRUE(Until([&] { return Fit() == 2; }));
  ASSERT_TRUE(api_->Delete(kube::Nodes(), "", "n", {}));
  EXPECT_TRUE(Until([&] { return Fit() == 0; }));
}

TEST_F(AdmissionLoopTest, AJobIsCalledWhenItsTurnHasCome) {
  ASSERT_NO_FATAL_FAILURE(Start());
  loop_.Start();
  for (const char* job : {"default/one", "default/two"}) {
    scheduler::AdmissionRequest request{.job = job, .sizes = {1}};
    request.pods.push_back(std::make_shared<const Json>(Pod(std::string(job).substr(8))));
    EXPECT_EQ(loop_.Ask(std::move(request), {}).fit, 0);
  }
  ASSERT_NO_FATAL_FAILURE(Make(kube::Nodes(), Node(), kAsItIs));
  const auto called = [&](const std::string& job) {
    const sync::MutexLock lock(&mu_);
    return std::find(changed_.begin(), changed_.end(), job) != changed_.end();
  };
  EXPECT_TRUE(Until([&] { return called("default/one") && called("default/two"); }));
}

// A new operator has an empty line.
TEST_F(AdmissionLoopTest, NobodyIsGrantedAnythingBeforeAllThatWereThereHaveAsked) {
  ASSERT_NO_FATAL_FAILURE(Make(kube::Nodes(), Node(), kAsItIs));
  ASSERT_NO_FATAL_FAILURE(Start());
  loop_.Expect({"default/new", "default/old", "default/gone"});
  loop_.Start();
  const auto ask = [this](const std::string& job, int priority) {
    scheduler::AdmissionRequest request{.job = job, .priority = priority, .sizes = {2}};
    for (const char* pod : {"-0", "-1"})
      request.pods.push_back(std::make_shared<const Json>(Pod(job.substr(8) + pod)));
    return loop_.Ask(std::move(request), {});
  };
  EXPECT_FALSE(ask("default/new", 0).decided);
  loop_.Withdraw("default/gone");
  EXPECT_FALSE(ask("default/old", 9).decided);
  EXPECT_TRUE(Until([&] { return ask("default/old", 9).fit == 2; }));
  EXPECT_EQ(ask("default/new", 0).fit, 0);
}

}  // namespace
}  // namespace ringmaster::controllers
