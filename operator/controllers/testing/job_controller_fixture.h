// A JobController whose pods run: FakeCluster replaces scheduler, kubelet and sidecars.
//
// Thread rule: one test's thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/api/labels.h"
#include "operator/controllers/testing/controller_fixture.h"
#include "operator/controllers/testing/fake_cluster.h"

namespace ringmaster::controllers::testing {

class JobControllerTest : public ControllerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ControllerTest::SetUp());
    ASSERT_NO_FATAL_FAILURE(StartController());
    pods_ =
        std::make_unique<FakeCluster>(api_, ns_, registry_.get(), [this](const std::string& pod) {
          // Pod 0 goes to node-1, and so on, if capacity is tracked.
          const int index = std::stoi(pod.substr(pod.rfind('-') + 1));
          const std::string node =
              options_.gang_admission ? "node-" + std::to_string(index + 1) : std::string(node_);
          if (cluster_->Bind(pod, cluster_->NodeName(node))) return;
          const auto left = api_->Get(kube::Pods(), ns_, pod);
          EXPECT_TRUE(!left || (*left)["metadata"].contains("deletionTimestamp")) << pod;
        });
    pods_->SetBootId("boot-1");
  }
  void TearDown() override {
    ControllerTest::TearDown();
    pods_.reset();
  }

  // The former operator is gone with everything that it knew.
  void RestartOperator() {
    controller_->Stop();
    old_registries_.push_back(std::move(registry_));
    ASSERT_NO_FATAL_FAILURE(StartController());
    pods_->MoveTo(registry_.get());
  }

  void AddNode(const std::string& name, const Json& status, const Json& labels = Json::object()) {
    const auto made =
        api_->Create(kube::Nodes(), "",
                     {{"metadata", {{"name", cluster_->NodeName(name)}, {"labels", labels}}},
                      {"status", status}});
    ASSERT_TRUE(made) << made.error().message;
  }
  void AddNodes() {
    for (const std::string name : {"node-1", "node-2"}) {
      AddNode(name,
              {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
               {"nodeInfo",
                {{"bootID", "boot-1"}, {"machineID", name}, {"systemUUID", "uuid-of-" + name}}}});
    }
  }
  void PatchNode(const std::string& name, const Json& patch, const std::string& subresource = "") {
    const auto patched = api_->Patch(kube::Nodes(), "", cluster_->NodeName(name), patch,
                                     {.subresource = subresource});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  void Cordon(const std::string& name, bool on = true) {
    PatchNode(name, {{"spec", {{"unschedulable", on}}}});
  }
  // A force delete: without the finalizer the object would be gone at once.
  void ForceDelete(const std::string& pod) {
    ASSERT_TRUE(api_->Delete(kube::Pods(), ns_, pod, {.grace_period_seconds = 0}));
  }
  Json PodObject(const std::string& pod) {
    const auto object = api_->Get(kube::Pods(), ns_, pod);
    return object ? *object : Json();
  }
  void PatchPod(const std::string& pod, const Json& metadata) {
    const auto patched = api_->Patch(kube::Pods(), ns_, pod, {{"metadata", metadata}}, {});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  std::string Annotation(const std::string& pod, const char* key) {
    const Json annotations =
        PodObject(pod).value("/metadata/annotations"_json_pointer, Json::object());
    return annotations.value(key, "");
  }
  // Three pods, of which one is lost with node-2.
  void LoseAPodOnNode2() {
    AddNodes();
    Apply(2);
    ASSERT_TRUE(TrainsAs({0, 1}));
    node_ = "node-2";
    Change({{"worker", {{"replicas", 3}}}});
    ASSERT_TRUE(TrainsAs({0, 1, 2}));
    ASSERT_TRUE(
        Eventually([&] { return !Annotation("digits-worker-2", api::kBootAnnotation).empty(); }));
    node_ = "node-1";
    pods_->LosePod("digits-worker-2");
  }
  ::testing::AssertionResult TrainsAs(const std::vector<int>& indexes) {
    return TrainsAsOneOf({indexes});
  }
  // A new pod takes the first free name, and the operator may learn late that a name is free.
  ::testing::AssertionResult TrainsAsOneOf(const std::vector<std::vector<int>>& choices) {
    return Eventually([&] {
      const api::Status status = Status();
      const auto names = Pods();
      const bool chosen = std::any_of(choices.begin(), choices.end(),
                                      [&](const auto& indexes) { return names == Names(indexes); });
      return chosen && pods_->Members() == names && status.state == "Running" &&
             status.epoch == pods_->epoch() && status.ring.size() == names.size();
    });
  }
  std::string Members() override { return ::testing::PrintToString(pods_->Members()); }

  std::atomic<const char*> node_ = "node-1";  // where pods are placed
  std::vector<std::unique_ptr<SidecarRegistry>> old_registries_;
  std::unique_ptr<FakeCluster> pods_;
};

}  // namespace ringmaster::controllers::testing
