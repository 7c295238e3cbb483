// Two replicas of the operator beside a local cluster with real sidecars and workers: a job
// continues while its operator is killed, and the metrics show it.
#include <gmock/gmock.h>
#include <httplib.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "operator/api/testing/job_object.h"
#include "operator/app/testing/cluster_e2e.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using support::Until;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr char kJob[] = "{namespace=\"default\",job_name=\"digits\"}";

class OperatorClusterE2e : public ClusterE2e {
 protected:
  void SetUp() override {
    fs::create_directory(out_);
    StartCluster({.bin_dir = RM_BIN_DIR, .review = Review});
  }

  // Knows the tokens "viewer" and "tenant"; the viewer may see the page, and the logs of one
  // namespace.
  static Json Review(const std::string& kind, const Json& spec) {
    const auto text = [&](const char* path) { return spec.value(Json::json_pointer(path), ""); };
    if (kind == "TokenReview") {
      const std::string token = text("/token");
      return {{"authenticated", token == "viewer" || token == "tenant"},
              {"user", {{"username", token}}}};
    }
    return {{"allowed",
             text("/user") == "viewer" && (text("/nonResourceAttributes/path") == "/page" ||
                                           text("/resourceAttributes/namespace") == "default")}};
  }

  // All replicas have the same socket but only the leader listens, which replaces a cluster's
  // Service.
  std::unique_ptr<RunningOperator> Start(const std::string& name,
                                         const std::string& page_listen = "") {
    return std::make_unique<RunningOperator>(RunningOperator::Options{
        .name = name,
        .dir = dir_,
        .flags = OperatorFlags({"--leader-elect", "--lease-duration-seconds=3",
                                "--renew-deadline-seconds=2", "--retry-period-seconds=1",
                                "--page-listen=" + page_listen})});
  }
  void ApplyJob(int replicas) {
    Apply(api::testing::JobObject("digits", replicas, 1,
                                  {WORKER_BINARY, out_.string(), "--sleep-ms", "20"}));
  }
  void Patch(const Json& spec) {
    const auto patched =
        api_->Patch(kube::HorovodJobs(), "default", "digits", {{"spec", spec}}, {});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  std::vector<pid_t> Workers() const {
    std::vector<pid_t> pids;
    for (const auto& entry : fs::directory_iterator(out_)) {
      const pid_t pid = std::atoi(entry.path().stem().c_str());
      if (pid > 0 && entry.path().extension() == ".log" && kill(pid, 0) == 0) pids.push_back(pid);
    }
    return pids;
  }
  bool StepsGoOn(int more) { return ClusterE2e::StepsGoOn(out_, more); }

  const fs::path out_ = dir_ / "out";
};

TEST_F(OperatorClusterE2e, AJobTrainsOnWhileItsOperatorDiesAndAnotherTakesOver) {
  auto a = Start("op-a");
  ASSERT_TRUE(Until([&] { return a->Metric("ringmaster_operator_leader") == 1; }));
  auto b = Start("op-b");
  ASSERT_TRUE(Until([&] { return b->Ready(); }));
  ApplyJob(3);
  const std::string world = std::string("ringmaster_job_world_size") + kJob;
  ASSERT_TRUE(Until([&] { return a->Metric(world) == 3; }));
  ASSERT_TRUE(StepsGoOn(20));
  EXPECT_TRUE(Until([&] { return a->Metric("ringmaster_operator_sidecars") == 3; }));

  a->Signal(SIGKILL);
  EXPECT_TRUE(StepsGoOn(20)) << "training needs no operator";
  ASSERT_TRUE(Until([&] { return b->Metric("ringmaster_operator_sidecars") == 3; }))
      << "they are connected to the new leader";
  EXPECT_EQ(b->Metric(world), 3);
  EXPECT_EQ(b->Sum("ringmaster_operator_recovery_seconds_count"), 0)
      << "no view changed, and older ones are not its own";
  Patch({{"worker", {{"replicas", 4}}}});
  EXPECT_TRUE(Until([&] { return b->Metric(world) == 4; }));
  EXPECT_TRUE(StepsGoOn(10));
  EXPECT_EQ(b->Sum("ringmaster_job_resizes_total", {"direction=\"up\""}), 1);
}

TEST_F(OperatorClusterE2e, MetricsTellOfARecoveryAndForgetADeletedJob) {
  auto op = Start("op");
  ApplyJob(3);
  const std::string world = std::string("ringmaster_job_world_size") + kJob;
  ASSERT_TRUE(Until([&] { return op->Metric(world) == 3; }));
  ASSERT_TRUE(StepsGoOn(10));
  const auto workers = Workers();
  ASSERT_EQ(workers.size(), 3u);
  kill(workers[1], SIGKILL);
  const std::string count = "ringmaster_operator_recovery_seconds_count";
  EXPECT_TRUE(Until([&] {
    return op->Sum(count, {"cause=\"WorkerLost\"", "phase=\"total\""}) == 1 &&
           op->Sum(count, {"cause=\"WorkerJoined\"", "phase=\"total\""}) == 1;
  }));
  EXPECT_GT(op->Sum("ringmaster_operator_recovery_seconds_sum",
                    {"cause=\"WorkerLost\"", "phase=\"total\""}),
            0);
  EXPECT_EQ(op->Metric(std::string("ringmaster_job_worker_restarts_total") + kJob), 1);
  const double down = op->Sum("ringmaster_job_resizes_total", {"direction=\"down\""});
  Patch({{"worker", {{"replicas", 2}}}});
  ASSERT_TRUE(Until([&] { return op->Metric(world) == 2; }));
  // The size is known once the status is written, and the change is counted after that.
  EXPECT_TRUE(Until(
      [&] { return op->Sum("ringmaster_job_resizes_total", {"direction=\"down\""}) == down + 1; }));
  EXPECT_GT(op->Sum("ringmaster_operator_reconcile_seconds_count", {"result=\"ok\""}), 5);
  EXPECT_GT(op->Sum("ringmaster_operator_api_request_seconds_count", {"verb=\"create\""}), 3);
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), "default", "digits", {}));
  EXPECT_TRUE(Until(
      [&] { return op->Get("/metrics").body.find("job_name=\"digits\"") == std::string::npos; }));
}

int PagePort(const RunningOperator& op) {
  const std::string mark = "flag=--page-listen port=";
  int port = 0;
  EXPECT_TRUE(Until([&] {
    const std::string log = op.Log();
    const auto at = log.find(mark);
    if (at == std::string::npos || log.find('\n', at) == std::string::npos) return false;
    port = std::atoi(log.c_str() + at + mark.size());
    return true;
  })) << op.Log();
  return port;
}

TEST_F(OperatorClusterE2e, ThePageIsForThoseWhoMayAndShowsTheJobAsItTrains) {
  auto op = Start("op", "127.0.0.1:0");
  ApplyJob(2);
  ASSERT_TRUE(StepsGoOn(10));
  httplib::Client page("127.0.0.1", PagePort(*op));
  page.set_read_timeout(30);
  const auto bearer = [](const std::string& token) {
    return httplib::Headers{{"Authorization", "Bearer " + token}};
  };
  const std::string job = "/api/job?job=default%2Fdigits";
  for (const std::string& path : {std::string("/"), std::string("/api/jobs"), job,
                                  std::string("/api/stream?job=default%2Fdigits"),
                                  std::string("/api/log?namespace=default&pod=digits-worker-0")}) {
    EXPECT_EQ(page.Get(path)->status, 401) << path;
    EXPECT_THAT(page.Get(path)->body, Not(HasSubstr("digits")));
    EXPECT_EQ(page.Get(path, bearer("made-up"))->status, 401) << path;
    EXPECT_EQ(page.Get(path, bearer("tenant"))->status, 403) << path;
  }
  EXPECT_THAT(page.Get("/", bearer("viewer"))->body, HasSubstr("id=\"heat\""));
  Json seen;
  ASSERT_TRUE(Until([&] {
    const auto answer = page.Get(job, bearer("viewer"));
    if (answer->status != 200) return false;  // it was not observed yet
    seen = Json::parse(answer->body);
    return seen.contains("samples") && !seen["samples"].empty() &&
           seen["samples"].back()["workers"] == 2 && seen["job"]["state"] == "Running";
  })) << seen.dump();
  EXPECT_EQ(seen["job"]["ranks"].size(), 2u);
  const Json jobs = Json::parse(page.Get("/api/jobs", bearer("viewer"))->body);
  EXPECT_EQ(jobs["jobs"][0]["workers"], 2) << jobs;

  std::string events;
  (void)page.Get("/api/stream?job=default%2Fdigits", bearer("viewer"),
                 [&](const char* data, std::size_t bytes) {
                   events.append(data, bytes);
                   return events.find("\n\ndata: ") == std::string::npos;
                 });
  EXPECT_THAT(events, testing::StartsWith("data: {"));
  const auto log = [&](const std::string& ns) {
    return page.Get("/api/log?lines=5&pod=digits-worker-0&namespace=" + ns, bearer("viewer"));
  };
  EXPECT_EQ(log("default")->status, 200);
  EXPECT_THAT(log("default")->body, Not(HasSubstr("can't be read")));
  EXPECT_EQ(log("elsewhere")->status, 403);
}

TEST_F(OperatorClusterE2e, ThePageIsServedOverTlsWhereItIsNotOnLoopback) {
  auto op = Start("op", "0.0.0.0:0");
  const int port = PagePort(*op);
  EXPECT_FALSE(httplib::Client("127.0.0.1", port).Get("/", {{"Authorization", "Bearer viewer"}}));
  httplib::SSLClient page("127.0.0.1", port);
  page.enable_server_certificate_verification(false);
  EXPECT_THAT(page.Get("/")->body, HasSubstr("/login.js"));
  const auto login = page.Get("/login", {{"Authorization", "Bearer viewer"}});
  ASSERT_EQ(login->status, 200);
  const std::string cookie = login->get_header_value("Set-Cookie");
  EXPECT_THAT(cookie, HasSubstr("; Secure"));
  const httplib::Headers session = {{"Cookie", cookie.substr(0, cookie.find(';'))}};
  EXPECT_EQ(page.Get("/api/jobs", session)->status, 200);
}

}  // namespace
}  // namespace ringmaster::app
