#include "operator/daemon/page_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <thread>

#include "common/http/server.h"
#include "common/ring_key/ring_key.h"
#include "common/sync/mutex.h"
#include "operator/controllers/pod_record.h"
#include "operator/kube/base64.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace ringmaster::daemon {
namespace {

using nlohmann::json;

// A sidecar that answers on loopback, and the caches of an operator that has its pod.
class PageSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    asio::ip::tcp::acceptor acceptor(loop_, {asio::ip::address_v4::loopback(), 0});
    sidecar_ = http::Server::Start(std::move(acceptor), [this](const http::Request& request) {
      ++asked_;
      {
        const sync::MutexLock lock(&mu_);
        token_ = request.Header("ringmaster-token");
      }
      return http::Response{
          .content_type = "application/json",
          .body =
              R"({"job":{"name":"digits"},"pod":{"name":"digits-worker-0"},"coordinator":true,"view":{"ranks":[{},{}]}})"};
    });
    port_ = std::to_string(sidecar_->port());
    thread_ = std::thread([this] { loop_.run(); });
  }
  void TearDown() override {
    asio::post(loop_, [this] { sidecar_->Stop(); });
    thread_.join();
  }

  static json Job(const std::string& uid) {
    return {{"metadata", {{"namespace", "default"}, {"name", "digits"}, {"uid", uid}}},
            {"spec", {{"worker", {{"replicas", 2}, {"template", {{"long", "text"}}}}}}},
            {"status", {{"state", "Running"}}}};
  }
  static json Pod(const std::string& job_uid, const std::string& ip, const std::string& address) {
    return {{"metadata",
             {{"namespace", "default"},
              {"name", "digits-worker-0"},
              {"labels", {{"ringmaster.dev/job-uid", job_uid}}},
              {"ownerReferences", {{{"uid", job_uid}, {"controller", true}}}},
              {"annotations", {{"ringmaster.dev/http", address}}}}},
            {"spec", {{"priority", 7}}},
            {"status", {{"phase", "Running"}, {"podIP", ip}}}};
  }
  static runtime::ObjectPtr Cached(const json& pod) {
    auto cached = runtime::ObjectPtr(std::make_shared<const json>(pod)).Packed();
    cached.SetExtract(controllers::InformerOptionsForPods().storage.extract(pod));
    return cached;
  }
  static app::OperatorSample Sample(const std::string& job_uid, const json& pod) {
    app::OperatorSample sample;
    sample.jobs.emplace_back(std::make_shared<const json>(Job(job_uid)));
    sample.pods.push_back(Cached(pod));
    return sample;
  }
  // Creates an object that can own others, because an object whose owner doesn't exist is deleted
  // at once. Returns its uid.
  std::string MakeOwner(const std::string& name) {
    const auto made =
        api_->Create(kube::Secrets(), "default",
                     {{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", {{"name", name}}}});
    return (*made)["metadata"]["uid"];
  }
  // Creates the Secret of the job "digits", whose owner has this uid.
  void PutSecret(const std::string& owner, const std::string& uid, const std::string& key) {
    (void)api_->Delete(kube::Secrets(), "default", "digits-tls", {});
    const json reference = {{"apiVersion", "v1"},
                            {"kind", "Secret"},
                            {"name", owner},
                            {"uid", uid},
                            {"controller", true}};
    const auto made = api_->Create(
        kube::Secrets(), "default",
        {{"apiVersion", "v1"},
         {"kind", "Secret"},
         {"metadata", {{"name", "digits-tls"}, {"ownerReferences", json::array({reference})}}},
         {"data", {{"ring.key", kube::EncodeBase64(key)}}}});
    EXPECT_TRUE(made) << made.error().message;
  }
  inspection::Inspection Look(const json& pod) {
    PageSource source([&] { return Sample("u", pod); }, api_);
    auto jobs = source.Jobs();
    EXPECT_EQ(jobs->size(), 1u);
    EXPECT_FALSE(jobs->front()["spec"]["worker"].contains("template"));
    return *source.Inspect(jobs->front());
  }

  const std::shared_ptr<local::InMemoryApi> api_ =
      std::make_shared<local::InMemoryApi>(std::make_shared<local::Store>(local::StoreOptions{}));
  asio::io_context loop_{1};
  std::unique_ptr<http::Server> sidecar_;
  std::string port_;
  std::atomic<int> asked_{0};
  sync::Mutex mu_;
  std::string token_ GUARDED_BY(mu_);  // the last token that the sidecar got
  std::thread thread_;
};

TEST_F(PageSourceTest, WhatThePageNeedsOfAJobIsKept) {
  json job = Job("u");
  job["metadata"]["creationTimestamp"] = "2026-01-31T12:00:00Z";
  job["metadata"]["labels"] = {{"kueue.x-k8s.io/queue-name", "gpus"}, {"another", "label"}};
  job["spec"]["elasticPolicy"] = {{"minReplicas", 2}};
  job["spec"]["slotsPerWorker"] = 4;
  job["spec"]["worker"]["template"] = {{"spec", {{"priorityClassName", "high"}}}};
  app::OperatorSample sample = Sample("u", Pod("u", "127.0.0.1", "127.0.0.1:1"));
  sample.jobs = {std::make_shared<const json>(job)};
  PageSource source([&] { return sample; }, api_);
  const auto jobs = source.Jobs();
  EXPECT_EQ(source.PriorityOf(jobs->front()), 7);
  EXPECT_EQ(source.PriorityOf(Job("another")), std::nullopt);
  const json& kept = jobs->front();
  EXPECT_EQ(kept["metadata"]["creationTimestamp"], "2026-01-31T12:00:00Z");
  EXPECT_EQ(kept["metadata"]["labels"], json({{"kueue.x-k8s.io/queue-name", "gpus"}}));
  EXPECT_EQ(kept["spec"]["elasticPolicy"]["minReplicas"], 2);
  EXPECT_EQ(kept["spec"]["slotsPerWorker"], 4) << "for the numbers of workers in logs";
  EXPECT_EQ(kept["spec"]["runPolicy"]["schedulingPolicy"]["priorityClass"], "high");
}

TEST_F(PageSourceTest, AsksTheSidecarsOfTheJobsPods) {
  const auto look = Look(Pod("u", "127.0.0.1", "127.0.0.1:" + port_));
  ASSERT_EQ(look.answers.size(), 1u);
  EXPECT_TRUE(look.answers.at("digits-worker-0").coordinator);
  EXPECT_EQ(look.pods.size(), 1u);
}

TEST_F(PageSourceTest, OnlyOneTellsOfTheView) {
  const std::string address = "127.0.0.1:" + port_;
  PageSource source(
      [&] {
        app::OperatorSample sample = Sample("u", Pod("u", "127.0.0.1", address));
        for (const char* name : {"digits-worker-1", "digits-worker-2"}) {
          json pod = Pod("u", "127.0.0.1", address);
          pod["metadata"]["name"] = name;
          sample.pods.push_back(Cached(pod));
        }
        return sample;
      },
      api_);
  const auto look = *source.Inspect(source.Jobs()->front());
  EXPECT_EQ(look.answers.size(), 3u);
  std::size_t ranks = 0;
  for (const auto& [pod, status] : look.answers) ranks += status.ranks.size();
  EXPECT_EQ(ranks, 2u);
}

TEST_F(PageSourceTest, TheSecretOfADeletedJobOfThatNameIsNotBelievedForLong) {
  const std::string old_key = ring_key::MakeRandom(), key = ring_key::MakeRandom();
  const std::string deleted = MakeOwner("deleted"), uid = MakeOwner("new");
  PageSource::Clock::time_point now{};
  PageSource source(
      [this, uid] { return Sample(uid, Pod(uid, "127.0.0.1", "127.0.0.1:" + port_)); }, api_,
      [&now] { return now; });
  const auto token_at_a_look = [&] {
    now += std::chrono::seconds(6);
    (void)source.Inspect(source.Jobs()->front());
    const sync::MutexLock lock(&mu_);
    return token_;
  };
  EXPECT_EQ(token_at_a_look(), "") << "there is no Secret yet";
  PutSecret("deleted", deleted, old_key);
  EXPECT_EQ(token_at_a_look(), ring_key::MakeToken(old_key));
  PutSecret("new", uid, key);
  EXPECT_EQ(token_at_a_look(), ring_key::MakeToken(key));
  PutSecret("new", uid, old_key);
  EXPECT_EQ(token_at_a_look(), ring_key::MakeToken(key)) << "a job keeps its key";
}

TEST_F(PageSourceTest, APodOfAnotherJobOfThatNameIsNotAsked) {
  EXPECT_TRUE(Look(Pod("another", "127.0.0.1", "127.0.0.1:" + port_)).pods.empty());
  json labelled = Pod("u", "127.0.0.1", "127.0.0.1:" + port_);
  labelled["metadata"].erase("ownerReferences");
  EXPECT_TRUE(Look(labelled).pods.empty()) << "anybody can label a pod of his own";
  json elsewhere = Pod("u", "127.0.0.1", "127.0.0.1:" + port_);
  elsewhere["metadata"]["namespace"] = "other";
  EXPECT_TRUE(Look(elsewhere).pods.empty());
  EXPECT_EQ(asked_, 0);
}

TEST_F(PageSourceTest, ATimelineIsAskedForAtThePodsOwnAddressAlone) {
  for (const std::string ip : {"127.0.0.1", "10.0.0.9"}) {
    const json pod = Pod("u", ip, "127.0.0.1:" + port_);
    PageSource source([&] { return Sample("u", pod); }, api_);
    ASSERT_TRUE(source.Jobs());
    const auto gathered = source.Timeline(Job("u"), {.seconds = 1});
    EXPECT_EQ(gathered.missing.size(), 1u) << "what it answers here is no timeline";
    EXPECT_EQ(asked_, 2) << ip << ": for all, and then for the newest little";
  }
}

TEST_F(PageSourceTest, AnAddressThatIsNotThePodsOwnIsNotAsked) {
  for (const std::string ip : {"10.0.0.9", "127.0.0.10", "127.0.0.", ""}) {
    const auto look = Look(Pod("u", ip, "127.0.0.1:" + port_));
    EXPECT_EQ(look.pods.size(), 1u);
    EXPECT_TRUE(look.answers.empty()) << ip;
  }
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace ringmaster::daemon
