// What every test of the API itself stands on: objects to write, and ways to look at them.
//
// Thread rule: one test's thread, but for what a test says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "operator/api/testing/job_object.h"
#include "operator/kube/http_connection.h"
#include "operator/local/testing/conformance.h"
#include "tests/support/until.h"

namespace ringmaster::local::testing {

using kube::ErrorCode;
using kube::Json;
using kube::WatchEvent;
using support::Until;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class KubeConformance : public OnEveryServer {
 protected:
  kube::KubeApi& api() { return *api_; }
  // The refusal of what must not succeed.
  template <class T>
  static kube::Error Refused(const kube::Result<T>& result) {
    EXPECT_FALSE(result.has_value()) << "was accepted";
    return result ? kube::Error{} : result.error();
  }

  Json ConfigMap(const std::string& name, Json data = {{"k", "v"}}) {
    return {{"metadata", {{"name", name}}}, {"data", std::move(data)}};
  }
  Json Pod(const std::string& name) {
    return {{"metadata", {{"name", name}, {"labels", {{"app", "x"}}}}},
            {"spec",
             {{"schedulingGates", {{{"name", "test/hold"}}}},
              {"containers", {{{"name", "main"}, {"image", "none"}}}}}}};
  }
  Json Job(const std::string& name, int replicas = 2) {
    return api::testing::JobObject(name, replicas);
  }
  Json MustCreate(const kube::Resource& resource, const Json& object) {
    auto created = api().Create(resource, ns_, object);
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return created ? *created : Json::object();
  }
  // Makes an object's older versions stale.
  void PatchLabels(const std::string& job) {
    auto patched = api().Patch(kube::HorovodJobs(), ns_, job,
                               {{"metadata", {{"labels", {{"changed", "yes"}}}}}}, {});
    EXPECT_TRUE(patched.has_value()) << patched.error().message;
  }
  static std::string Version(const Json& object) { return object["metadata"]["resourceVersion"]; }
  Json OwnerRef(const Json& owner, bool block = false) {
    Json ref = {{"apiVersion", owner["apiVersion"]},
                {"kind", owner["kind"]},
                {"name", owner["metadata"]["name"]},
                {"uid", owner["metadata"]["uid"]}};
    if (block) ref["blockOwnerDeletion"] = true;
    return ref;
  }
  // Garbage collection is asynchronous on a real server.
  bool Goes(const kube::Resource& resource, const std::string& name) {
    return Until([&] {
      auto got = api().Get(resource, ns_, name);
      return !got && got.error().code == ErrorCode::kNotFound;
    });
  }
  // Events until `enough`, as "ADDED name".
  std::vector<std::string> Watch(const kube::Resource& resource, kube::WatchOptions options,
                                 size_t enough) {
    std::vector<std::string> seen;
    options.timeout = std::chrono::seconds(20);
    auto result =
        api().Watch(resource, ns_, options,
                    [&](const WatchEvent& event) {
                      if (event.type == WatchEvent::Type::kBookmark) return true;
                      const char* kNames[] = {"ADDED", "MODIFIED", "DELETED"};
                      seen.push_back(std::string(kNames[static_cast<int>(event.type)]) + " " +
                                     event.object["metadata"]["name"].get<std::string>());
                      return seen.size() < enough;
                    },
                    {});
    EXPECT_TRUE(result.has_value()) << result.error().message;
    return seen;
  }
};

// The same for server-side apply.
class KubeApply : public KubeConformance {
 protected:
  kube::Result<Json> Apply(const std::string& manager, Json data, bool force = false) {
    kube::PatchOptions options;
    options.type = kube::PatchType::kApply;
    options.field_manager = manager;
    options.force = force;
    Json config = {{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"metadata", {{"name", "a"}}},
                   {"data", std::move(data)}};
    return api().Patch(kube::ConfigMaps(), ns_, "a", config, options);
  }
};

// The same for what only HTTP shows: tables, warnings, paths.
class KubeRest : public KubeConformance {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(KubeConformance::SetUp());
    config_ = *cluster_->rest();
    http_ = std::move(*kube::HttpConnections::Make(config_));
  }
  kube::HttpResponse Send(kube::HttpRequest request) {
    kube::Credentials credentials(config_);
    auto credential = credentials.Get(std::chrono::steady_clock::now() + std::chrono::seconds(10));
    auto response = http_->Send(request, *credential);
    EXPECT_TRUE(response.has_value()) << response.error().message;
    return response ? *response : kube::HttpResponse{};
  }
  static Json Body(const kube::HttpResponse& response) {
    return Json::parse(response.body, nullptr, false);
  }
  std::string Path(const std::string& plural) const {
    return "/api/v1/namespaces/" + ns_ + "/" + plural;
  }
  std::string JobPath(const std::string& rest = "") const {
    return "/apis/ringmaster.dev/v1alpha1/namespaces/" + ns_ + "/horovodjobs" + rest;
  }

  kube::ClientConfig config_;
  std::unique_ptr<kube::HttpConnections> http_;
};

}  // namespace ringmaster::local::testing
