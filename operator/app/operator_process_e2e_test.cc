// ringmaster-operator as a process, with an API server of this test: election, stop, and an API
// server that goes away, comes back, and changes its answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>

#include "operator/api/labels.h"
#include "operator/api/testing/job_object.h"
#include "operator/app/leader_label.h"
#include "operator/app/testing/running_operator.h"
#include "operator/kube/base64.h"
#include "operator/local/server/rest_server.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "operator/runtime/leader_election.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::Until;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kLease[] = "ringmaster-operator";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool HasEnded(const std::string& process) {
  std::string pid, name, state;
  return !(std::ifstream("/proc/" + process + "/stat") >> pid >> name >> state) || state == "Z";
}

class OperatorProcessE2e : public testing::Test {
 protected:
  void SetUp() override {
    store_ = std::make_shared<local::Store>(local::StoreOptions{.crd_yaml = ReadFile(RM_CRD_FILE)});
    api_ = std::make_unique<local::InMemoryApi>(store_);
    ASSERT_TRUE(api_->Create(kube::Namespaces(), "", {{"metadata", {{"name", "ops"}}}}));
    // Pods are made when they have room.
    ASSERT_TRUE(
        api_->Create(kube::Nodes(), "",
                     {{"metadata", {{"name", "n"}}},
                      {"status",
                       {{"allocatable", {{"cpu", "64"}, {"memory", "64Gi"}, {"pods", "110"}}},
                        {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}}));
    auto tls = local::MakeTlsMaterial();
    ASSERT_TRUE(tls) << tls.error();
    tls_ = *tls;
    token_ = "first";
    StartApiServer();
  }
  void TearDown() override {
    store_->Close();
    StopApiServer();
  }

  void StartApiServer() {
    local::RestServerOptions options;
    options.port = port_;
    options.tls = tls_;
    options.token = token_;
    auto server = local::RestServer::Start(std::move(options), store_);
    ASSERT_TRUE(server) << server.error();
    server_ = std::move(*server);
    port_ = server_->port();
  }
  void StopApiServer() {
    if (server_ != nullptr) server_->Stop();
    server_.reset();
  }

  // The token is in a file of its own, as that of a pod is.
  fs::path Kubeconfig() {
    WriteToken(token_);
    const Json config = {
        {"apiVersion", "v1"},
        {"kind", "Config"},
        {"clusters",
         {{{"name", "c"},
           {"cluster",
            {{"server", "https://127.0.0.1:" + std::to_string(port_)},
             {"certificate-authority-data", kube::EncodeBase64(tls_.ca_pem)}}}}}},
        {"users", {{{"name", "u"}, {"user", {{"tokenFile", (dir_ / "token").string()}}}}}},
        {"contexts", {{{"name", "x"}, {"context", {{"cluster", "c"}, {"user", "u"}}}}}},
        {"current-context", "x"}};
    std::ofstream(dir_ / "kubeconfig") << config.dump();
    return dir_ / "kubeconfig";
  }
  void WriteToken(const std::string& token) { std::ofstream(dir_ / "token") << token; }

  std::unique_ptr<RunningOperator> Start(const std::string& name,
                                         std::vector<std::string> flags = {}) {
    flags.insert(flags.end(), {"--kubeconfig", Kubeconfig().string(), "--listen",
                               "unix:" + (dir_ / "op.sock").string()});
    return std::make_unique<RunningOperator>(RunningOperator::Options{
        .name = name,
        .dir = dir_,
        .flags = std::move(flags),
        .env = {{"POD_NAME", name}, {"POD_UID", "uid-" + name}, {"POD_NAMESPACE", "ops"}}});
  }
  // One whose credentials come from this script.
  std::unique_ptr<RunningOperator> StartWithPlugin(const std::string& name,
                                                   const std::string& script) {
    Json config = Json::parse(ReadFile(Kubeconfig()));
    std::ofstream(dir_ / (name + ".sh")) << "#!/bin/sh\n" << script;
    fs::permissions(dir_ / (name + ".sh"), fs::perms::owner_all);
    config["users"][0]["user"] = {{"exec",
                                   {{"apiVersion", "client.authentication.k8s.io/v1"},
                                    {"command", (dir_ / (name + ".sh")).string()}}}};
    std::ofstream(dir_ / (name + ".config")) << config.dump();
    return std::make_unique<RunningOperator>(
        RunningOperator::Options{.name = name,
                                 .dir = dir_,
                                 .flags = {"--kubeconfig", (dir_ / (name + ".config")).string(),
                                           "--listen", "unix:" + (dir_ / "op.sock").string()}});
  }
  // One of several replicas, with a pod object as on a cluster.
  std::unique_ptr<RunningOperator> StartReplica(const std::string& name) {
    EXPECT_TRUE(api_->Create(kube::Pods(), "ops",
                             {{"metadata", {{"name", name}}},
                              {"spec", {{"containers", {{{"name", "o"}, {"image", "x"}}}}}}}));
    return Start(name, {"--leader-elect", "--lease-duration-seconds=3",
                        "--renew-deadline-seconds=2", "--retry-period-seconds=1"});
  }

  void ApplyJob(const std::string& name, int replicas) {
    const auto created =
        api_->Create(kube::HorovodJobs(), "default", api::testing::JobObject(name, replicas));
    ASSERT_TRUE(created) << created.error().message;
  }
  void Scale(const std::string& name, int replicas) {
    const auto patched = api_->Patch(kube::HorovodJobs(), "default", name,
                                     {{"spec", {{"worker", {{"replicas", replicas}}}}}}, {});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  std::size_t PodsOf(const std::string& job) {
    const auto pods = api_->ListAll(kube::Pods(), "default",
                                    {.label_selector = "training.kubeflow.org/job-name=" + job});
    return pods ? pods->items.size() : 0;
  }
  std::string Holder() {
    const auto lease = api_->Get(kube::Leases(), "ops", kLease);
    return lease ? runtime::ReadLease(*lease).holder : "no lease";
  }
  bool IsMarked(const std::string& pod) {
    const auto got = api_->Get(kube::Pods(), "ops", pod);
    return got && (*got)["metadata"].value("labels", Json::object()).value(api::kLeaderLabel, "") ==
                      "true";
  }

  support::TempDir temporary_;
  const fs::path dir_ = temporary_.path();
  std::shared_ptr<local::Store> store_;
  std::unique_ptr<kube::KubeApi> api_;
  local::TlsMaterial tls_;
  std::string token_;
  int port_ = 0;
  std::unique_ptr<local::RestServer> server_;
};

// Prometheus refuses a whole scrape if one series is there twice.
std::vector<std::string> SeriesTwice(const std::string& metrics) {
  std::map<std::string, int> seen;
  std::istringstream text(metrics);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with('#')) ++seen[line.substr(0, line.rfind(' '))];
  }
  std::vector<std::string> twice;
  for (const auto& [series, count] : seen) {
    if (count > 1) twice.push_back(series);
  }
  return twice;
}

TEST_F(OperatorProcessE2e, WhenTheLeaderIsKilledTheOtherTakesOver) {
  auto a = StartReplica("op-a");
  ASSERT_TRUE(Until([&] { return a->Metric("ringmaster_operator_leader") == 1 && a->Ready(); }));
  auto b = StartReplica("op-b");
  ASSERT_TRUE(Until([&] { return b->Ready(); })) << "a standby is ready too";
  EXPECT_EQ(b->Metric("ringmaster_operator_leader"), 0);
  EXPECT_EQ(b->Metric("ringmaster_operator_queue_depth"), 0);
  EXPECT_EQ(Holder(), "op-a_uid-op-a");
  EXPECT_TRUE(Until([&] { return IsMarked("op-a"); }));
  EXPECT_FALSE(IsMarked("op-b"));
  ApplyJob("digits", 2);
  ASSERT_TRUE(Until([&] { return PodsOf("digits") == 2; }));
  EXPECT_TRUE(Until([&] { return a->Sum("ringmaster_operator_jobs{") == 1; }));

  EXPECT_THAT(SeriesTwice(a->Get("/metrics").body), testing::IsEmpty());

  a->Signal(SIGKILL);
  ASSERT_TRUE(Until([&] { return b->Metric("ringmaster_operator_leader") == 1; }));
  EXPECT_EQ(Holder(), "op-b_uid-op-b");
  EXPECT_TRUE(Until([&] { return IsMarked("op-b") && !IsMarked("op-a"); }))
      << "the dead leader's mark would send sidecars to nobody";
  Scale("digits", 3);
  EXPECT_TRUE(Until([&] { return PodsOf("digits") == 3; }));
  EXPECT_EQ(b->Metric("ringmaster_job_pods_wanted{namespace=\"default\",job_name=\"digits\"}"), 3);
}

TEST_F(OperatorProcessE2e, ALeaderThatIsAskedToStopHandsOverAtOnce) {
  auto a = StartReplica("op-a");
  ASSERT_TRUE(Until([&] { return IsMarked("op-a"); }));
  auto b = StartReplica("op-b");
  ASSERT_TRUE(Until([&] { return b->Ready(); }));
  const auto begin = std::chrono::steady_clock::now();
  a->Signal(SIGTERM);
  EXPECT_EQ(a->Exited(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
  EXPECT_NE(Holder(), "op-a_uid-op-a") << "released";
  EXPECT_FALSE(IsMarked("op-a"));
  EXPECT_THAT(a->Log(), HasSubstr("lease released"));
  EXPECT_TRUE(Until([&] { return IsMarked("op-b"); }));
  b->Signal(SIGTERM);
  EXPECT_EQ(b->Exited(), 0);
}

TEST_F(OperatorProcessE2e, ALeaderThatCannotRenewEndsBeforeAnotherMayLead) {
  auto a = StartReplica("op-a");
  ASSERT_TRUE(Until([&] { return a->Metric("ringmaster_operator_leader") == 1; }));
  StopApiServer();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(a->Exited(), 4);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(4));
  EXPECT_THAT(a->Log(), HasSubstr("lease lost"));
}

TEST_F(OperatorProcessE2e, AnApiServerThatRestartsIsNotRunOverAndNothingIsMissed) {
  auto op = Start("op");
  ApplyJob("digits", 1);
  ASSERT_TRUE(Until([&] { return PodsOf("digits") == 1 && op->Ready(); }));
  StopApiServer();
  ASSERT_TRUE(Until([&] {
    return op->Metric("ringmaster_operator_watch_failures_total{resource=\"pods\"}") >= 2;
  }));
  Scale("digits", 2);  // the store persists, as etcd does
  const double before = op->Sum("ringmaster_operator_api_request_seconds_count");
  EXPECT_FALSE(Until([&] { return !op->running(); }, seconds(2))) << "it waits";
  // Two watches that are retried with growing pauses, and no more calls.
  EXPECT_LT(op->Sum("ringmaster_operator_api_request_seconds_count") - before, 30);
  StartApiServer();
  EXPECT_TRUE(Until([&] { return PodsOf("digits") == 2; }));
  EXPECT_THAT(op->Log(), HasSubstr("list or watch failed resource=pods"));
  EXPECT_TRUE(Until([&] { return op->Log().find("go well again") != std::string::npos; }));
}

TEST_F(OperatorProcessE2e, AnExpiredTokenIsSaidAndANewOneIsTakenUp) {
  auto op = Start("op");
  ASSERT_TRUE(Until([&] { return op->Ready(); }));
  StopApiServer();
  token_ = "second";
  StartApiServer();
  ASSERT_TRUE(Until([&] { return op->Log().find("nauthorized") != std::string::npos; }));
  const double before = op->Sum("ringmaster_operator_api_request_seconds_count");
  EXPECT_FALSE(Until([&] { return !op->running(); }, seconds(2)));
  EXPECT_LT(op->Sum("ringmaster_operator_api_request_seconds_count") - before, 30)
      << "401 over and over";
  WriteToken("second");
  ApplyJob("digits", 1);
  EXPECT_TRUE(Until([&] { return PodsOf("digits") == 1; }));
}

TEST_F(OperatorProcessE2e, AnApiServerThatIsNotThereYetIsWaitedForAndNamed) {
  StopApiServer();
  auto op = Start("op");
  ASSERT_TRUE(Until([&] { return op->Get("/readyz").status == 503; }));
  EXPECT_TRUE(Until([&] {
    return op->Get("/readyz").body.find("can't be reached") != std::string::npos;
  })) << op->Get("/readyz").body;
  EXPECT_EQ(op->Get("/healthz").status, 200) << "a restart would not help";
  StartApiServer();
  EXPECT_TRUE(Until([&] { return op->Ready(); }));
}

TEST_F(OperatorProcessE2e, WhatItCantBeginWithIsSaidAndEndsItWithItsCode) {
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
    return (dir_ / name).string();
  };
  const std::string dir = dir_.string(), good = Kubeconfig().string();
  Json config = Json::parse(ReadFile(good));
  config["current-context"] = "elsewhere";
  const std::string no_context = write("no-context", config.dump());
  config["current-context"] = "x";
  config["clusters"][0]["cluster"]["certificate-authority-data"] = kube::EncodeBase64("junk");
  const std::string no_authority = write("no-authority", config.dump());
  const struct {
    std::vector<std::string> flags;
    int code;
    std::string says;
  } cases[] = {
      {{"--workers=0"}, 2, "operator: --workers: 0 is not allowed: an integer from 1 to 64\n"},
      {{"--config", dir}, 2, "--config " + dir + ": can't be read: Is a directory"},
      {{"--config", write("c", "wrokers: 3")}, 2, "/c: unknown key \"wrokers\": did you mean"},
      {{"--kubeconfig", dir + "/gone"}, 3, "kubeconfig " + dir + "/gone: there is no such file"},
      {{"--kubeconfig", dir}, 3, "kubeconfig " + dir + ": can't be read: Is a directory"},
      {{"--kubeconfig", write("empty", "")}, 3, "kubeconfig " + dir + "/empty: is empty"},
      {{"--kubeconfig", write("k", "a: [")}, 3, "kubeconfig " + dir + "/k: line 1"},
      {{"--kubeconfig", no_context}, 3, "has no context \\\"elsewhere\\\"; it has \\\"x\\\""},
      {{"--kubeconfig", no_authority}, 3, "is not a PEM certificate"},
      {{"--kubeconfig", good, "--listen", "192.0.2.1:1"}, 1, "192.0.2.1:1"},
  };
  int n = 0;
  for (const auto& c : cases) {
    RunningOperator op({.name = "op" + std::to_string(++n), .dir = dir_, .flags = c.flags});
    EXPECT_EQ(op.Exited(), c.code) << c.says;
    EXPECT_THAT(op.Log(), HasSubstr(c.says));
  }
}

TEST_F(OperatorProcessE2e, ACredentialPluginThatFailsIsSaidAndOneThatHangsKeepsNobody) {
  const struct {
    std::string name, script, says;
  } cases[] = {
      {"fails", "echo please log in >&2; exit 3", "fails.sh failed with status 3: please log in"},
      {"babbles", "echo hello", "babbles.sh printed no ExecCredential with a status"},
  };
  for (const auto& c : cases) {
    auto op = StartWithPlugin(c.name, c.script);
    EXPECT_TRUE(Until([&] { return op->Get("/readyz").body.find(c.says) != std::string::npos; }))
        << op->Get("/readyz").body;
    EXPECT_THAT(op->Get("/readyz").body, HasSubstr("no credentials: "));
    op->Signal(SIGTERM);
    EXPECT_EQ(op->Exited(), 0);
  }
  auto op =
      StartWithPlugin("hangs", "echo $$ > " + (dir_ / "pid").string() + "\nexec sleep 1000\n");
  std::string plugin;
  ASSERT_TRUE(Until([&] { return bool(std::ifstream(dir_ / "pid") >> plugin); }));
  op->Signal(SIGTERM);
  EXPECT_EQ(op->Exited(), 0);
  EXPECT_THAT(op->Log(), HasSubstr("calls to the API server abandoned"));
  EXPECT_TRUE(Until([&] { return HasEnded(plugin); })) << "it is left behind";
}

TEST_F(OperatorProcessE2e, AnApiServerThatNeverComesEndsIt) {
  StopApiServer();
  auto op = Start("op", {"--api-server-timeout-seconds=1"});
  EXPECT_EQ(op->Exited(), 1);
  EXPECT_THAT(op->Log(), HasSubstr("--api-server-timeout-seconds"));
}

TEST_F(OperatorProcessE2e, ItStopsInTimeWithoutAnApiServerAndASecondSignalEndsItAtOnce) {
  auto a = Start("op-a");
  ASSERT_TRUE(Until([&] { return a->Ready(); }));
  StopApiServer();
  const auto begin = std::chrono::steady_clock::now();
  a->Signal(SIGTERM);
  EXPECT_EQ(a->Exited(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));

  // It waits for its plugin for seconds, so its first signal alone would end it late, and with 0.
  auto b = StartWithPlugin("op-b", "echo $$ > " + (dir_ / "pid").string() + "\nexec sleep 1000\n");
  std::string plugin;
  ASSERT_TRUE(Until([&] { return bool(std::ifstream(dir_ / "pid") >> plugin); }));
  b->Signal(SIGSTOP);
  b->Signal(SIGTERM);
  b->Signal(SIGINT);
  b->Signal(SIGCONT);
  EXPECT_EQ(b->Exited(), 5) << b->Log();
  EXPECT_TRUE(Until([&] { return HasEnded(plugin); })) << "it is left behind";
}

TEST_F(OperatorProcessE2e, LogsAreJsonWhereThatIsAskedFor) {
  auto op = Start("op", {"--log-format=json"});
  ASSERT_TRUE(Until([&] { return op->Ready(); }));
  op->Signal(SIGTERM);
  EXPECT_EQ(op->Exited(), 0);
  std::istringstream log(op->Log());
  int lines = 0;
  for (std::string line; std::getline(log, line); ++lines) {
    const Json json = Json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    EXPECT_TRUE(json.contains("msg") && json.contains("level") && json.contains("ts")) << line;
  }
  EXPECT_GE(lines, 3);
}

}  // namespace
}  // namespace ringmaster::app
