// A JobController with each of the API servers, and the job "digits". The controller's calls pass a
// door that a test can shut; the test sees the server directly.
//
// Thread rule: one test's thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/api/testing/job_object.h"
#include "operator/controllers/job_controller.h"
#include "operator/controllers/testing/faulty_api.h"
#include "operator/local/testing/conformance.h"
#include "operator/planner/planner.h"
#include "tests/support/until.h"

namespace ringmaster::controllers::testing {

class ControllerTest : public local::testing::OnEveryServer {
 protected:
  using Json = kube::Json;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OnEveryServer::SetUp());
    door_ = std::make_shared<FaultyApi>(api_);
    options_.pod.sidecar_target = "unix:/tmp/operator.sock";
    options_.queue.first_backoff = std::chrono::milliseconds(5);
    options_.watch_namespaces = {ns_};
  }
  void TearDown() override {
    if (controller_ != nullptr) controller_->Stop();
  }

  // Starts a controller without the knowledge of a former one.
  void StartController() {
    controller_.reset();  // uses the two others until its end
    registry_ = std::make_unique<SidecarRegistry>();
    records_ = std::make_unique<QuorumRecordStore>(door_);
    controller_ = std::make_unique<JobController>(door_, registry_.get(), records_.get(), options_);
    const auto started = controller_->Start();
    ASSERT_TRUE(started) << started.error().message;
  }

  void Apply(int replicas, const Json& spec = Json::object()) {
    Json job = api::testing::JobObject("digits", replicas, 2);
    job["spec"].merge_patch(spec);
    const auto created = api_->Create(kube::HorovodJobs(), options_.watch_namespaces.front(), job);
    ASSERT_TRUE(created) << created.error().message;
  }
  void Change(const Json& spec) {
    const auto patched = api_->Patch(kube::HorovodJobs(), ns_, "digits", {{"spec", spec}}, {});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  api::Status Status() {
    const auto job = api_->Get(kube::HorovodJobs(), ns_, "digits");
    return job ? api::StatusFromJson(job->value("status", Json::object())) : api::Status{};
  }
  std::vector<std::string> Pods() {
    std::vector<std::string> names;
    const auto list = api_->ListAll(kube::Pods(), ns_, {});
    EXPECT_TRUE(list) << list.error().message;
    if (!list) return names;
    for (const Json& pod : list->items) names.push_back(runtime::MetaField(pod, "name"));
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::vector<std::string> Names(const std::vector<int>& indexes) {
    std::vector<std::string> names;
    for (const int index : indexes) names.push_back(planner::PodName("digits", index));
    return names;
  }
  std::vector<Json> Events(const std::string& reason) {
    std::vector<Json> found;
    const auto events = api_->ListAll(kube::Events(), ns_, {});
    if (!events) return found;
    for (const Json& event : events->items) {
      if (event.value("reason", "") == reason) found.push_back(event);
    }
    return found;
  }
  bool HasEvent(const std::string& reason) { return !Events(reason).empty(); }

  virtual std::string Members() { return "none asked"; }  // shown if a wait fails
  ::testing::AssertionResult Eventually(const std::function<bool()>& so) {
    if (support::Until(so)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << "pods: " << ::testing::PrintToString(Pods()) << " members: " << Members()
           << " status: " << api::StatusToJson(Status()).dump(1);
  }

  std::shared_ptr<FaultyApi> door_;
  JobControllerOptions options_;
  std::unique_ptr<SidecarRegistry> registry_;
  std::unique_ptr<QuorumRecordStore> records_;
  std::unique_ptr<JobController> controller_;
};

}  // namespace ringmaster::controllers::testing
