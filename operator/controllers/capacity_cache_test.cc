#include "operator/controllers/capacity_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/local/store.h"
#include "operator/local/testing/in_memory_api.h"
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

// Before a store that has one node and perhaps another pod: how many of two pods that want a CPU
// each would find room.
class CapacityCacheTest : public ::testing::Test {
 protected:
  ~CapacityCacheTest() override {
    capacity_.Stop();
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
  // With all that was made in the caches.
  void Start() {
    capacity_.Start();
    for (const runtime::Informer* cache : capacity_.Caches()) {
      ASSERT_TRUE(Until([&] { return cache->state().synced; })) << cache->state().error;
    }
  }
  int Fit(const Json& changes = Json::object()) {
    std::vector<Json> pods = {Pod("a"), Pod("b")};
    for (Json& pod : pods) {
      pod["metadata"]["uid"] = pod["metadata"]["name"];
      pod.merge_patch(changes);
    }
    const scheduler::GangFit fit = capacity_.FitTogether(pods);
    why_ = fit.why;
    return fit.fit;
  }

  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  const std::shared_ptr<kube::KubeApi> api_ = std::make_shared<local::InMemoryApi>(store_);
  CapacityCache capacity_{api_};
  std::string why_;
};

struct CapacityCase {
  std::string name;
  Json node;   // changes of the node
  Json other;  // changes of the other pod, which wants a CPU too; null: there is none
  int fit;
  Json pods = Json::object();  // changes of the two
};

class RoomTable : public CapacityCacheTest, public ::testing::WithParamInterface<CapacityCase> {};

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
    CapacityCacheTest, RoomTable,
    ::testing::Values(
        CapacityCase{"AnEmptyNode", kAsItIs, nullptr, 2},
        CapacityCase{"APodThatRuns", kAsItIs, On("n"), 1},
        CapacityCase{"APodThatRunsElsewhere", kAsItIs, On("m"), 2},
        CapacityCase{"APodThatHasEnded",
                     kAsItIs,
                     {{"spec", {{"nodeName", "n"}}}, {"status", {{"phase", "Succeeded"}}}},
                     2},
        CapacityCase{"APodThatWaitsForTheScheduler", kAsItIs, kAsItIs, 1},
        CapacityCase{
            "AGatedPod", kAsItIs, {{"spec", {{"schedulingGates", {{{"name", "x/y"}}}}}}}, 2},
        CapacityCase{"APodThatSelectsAnotherNode",
                     kAsItIs,
                     {{"spec", {{"nodeSelector", {{"pool", "x"}}}}}},
                     2},
        CapacityCase{"APodThatSelectsThisNode",
                     kAsItIs,
                     {{"spec", {{"nodeSelector", {{"pool", "gpu"}}}}}},
                     1},
        CapacityCase{"APodWithAffinityToAnotherNode", kAsItIs, WithAffinity("x"), 2},
        CapacityCase{"APodWithAffinityToThisNode", kAsItIs, WithAffinity("gpu"), 1},
        CapacityCase{"APodThatToleratesTheTaint", kTainted, kTolerates, 1, kTolerates},
        CapacityCase{"APodThatDoesNot", kTainted, kAsItIs, 2, kTolerates},
        CapacityCase{"ATaint", kTainted, nullptr, 0},
        CapacityCase{"ACordon", {{"spec", {{"unschedulable", true}}}}, nullptr, 0},
        CapacityCase{"ASidecarBesideAContainer", kAsItIs, WithInit("Always"), 0},
        CapacityCase{"AnInitContainerBeforeAContainer", kAsItIs, WithInit(""), 1}),
    [](const auto& info) { return info.param.name; });

TEST_F(CapacityCacheTest, ADeletedPodThatNeverRanTakesNothing) {
  ASSERT_NO_FATAL_FAILURE(Make(kube::Nodes(), Node(), kAsItIs));
  ASSERT_NO_FATAL_FAILURE(
      Make(kube::Pods(), Pod("other"), {{"metadata", {{"finalizers", {"example.com/mine"}}}}}));
  ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "other", {}));
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_EQ(Fit(), 2) << why_;
}

TEST_F(CapacityCacheTest, WhatComesAndGoesIsFollowed) {
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

TEST_F(CapacityCacheTest, WhatWeHaveWrittenCountsAtOnceUnlessItIsOld) {
  ASSERT_NO_FATAL_FAILURE(Make(kube::Nodes(), Node(), kAsItIs));
  ASSERT_NO_FATAL_FAILURE(Make(kube::Pods(), Pod("other"), On("n")));
  ASSERT_NO_FATAL_FAILURE(Start());
  const Json seen = *api_->Get(kube::Pods(), "default", "other");
  Json newer = seen, older = seen;
  newer["status"]["phase"] = "Succeeded";
  newer["metadata"]["resourceVersion"] = "1000000";
  capacity_.Observe(newer);
  EXPECT_EQ(Fit(), 2) << "it has ended";
  capacity_.Observe(older);
  EXPECT_EQ(Fit(), 2) << "it ran once";
}

}  // namespace
}  // namespace ringmaster::controllers
