#include "operator/app/operator_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "operator/api/labels.h"
#include "operator/kube/resources.h"
#include "operator/planner/planner.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::Not;

runtime::ObjectPtr Job(const std::string& name, const std::string& state) {
  return std::make_shared<const Json>(
      Json{{"apiVersion", api::kApiVersion},
           {"kind", api::kKind},
           {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}}},
           {"spec",
            {{"elasticPolicy", {{"minReplicas", 2}, {"maxReplicas", 8}}},
             {"worker",
              {{"replicas", 4},
               {"template",
                {{"spec",
                  {{"containers",
                    {{{"name", "worker"}, {"image", "x"}, {"command", {"train"}}}}}}}}}}}}},
           {"status",
            {{"state", state},
             {"epoch", 1099511627783},
             {"worldSize", 3},
             {"stepsLost", 5},
             {"restartsFromCheckpoint", 2},
             {"workerRestarts", 6},
             {"podsReplaced", 7},
             {"faults", 8},
             {"lastRebuild",
              {{"epoch", 1099511627783},
               {"reason", "PodLost"},
               {"seconds", 0.25},
               {"stepsLost", 0}}}}}});
}

runtime::ObjectPtr Pod(const std::string& name, const std::string& job, const std::string& phase,
                       bool deleting = false) {
  Json pod = {{"metadata",
               {{"name", name}, {"namespace", "default"}, {"labels", {{api::kJobNameLabel, job}}}}},
              {"status", {{"phase", phase}}}};
  if (deleting) pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  return std::make_shared<const Json>(std::move(pod));
}

class OperatorMetricsTest : public testing::Test {
 protected:
  // Every kind of value.
  OperatorMetricsTest() {
    sample_.leading = true;
    sample_.sidecars = 3;
    sample_.jobs = {Job("digits", "Running"), Job("other", "Held")};
    sample_.pods = {Pod("digits-worker-0", "digits", "Running"),
                    Pod("digits-worker-1", "digits", "Running", true),
                    Pod("digits-worker-2", "digits", "Failed", true),
                    Pod("digits-worker-3", "digits", "Succeeded", true),
                    Pod("stray", "gone", "Running")};
    Json young = *Pod("digits-worker-4", "digits", ""), odd = young;
    young.erase("status");
    odd["metadata"]["labels"][api::kJobNameLabel] = 1;
    for (const Json& pod : {young, odd}) sample_.pods.push_back(std::make_shared<const Json>(pod));
    sample_.controller.caches = {{.resource = "pods", .synced = true, .failures = 2},
                                 {.resource = "nodes", .synced = false}};
    sample_.controller.queue = {
        .depth = 2, .adds = 10, .retries = 1, .longest_running = std::chrono::milliseconds(1500)};
    auto* counted = metrics_.controllers();
    counted->Reconciled(true, 0.01, 0.002);
    counted->Reconciled(false, 0.5, 0.003);
    counted->Resized("default", "digits", 4, 3);
    counted->Resized("default", "digits", 3, 4);
    counted->Resized("default", "digits", 0, 4);
    counted->RecordConflict();
    metrics_.ObserveCall({.verb = "update",
                          .resource = kube::HorovodJobs(),
                          .subresource = "status",
                          .code = 409,
                          .seconds = std::chrono::milliseconds(3),
                          .throttled = std::chrono::milliseconds(250)});
  }

  OperatorMetrics metrics_{"1.2.3"};
  OperatorSample sample_;
};

TEST_F(OperatorMetricsTest, EverySeriesHasItsValue) {
  const std::string text = metrics_.Text(sample_);
  for (const char* line : {
           "ringmaster_operator_build_info{version=\"1.2.3\"} 1\n",
           "ringmaster_operator_leader 1\n",
           "ringmaster_operator_sidecars 3\n",
           "ringmaster_operator_jobs{state=\"Held\"} 1\n",
           "ringmaster_operator_jobs{state=\"Running\"} 1\n",
           "ringmaster_operator_cache_synced{resource=\"pods\"} 1\n",
           "ringmaster_operator_cache_synced{resource=\"nodes\"} 0\n",
           "ringmaster_operator_watch_failures_total{resource=\"nodes\"} 0\n",
           "ringmaster_operator_watch_failures_total{resource=\"pods\"} 2\n",
           "ringmaster_operator_queue_depth 2\n",
           "ringmaster_operator_queue_adds_total 10\n",
           "ringmaster_operator_queue_retries_total 1\n",
           "ringmaster_operator_queue_longest_running_seconds 1.5\n",
           "ringmaster_operator_record_conflicts_total 1\n",
           "ringmaster_operator_reconcile_seconds_count{result=\"retry\"} 1\n",
           "ringmaster_operator_api_throttled_seconds_total 0.25\n",
           "ringmaster_job_state{namespace=\"default\",job_name=\"digits\",state=\"Running\"} 1\n",
           "ringmaster_job_epoch{namespace=\"default\",job_name=\"digits\"} 1099511627783\n",
           "ringmaster_job_world_size{namespace=\"default\",job_name=\"digits\"} 3\n",
           "ringmaster_job_steps_lost_total{namespace=\"default\",job_name=\"digits\"} 5\n",
           "ringmaster_job_restarts_from_checkpoint_total{namespace=\"default\",job_name="
           "\"digits\"} 2\n",
           "ringmaster_job_worker_restarts_total{namespace=\"default\",job_name=\"digits\"} 6\n",
           "ringmaster_job_pods_replaced_total{namespace=\"default\",job_name=\"digits\"} 7\n",
           "ringmaster_job_faults_total{namespace=\"default\",job_name=\"digits\"} 8\n",
           "ringmaster_job_last_rebuild_seconds{namespace=\"default\",job_name=\"digits\"} 0.25\n",
           "ringmaster_job_pods_wanted{namespace=\"default\",job_name=\"digits\"} 4\n",
           "ringmaster_job_min_pods{namespace=\"default\",job_name=\"digits\"} 2\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  const auto pods = [&](const std::string& phase, int count) {
    return "ringmaster_job_pods{namespace=\"default\",job_name=\"digits\",phase=\"" + phase +
           "\"} " + std::to_string(count) + "\n";
  };
  EXPECT_THAT(text, HasSubstr(pods("Running", 1)));
  EXPECT_THAT(text, HasSubstr(pods("Terminating", 1)));
  EXPECT_THAT(text, HasSubstr(pods("Failed", 1))) << "ended, whether deleted or not";
  EXPECT_THAT(text, HasSubstr(pods("Succeeded", 1))) << "ended, whether deleted or not";
  EXPECT_THAT(text, HasSubstr(pods("Pending", 1))) << "so young that it has no status";
  for (const char* phase : {"Pending", "Running", "Succeeded", "Failed", "Terminating"}) {
    EXPECT_THAT(text, HasSubstr("job_name=\"other\",phase=\"" + std::string(phase) + "\"} 0\n"));
  }
  EXPECT_THAT(text, testing::ContainsRegex("ringmaster_operator_start_time_seconds [1-9]"));
  EXPECT_THAT(text, Not(HasSubstr("\"gone\""))) << "a pod of no job that there is";
  for (const char* direction : {"up", "down"}) {
    EXPECT_THAT(text, testing::ContainsRegex("ringmaster_job_resizes_total\\{.*direction=\"" +
                                             std::string(direction) + "\".*\\} 1"));
  }
}

TEST_F(OperatorMetricsTest, CallsAreCountedByVerbResourceAndCodeWithTheirDuration) {
  const kube::CallReport get{.verb = "get", .resource = kube::Pods(), .code = 200};
  metrics_.ObserveCall(get);
  metrics_.ObserveCall(get);
  const std::string text = metrics_.Text(sample_), name = "ringmaster_operator_api_request_seconds";
  const std::string update = "{code=\"409\",resource=\"horovodjobs/status\",verb=\"update\"";
  EXPECT_THAT(text, HasSubstr(name + "_count{code=\"200\",resource=\"pods\",verb=\"get\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(name + "_count" + update + "} 1\n"));
  EXPECT_THAT(text, HasSubstr(name + "_sum" + update + "} 0.003\n"));
  EXPECT_THAT(text, HasSubstr(name + "_bucket" + update + ",le=\"0.0025\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(name + "_bucket" + update + ",le=\"0.005\"} 1\n"));
}

TEST_F(OperatorMetricsTest, RecoveriesOfEveryCauseAreThereBeforeTheFirstOneSoThatItHasARate) {
  const std::string text = OperatorMetrics("1").Text({});
  for (const std::string cause :
       {"Bootstrap", "WorkerLost", "PodLost", "PodDrained", "WorkerJoined", "PodJoined", "Rejoin",
        "QuorumRecovered", "LinkBroken"}) {
    for (const std::string phase :
         {"detect", "decide", "stop", "connect", "redo", "resume", "total"}) {
      EXPECT_THAT(text, HasSubstr("ringmaster_operator_recovery_seconds_count{cause=\"" + cause +
                                  "\",phase=\"" + phase + "\"} 0\n"));
    }
  }
}

TEST_F(OperatorMetricsTest, AJobWithoutAStatusIsNewAndHasNoRebuild) {
  Json job = *Job("digits", "");
  job.erase("status");
  sample_.jobs = {std::make_shared<const Json>(job)};
  const std::string text = metrics_.Text(sample_);
  EXPECT_THAT(text, HasSubstr("job_name=\"digits\",state=\"New\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("ringmaster_operator_jobs{state=\"New\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("ringmaster_job_last_rebuild_seconds")));
}

TEST_F(OperatorMetricsTest, OfAJobThatAnotherControllerManagesNothingIsTold) {
  Json theirs = *Job("theirs", "");
  theirs["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  sample_.jobs = {std::make_shared<const Json>(theirs)};
  EXPECT_THAT(metrics_.Text(sample_), Not(HasSubstr("theirs")));
}

TEST_F(OperatorMetricsTest, AFieldOfALaterCrdHidesNothing) {
  Json job = *Job("digits", "Running");
  job["spec"]["moreOfIt"] = "Default";
  sample_.jobs = {std::make_shared<const Json>(job)};
  EXPECT_THAT(metrics_.Text(sample_), HasSubstr("ringmaster_job_pods_wanted"));
}

TEST_F(OperatorMetricsTest, AReplicaThatDoesNotLeadHasTheProcessSeriesOnly) {
  const std::string text = OperatorMetrics("1").Text({});
  EXPECT_THAT(text, HasSubstr("ringmaster_operator_leader 0\n"));
  EXPECT_THAT(text, HasSubstr("ringmaster_operator_queue_depth 0\n"));
  for (const char* absent :
       {"ringmaster_job_", "ringmaster_operator_jobs", "api_request_seconds"}) {
    EXPECT_THAT(text, Not(HasSubstr(absent)));
  }
}

TEST_F(OperatorMetricsTest, SeriesOfADeletedJobDisappear) {
  ASSERT_THAT(metrics_.Text(sample_), HasSubstr("job_name=\"digits\""));
  sample_.jobs.erase(sample_.jobs.begin());
  metrics_.controllers()->Forget("default", "digits");
  const std::string text = metrics_.Text(sample_);
  EXPECT_THAT(text, Not(HasSubstr("digits")));
  EXPECT_THAT(text, HasSubstr("job_name=\"other\""));
}

TEST_F(OperatorMetricsTest, AJobThatMakesNoSenseStillHasItsState) {
  Json broken = *Job("broken", "Invalid");
  broken["spec"] = "nonsense";
  sample_.jobs = {std::make_shared<const Json>(broken), Job("good", "Running")};
  EXPECT_THAT(metrics_.Text(sample_), HasSubstr("job_name=\"broken\",state=\"Invalid\"} 1"));
  EXPECT_THAT(metrics_.Text(sample_),
              HasSubstr("pods_wanted{namespace=\"default\",job_name=\"good\"} 4"));
}

// The table of docs/metrics.md and the code must agree: each has exactly the names of the other.
TEST_F(OperatorMetricsTest, TheDocumentationNamesExactlyWhatIsServed) {
  std::ifstream file(RM_METRICS_DOC);
  std::set<std::string> documented;
  for (std::string line; std::getline(file, line);) {
    for (const char* prefix : {"| `ringmaster_operator_", "| `ringmaster_job_"}) {
      if (line.rfind(prefix, 0) == 0)
        documented.insert(line.substr(3, line.find_first_of("{`", 3) - 3));
    }
  }
  std::set<std::string> served;
  std::istringstream text(metrics_.Text(sample_));
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("# TYPE ", 0) == 0) served.insert(line.substr(7, line.find(' ', 7) - 7));
  }
  EXPECT_EQ(documented, served);
}

// The report of Prometheus' own tool about a text; empty if there is none.
std::string Promtool(const std::string& text) {
  const std::string file = testing::TempDir() + "rm-metrics-" + std::to_string(getpid());
  std::ofstream(file) << text;
  FILE* pipe = popen(("promtool check metrics < " + file + " 2>&1").c_str(), "r");
  std::string said;
  char buffer[256];
  while (pipe != nullptr && std::fgets(buffer, sizeof(buffer), pipe) != nullptr) said += buffer;
  const int status = pipe == nullptr ? -1 : pclose(pipe);
  std::remove(file.c_str());
  return status == 0 ? said : said + "promtool ended with status " + std::to_string(status);
}

TEST_F(OperatorMetricsTest, PromtoolFindsNothingToSay) {
  if (std::system("command -v promtool >/dev/null") != 0) {
    const std::string why =
        "promtool is not installed (Debian package prometheus): the format of the metrics was NOT "
        "checked";
    const char* required = std::getenv("REQUIRE_FRAMEWORKS");
    if (required != nullptr && std::string(required) == "1") FAIL() << why;
    GTEST_SKIP() << why;
  }
  EXPECT_EQ(Promtool(metrics_.Text(sample_)), "");
  EXPECT_NE(Promtool("# TYPE x counter\nx 1\n"), "") << "else it would find nothing ever";
  health::Metrics sidecar("default", "digits", "digits-worker-0");
  sidecar.SetEpoch(1099511627783);
  sidecar.SetWorldSize(4);
  sidecar.SetStep(120);
  sidecar.SetCoordinator(true);
  sidecar.SetHeartbeatsMissed(1);
  sidecar.SetValue("loss", 0.25);
  sidecar.ObserveRebuild("connect", "WorkerLost", 0.004);
  sidecar.CountRebuild("WorkerLost");
  sidecar.CountWorkerRestart();
  sidecar.CountWorkerExit(137);
  EXPECT_EQ(Promtool(sidecar.Text()), "") << sidecar.Text();
}

}  // namespace
}  // namespace ringmaster::app
