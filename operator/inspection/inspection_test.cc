#include "operator/inspection/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <thread>

#include "common/http/server.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace ringmaster::inspection {
namespace {

using kube::Json;

// An API server that reaches pods, some of which answer.
class ClusterApi : public local::InMemoryApi {
 public:
  ClusterApi() : InMemoryApi(std::make_shared<local::Store>(local::StoreOptions{})) {}

  kube::Result<std::string> PodProxy(const std::string& ns, const std::string& pod,
                                     const kube::PodProxyRequest& request) override {
    ++asked;
    EXPECT_EQ(ns, "default");
    EXPECT_TRUE(broken || request.port == 1);
    EXPECT_EQ(request.path, "/status");
    if (forbidden)
      return tl::unexpected(kube::Error{kube::ErrorCode::kForbidden, 403, "Forbidden", ""});
    if (broken) {
      return tl::unexpected(
          kube::Error{kube::ErrorCode::kUnavailable, 503, "", "GET .../proxy/status: 503"});
    }
    if (pod == "p3") return "not a status";
    if (pod == "p4" && refuses) {  // as something that is no sidecar may
      return tl::unexpected(
          kube::Error{kube::ErrorCode::kForbidden, 403, "", "HTTP status 403: \x1b[2Jno"});
    }
    return Json{{"pod", {{"name", pod}}}, {"state", "Training"}, {"epoch", 7}}.dump();
  }

  std::atomic<int> asked{0};
  bool forbidden = false, broken = false, refuses = false;
};

class InspectionTest : public testing::Test {
 protected:
  InspectionTest() {
    for (int i = 0; i < 100; ++i) MakePod("p" + std::to_string(i), "127.0.0.1:1");
    MakePod("new", "");
  }
  void MakePod(const std::string& name, const std::string& address) {
    const Json pod = {{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata",
                       {{"name", name},
                        {"namespace", "default"},
                        {"annotations", {{"ringmaster.dev/http", address}}},
                        {"labels",
                         {{"training.kubeflow.org/job-name", "digits"},
                          {"training.kubeflow.org/job-role", "worker"},
                          {"ringmaster.dev/job-uid", "u"}}}}},
                      {"spec", {{"containers", {{{"name", "worker"}, {"image", "x"}}}}}}};
    ASSERT_TRUE(api_->Create(kube::Pods(), "default", pod).has_value());
    const Json running = {{"status", {{"phase", "Running"}}}};
    ASSERT_TRUE(
        api_->Patch(kube::Pods(), "default", name, running, {.subresource = "status"}).has_value());
  }
  Inspection Look() {
    auto found =
        Inspect({api_, "", "default"},
                {{"metadata", {{"name", "digits"}, {"namespace", "default"}, {"uid", uid_}}}});
    EXPECT_TRUE(found.has_value());
    return found.value_or(Inspection{});
  }
  std::string uid_ = "u";
  std::shared_ptr<ClusterApi> api_ = std::make_shared<ClusterApi>();
};

TEST_F(InspectionTest, PodsOfAJobThatHadTheNameBeforeAreNotItsPods) {
  uid_ = "another";
  EXPECT_TRUE(Look().pods.empty());
}

TEST_F(InspectionTest, OnAClusterSidecarsAreAskedThroughTheApiServer) {
  const Inspection found = Look();
  EXPECT_EQ(found.pods.size(), 101u);
  EXPECT_EQ(api_->asked, 100) << "a pod whose sidecar has no address yet is not asked";
  EXPECT_EQ(found.answers.size(), 99u) << "one that answers nonsense is left out";
  EXPECT_EQ(SilentText(found),
            "1 of 100 sidecars gave no answer; p3: through the API server: what pod p3 answers is "
            "no status of a sidecar; straight: no status from 127.0.0.1:1 within 500 ms");
  const Json job = WithWorkers(found);
  EXPECT_EQ(job["status"]["pods"].size(), 101u);
}

TEST_F(InspectionTest, WhereThatIsForbiddenItIsNotTriedForEveryPod) {
  api_->forbidden = true;
  EXPECT_TRUE(Look().answers.empty());
  EXPECT_LT(api_->asked, 100);
}

TEST_F(InspectionTest, OnePodsRefusalKeepsNobodyElseFromBeingAskedAndIsShownWithoutItsControls) {
  api_->refuses = true;
  const Inspection found = Look();
  EXPECT_EQ(api_->asked, 100);
  EXPECT_EQ(found.answers.size(), 98u);
  ASSERT_EQ(found.silent.size(), 2u);
  EXPECT_THAT(found.silent[1], testing::StartsWith("p4: "));
  EXPECT_THAT(found.silent[1], testing::HasSubstr("HTTP status 403: ?[2Jno"));
}

// One dead pod does not mean that the others are unreachable.
TEST_F(InspectionTest, WhereTheServerReachesNoneThoseThatCanBeReachedStraightAreHeard) {
  asio::io_context loop{1};
  const auto sidecar =
      http::Server::Start({loop, {asio::ip::address_v4::loopback(), 0}}, [](const http::Request&) {
        return http::Response{.body = R"({"pod": {"name": "a"}, "state": "Training", "epoch": 7})"};
      });
  std::jthread serving([&] { loop.run(); });
  auto reachable = std::make_shared<ClusterApi>();
  reachable->broken = true;
  std::swap(api_, reachable);
  MakePod("dead", "127.0.0.1:1");
  // More pods than are asked at the same time: the others are asked before the dead one's deadline.
  for (int i = 0; i < 100; ++i)
    MakePod("there-" + std::to_string(i), "127.0.0.1:" + std::to_string(sidecar->port()));
  EXPECT_EQ(Look().answers.size(), 100u);
  asio::post(loop, [&] { sidecar->Stop(); });
}

TEST_F(InspectionTest, EventsAreReadOfThePodsThatAreNotWellFirstAndItIsSaidHowManyWereLeftOut) {
  const Json waits = {{"status", {{"phase", "Pending"}}}};
  ASSERT_TRUE(
      api_->Patch(kube::Pods(), "default", "p99", waits, {.subresource = "status"}).has_value());
  const auto pod = api_->Get(kube::Pods(), "default", "p99");
  const Json event = {{"apiVersion", "events.k8s.io/v1"},
                      {"kind", "Event"},
                      {"metadata", {{"name", "e"}, {"namespace", "default"}}},
                      {"type", "Warning"},
                      {"reason", "FailedScheduling"},
                      {"action", "Scheduling"},
                      {"eventTime", "2026-01-31T12:00:00.000000Z"},
                      {"reportingController", "scheduler"},
                      {"reportingInstance", "scheduler-0"},
                      {"regarding",
                       {{"kind", "Pod"},
                        {"namespace", "default"},
                        {"name", "p99"},
                        {"uid", (*pod)["metadata"]["uid"]}}}};
  const auto made = api_->Create(kube::Events(), "default", event);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  Inspection found = Look();
  testing::internal::CaptureStderr();
  AddEvents({api_, "", "default"}, &found);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringmaster: events of 20 of 101 pods were read, those that are not well first\n");
  ASSERT_EQ(found.events.size(), 1u);
  EXPECT_EQ(found.events[0]["reason"], "FailedScheduling");
}

TEST_F(InspectionTest, WhatFailedIsSaid) {
  api_->broken = true;
  const Inspection found = Look();
  EXPECT_EQ(api_->asked, 100);
  EXPECT_EQ(found.silent.size(), 100u);
  EXPECT_THAT(SilentText(found),
              testing::AllOf(testing::StartsWith("100 of 100 sidecars gave no answer; p"),
                             testing::HasSubstr(": through the API server: GET .../proxy/status: "
                                                "503"),
                             testing::EndsWith("; ...")));
  EXPECT_EQ(SilentText({}), "");
}

}  // namespace
}  // namespace ringmaster::inspection
