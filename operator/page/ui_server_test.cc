// The page's server over a place with one job and no pods, asked as a browser would.
#include "operator/page/ui_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <future>
#include <thread>

#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace ringmaster::page {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const nlohmann::json kJob = {
    {"apiVersion", "ringmaster.dev/v1alpha1"},
    {"kind", "HorovodJob"},
    {"metadata", {{"name", "digits"}}},
    {"spec",
     {{"worker",
       {{"replicas", 2},
        {"template",
         {{"spec",
           {{"containers", {{{"name", "worker"}, {"image", "i"}, {"command", {"true"}}}}}}}}}}}}}};

class UiServerTest : public testing::Test {
 protected:
  void SetUp() override {
    api_ =
        std::make_shared<local::InMemoryApi>(std::make_shared<local::Store>(local::StoreOptions{}));
    const auto made = api_->Create(kube::HorovodJobs(), "default", kJob);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    observatory_ = std::make_unique<Observatory>(
        SourceOf({api_, "/no/run", "default"}),
        Observatory::Options{.interval = std::chrono::milliseconds(20)});
    auto server = UiServer::Start(observatory_.get(), 0);
    ASSERT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
    const std::string address = server_->address();
    const auto query = address.find("/?");
    origin_ = address.substr(0, query);
    entry_ = address.substr(query);
    uint64_t seen = 0;
    ASSERT_FALSE(observatory_->Newer("default/digits", &seen, std::chrono::seconds(30)).is_null());
  }

  // With the cookie of a user who has opened the address.
  httplib::Headers LetIn() {
    const auto page = httplib::Client(origin_).Get(entry_);
    const std::string cookie = page->get_header_value("Set-Cookie");
    return {{"Cookie", cookie.substr(0, cookie.find(';'))}};
  }

  std::shared_ptr<local::InMemoryApi> api_;
  std::unique_ptr<Observatory> observatory_;
  std::unique_ptr<UiServer> server_;
  std::string origin_, entry_;
};

TEST_F(UiServerTest, OnlyWhoHasTheTokenGetsIn) {
  httplib::Client client(origin_);
  for (const char* path :
       {"/", "/page.js", "/api/jobs", "/?token=", "/?token=no", "/api/stream?job=default/digits"}) {
    const auto answer = client.Get(path);
    EXPECT_EQ(answer->status, 401) << path;
    EXPECT_THAT(answer->body, Not(HasSubstr("digits")));
  }
  const auto page = client.Get(entry_);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->body, StartsWith("<!doctype html>"));
  EXPECT_THAT(page->get_header_value("Set-Cookie"), HasSubstr("HttpOnly; SameSite=Strict"));
  EXPECT_EQ(client.Get("/page.js", LetIn())->status, 200);
}

TEST_F(UiServerTest, ARequestForAnotherHostIsRefused) {
  auto headers = LetIn();
  headers.emplace("Host", "evil.example");
  EXPECT_EQ(httplib::Client(origin_).Get("/api/jobs", headers)->status, 421);
}

TEST_F(UiServerTest, ListsJobsAndTellsOfOne) {
  httplib::Client client(origin_);
  const auto jobs = nlohmann::json::parse(client.Get("/api/jobs", LetIn())->body);
  ASSERT_EQ(jobs["jobs"].size(), 1u);
  EXPECT_EQ(jobs["jobs"][0]["name"], "digits");
  EXPECT_EQ(jobs["error"], "");
  const auto job = nlohmann::json::parse(client.Get("/api/job?job=default/digits", LetIn())->body);
  EXPECT_EQ(job["job"]["wanted"], 2);
  EXPECT_FALSE(job["samples"].empty());
  EXPECT_EQ(client.Get("/api/job?job=default/none", LetIn())->status, 404);
}

TEST_F(UiServerTest, ADeletedJobIsStillShown) {
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), "default", "digits", {}).has_value());
  uint64_t seen = 0;
  std::string state;
  while (state != "Deleted") {
    const auto newer = observatory_->Newer("default/digits", &seen, std::chrono::seconds(30));
    ASSERT_FALSE(newer.is_null());
    state = newer["job"]["state"];
  }
}

TEST_F(UiServerTest, AStreamGoesOnWithEachLookAndEndsWithTheServer) {
  const httplib::Headers headers = LetIn();
  std::promise<void> twice;
  std::string text;
  std::thread reader([&] {
    bool told = false;
    (void)httplib::Client(origin_).Get(
        "/api/stream?job=default/digits", headers, [&](const char* data, size_t bytes) {
          text.append(data, bytes);
          if (!told && text.find("\n\ndata: ") != std::string::npos) {
            told = true;
            twice.set_value();
          }
          return true;
        });
  });
  twice.get_future().wait();
  server_.reset();
  reader.join();
  EXPECT_THAT(text, StartsWith("data: {"));
  EXPECT_THAT(text, HasSubstr("\"sample\":{"));
}

TEST_F(UiServerTest, APortInUseIsSaid) {
  const int port = std::stoi(origin_.substr(origin_.rfind(':') + 1));
  auto second = UiServer::Start(observatory_.get(), port);
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error(), HasSubstr("can't listen on 127.0.0.1:" + std::to_string(port)));
}

}  // namespace
}  // namespace ringmaster::page
