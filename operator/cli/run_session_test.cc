#include "operator/cli/run_session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/sync/pause.h"
#include "operator/api/labels.h"
#include "operator/cli/pod_log.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::cli {
namespace {

using kube::Json;
using testing::Contains;
using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{20};
constexpr uint64_t kFirst = (uint64_t{1} << 40) + 1;

// Keeps the lines, and calls back for each, so that a test can react to output.
class RecordingDisplay : public Display {
 public:
  void Line(const std::string& text) override { Record(text); }
  void Progress(const std::string&, const ProgressNews& news, TimePoint) override {
    Record(news.text);
  }
  void Finish() override {}
  int width() const override { return 80; }

  void On(std::string text, std::function<void()> act) {
    waits_.emplace_back(std::move(text), std::move(act));
  }
  std::vector<std::string> lines;

 private:
  void Record(const std::string& text) {
    lines.push_back(text);
    if (waits_.empty() || text.find(waits_.front().first) == std::string::npos) return;
    auto act = waits_.front().second;
    waits_.erase(waits_.begin());
    act();
  }
  std::vector<std::pair<std::string, std::function<void()>>> waits_;
};

// A sidecar that answers GET /status.
class FakeSidecar {
 public:
  FakeSidecar() {
    server_.Get("/status", [this](const httplib::Request& request, httplib::Response& response) {
      if (request.get_header_value("Ringmaster-Token") != "token") {
        response.status = 401;
        return;
      }
      std::lock_guard lock(mu_);
      response.set_content(status_.dump(), "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();  // stop() has no effect before that
  }
  ~FakeSidecar() {
    server_.stop();
    thread_.join();
  }
  // `first`: index of the pod with rank 0.
  void ReportView(uint64_t epoch, const char* reason, int ranks, int first = 0) {
    Json pods = Json::array(), workers = Json::array();
    for (int i = 0; i < ranks; ++i) {
      pods.push_back({{"name", "digits-worker-" + std::to_string(first + i)}});
      workers.push_back({{"pod", i}, {"slot", 0}, {"incarnation", 1}});
    }
    std::lock_guard lock(mu_);
    status_ = {{"job", {{"name", "digits"}}},
               {"pod", {{"name", "digits-worker-0"}}},
               {"coordinator", true},
               {"state", "Training"},
               {"epoch", epoch},
               {"view", {{"reason", reason}, {"pods", pods}, {"ranks", workers}}},
               {"progress", {{"step", 12}, {"values", {{"loss", 0.5}}}}}};
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  httplib::Server server_;
  std::mutex mu_;
  Json status_;
  int port_ = 0;
  std::thread thread_;
};

Json Job() {
  return {{"apiVersion", "ringmaster.dev/v1alpha1"},
          {"kind", "HorovodJob"},
          {"metadata", {{"name", "digits"}, {"namespace", "default"}}},
          {"spec", {{"worker", {{"replicas", 2}}}}}};
}

// Each pod's log is what a test has printed so far, and stays open until the test ends it.
class ApiWithPrints : public local::InMemoryApi {
 public:
  ApiWithPrints() : InMemoryApi(std::make_shared<local::Store>(local::StoreOptions{})) {}

  void Print(const std::string& pod, const std::string& line) {
    const std::lock_guard lock(mu_);
    logs_[pod] += line + "\n";
    changed_.notify_all();
  }
  // Called for each log, before the first.
  using Log = std::function<void(const std::string& pod,
                                 const std::function<bool(std::string_view)>& on_text,
                                 const std::stop_token& stop)>;
  void Instead(Log log) { instead_ = std::move(log); }
  void EndLogs() {
    const std::lock_guard lock(mu_);
    ended_ = true;
    changed_.notify_all();
  }

  kube::Result<void> PodLog(const std::string&, const std::string& pod, const std::string&,
                            bool follow, const std::function<bool(std::string_view)>& on_text,
                            std::stop_token stop) override {
    if (instead_) {
      instead_(pod, on_text, stop);
      return {};
    }
    std::unique_lock lock(mu_);
    for (size_t at = 0;;) {
      on_text(std::string_view(logs_[pod]).substr(at));
      at = logs_[pod].size();
      if (!follow) return {};
      changed_.wait(lock, stop, [&] { return ended_ || logs_[pod].size() > at; });
      if (stop.stop_requested() || (ended_ && logs_[pod].size() == at)) return {};
    }
  }

 private:
  std::mutex mu_;
  std::condition_variable_any changed_;
  std::map<std::string, std::string> logs_;
  bool ended_ = false;
  Log instead_;
};

// Waits until a number has stayed the same for a while, but not for ever.
int Steady(const std::atomic<int>& number) {
  int last = -1;
  for (int looks = 0, same = 0; looks < 1000 && same < 20; ++looks) {
    same = number == last ? same + 1 : 0;
    last = number;
    sync::Pause({}, std::chrono::milliseconds(10));
  }
  return last;
}

class RunSessionTest : public testing::Test {
 protected:
  RunSessionTest() { sidecar_.ReportView(kFirst, "Bootstrap", 2); }

  // Creates a running pod, as operator and kubelet would.
  void MakePod(int index = 0, const char* phase = "Running") {
    const std::string name = "digits-worker-" + std::to_string(index);
    Json pod = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata",
                 {{"name", name},
                  {"namespace", "default"},
                  {"labels",
                   {{"training.kubeflow.org/job-name", "digits"},
                    {"training.kubeflow.org/replica-index", std::to_string(index)}}},
                  {"annotations", {{"ringmaster.dev/http", sidecar_.address()}}}}},
                {"spec", {{"containers", {{{"name", "worker"}, {"image", "x"}}}}}}};
    auto made = api_->Create(kube::Pods(), "default", pod);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    const Json running = {{"status", {{"phase", phase}}}};
    auto runs = api_->Patch(kube::Pods(), "default", name, running, {.subresource = "status"});
    ASSERT_TRUE(runs.has_value()) << runs.error().message;
  }
  void EndJob(const char* type) {
    Json status = {
        {"status",
         {{"conditions",
           {{{"type", type}, {"status", "True"}, {"message", "the worker fell over"}}}}}}};
    auto done =
        api_->Patch(kube::HorovodJobs(), "default", "digits", status, {.subresource = "status"});
    ASSERT_TRUE(done.has_value()) << done.error().message;
    api_->EndLogs();
  }
  SessionEnd Run(SessionOptions options = {}) {
    options.poll_period = std::chrono::milliseconds(5);
    options.sidecar_token = "token";
    session_ = std::make_unique<RunSession>(api_, &display_, options);
    auto created = session_->Create({Job()});
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return session_->Follow();
  }

  std::shared_ptr<ApiWithPrints> api_ = std::make_shared<ApiWithPrints>();
  FakeSidecar sidecar_;
  RecordingDisplay display_;
  std::unique_ptr<RunSession> session_;
};

TEST_F(RunSessionTest, ShowsEachViewAndEndsWithTheJob) {
  display_.On("starting", [this] { MakePod(); });
  display_.On("view 1.1: 2 workers", [this] { sidecar_.ReportView(kFirst + 1, "PodLost", 1); });
  display_.On("1 worker  view 1.2", [this] { EndJob("Succeeded"); });
  EXPECT_EQ(Run({.timeout = kPatience}), SessionEnd::kSucceeded);
  EXPECT_THAT(display_.lines, Contains(HasSubstr("pod digits-worker-1 lost; 2 -> 1")));
  EXPECT_THAT(display_.lines, Contains(HasSubstr("step 12  loss 0.5")));
  Json summary = session_->Summary(SessionEnd::kSucceeded);
  EXPECT_EQ(summary["views"].size(), 2u);
  EXPECT_EQ(summary["steps"], 12);
}

TEST_F(RunSessionTest, NothingThatRankZeroPrintsIsLostWhenAnotherWorkerGetsIt) {
  display_.On("starting", [this] {
    MakePod(0);
    MakePod(1);
  });
  display_.On("view 1.1: 2 workers", [this] { api_->Print("digits-worker-0", "step 1"); });
  display_.On("[0] step 1", [this] {
    api_->Print("digits-worker-1", "step 2");  // before it is known that this pod has rank 0
    sidecar_.ReportView(kFirst + 1, "PodLost", 1, 1);
  });
  display_.On("[1] step 2", [this] { api_->Print("digits-worker-1", "step 3"); });
  display_.On("[1] step 3", [this] { EndJob("Succeeded"); });
  EXPECT_EQ(Run({.timeout = kPatience}), SessionEnd::kSucceeded);
  std::erase_if(display_.lines, [](const std::string& line) { return !line.starts_with("["); });
  EXPECT_THAT(display_.lines, testing::ElementsAre("[0] step 1", "[1] step 2", "[1] step 3"));
}

TEST_F(RunSessionTest, BeforeInitTheFirstPodIsShown) {
  sidecar_.ReportView(0, "", 0);
  api_->Print("digits-worker-0", "loads the data");
  display_.On("starting", [this] { MakePod(0); });
  display_.On("[0] loads the data", [this] { sidecar_.ReportView(kFirst, "Bootstrap", 1); });
  display_.On("view 1.1: 1 worker", [this] { EndJob("Succeeded"); });
  EXPECT_EQ(Run({.timeout = kPatience}), SessionEnd::kSucceeded);
  EXPECT_EQ(std::count(display_.lines.begin(), display_.lines.end(), "[0] loads the data"), 1);
}

// More than is kept waiting: whoever reads the log waits, and nothing is left out.
TEST_F(RunSessionTest, ATerminalThatIsSlowerThanTheWorkersShowsAllTheSame) {
  constexpr int kLines = 3000;
  sidecar_.ReportView(0, "", 0);
  for (int i = 0; i < kLines; ++i) {
    api_->Print("digits-worker-0", fmt::format("line {} {}", i, std::string(4000, 'x')));
  }
  api_->Print("digits-worker-0", "the last line");
  display_.On("starting", [this] { MakePod(0); });
  display_.On("line 0 ", [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); });
  display_.On("the last line", [this] { EndJob("Succeeded"); });
  EXPECT_EQ(Run({.timeout = kPatience}), SessionEnd::kSucceeded);
  EXPECT_EQ(std::count_if(display_.lines.begin(), display_.lines.end(),
                          [](const std::string& line) { return line.starts_with("[0] line "); }),
            kLines);
}

TEST_F(RunSessionTest, WhereNobodyReadsTheOutputWaitsInTheLogAndASignalEndsTheRun) {
  constexpr int kMany = 20'000, kBytes = 4000;
  std::atomic<int> passed_on = 0;
  api_->Instead([&](const std::string&, const auto& on_text, const std::stop_token& stop) {
    // A line that was under way comes after the end was asked for.
    for (bool last = false; passed_on < kMany && !last; ++passed_on) {
      last = stop.stop_requested();
      on_text(fmt::format("line {} {}\n", passed_on.load(), std::string(kBytes, 'x')));
    }
  });
  int waiting = 0;
  display_.On("starting", [this] { MakePod(0); });
  display_.On("[0] line 0 ", [&] {
    waiting = Steady(passed_on);
    session_->Interrupt(2);
  });
  EXPECT_EQ(Run({.timeout = kPatience, .output = SessionOptions::Output::kAll}),
            SessionEnd::kInterrupted);
  EXPECT_GT(waiting, 1000);
  EXPECT_LT(waiting * kBytes, 9 << 20);
  EXPECT_THAT(display_.lines, Contains(HasSubstr("lines of output were not taken in time")));
}

// The run counts as interrupted, so its logs stay.
TEST_F(RunSessionTest, ASignalEndsTheWaitForTheLastOutputOfAJobThatHasEnded) {
  sidecar_.ReportView(0, "", 0);
  api_->Instead([&](const std::string& pod, const auto& on_text, const std::stop_token& stop) {
    // The first pod, which was never seen running, is read when the job is over.
    if (pod == "digits-worker-1") return EndJob("Succeeded");
    on_text("the rest\n");
    while (!stop.stop_requested()) sync::Pause(stop, std::chrono::milliseconds(100));
  });
  display_.On("starting", [this] {
    MakePod(0, "Pending");
    MakePod(1);
  });
  display_.On("the rest", [this] { session_->Interrupt(2); });
  EXPECT_EQ(
      Run({.timeout = kPatience, .other_machines = true, .output = SessionOptions::Output::kAll}),
      SessionEnd::kInterrupted);
  EXPECT_EQ(session_->Summary(SessionEnd::kInterrupted)["exitReason"], "Succeeded");
}

TEST_F(RunSessionTest, FailedJobSaysWhy) {
  display_.On("starting", [this] { EndJob("Failed"); });
  EXPECT_EQ(Run({.timeout = kPatience}), SessionEnd::kFailed);
  EXPECT_THAT(session_->FailureLines(), Contains(HasSubstr("the worker fell over")));
  EXPECT_EQ(session_->Summary(SessionEnd::kFailed)["exitReason"], "Failed");
}

// When a job fails because of a worker that was to be restarted, its pod is deleted.
TEST_F(RunSessionTest, TheLogOfAPodThatIsGoneStillSaysWhichWorkerFailed) {
  const support::TempDir logs;
  std::filesystem::create_directories(logs.path() / "p1");
  std::ofstream(logs.path() / "p1/worker.log")
      << "ringmaster-launcher: worker exited slot=0 incarnation=1 exit_code=134\n";
  JobRun job("default", "digits");
  const Json labels = {{"training.kubeflow.org/job-name", "digits"},
                       {"training.kubeflow.org/replica-index", "1"}};
  const Json pod = {{"metadata", {{"name", "p1"}, {"namespace", "default"}, {"labels", labels}}}};
  job.OnPod(pod, false);
  job.OnJob({{"status",
              {{"conditions",
                {{{"type", "Failed"},
                  {"status", "True"},
                  {"message", "worker 0 of pod p1 was ended by signal 6"}}}}}}},
            false);
  job.OnPod(pod, true);
  EXPECT_THAT(FailureLinesOf(api_.get(), job, "why", false, logs.path()),
              testing::ElementsAre("digits failed: worker [1] ended with exit code 134",
                                   "  killed by SIGABRT (signal 6, aborted)", HasSubstr("why")));
}

TEST_F(RunSessionTest, PodsThatComeWithTheJobsEndDisturbNothing) {
  display_.On("starting", [this] {
    MakePod();
    EndJob("Succeeded");
  });
  EXPECT_EQ(Run({.timeout = kPatience}), SessionEnd::kSucceeded);
}

TEST_F(RunSessionTest, InterruptEndsItThoughTheJobGoesOn) {
  display_.On("starting", [this] { session_->Interrupt(2); });
  EXPECT_EQ(Run({.timeout = kPatience}), SessionEnd::kInterrupted);
  EXPECT_THAT(display_.lines, Contains(HasSubstr("ending the job; once more ends at once")));
  EXPECT_EQ(session_->Summary(SessionEnd::kInterrupted)["exitReason"], "Interrupted");
}

TEST_F(RunSessionTest, ItEndsWhenSomebodyHasRemovedItsDirectory) {
  int asked = 0;
  EXPECT_EQ(Run({.timeout = kPatience, .directory_is_there = [&] { return ++asked < 3; }}),
            SessionEnd::kDirectoryGone);
  EXPECT_EQ(session_->Summary(SessionEnd::kDirectoryGone)["exitReason"], "Failed");
}

TEST_F(RunSessionTest, TimeoutIsSaidAsSuch) {
  EXPECT_EQ(Run({.timeout = std::chrono::seconds(1)}), SessionEnd::kTimeout);
  EXPECT_THAT(session_->FailureLines(), Contains(HasSubstr("not done after 1 s (--timeout)")));
}

TEST_F(RunSessionTest, JobThatExistsAlreadyIsRefused) {
  ASSERT_TRUE(api_->Create(kube::HorovodJobs(), "default", Job()).has_value());
  session_ = std::make_unique<RunSession>(api_, &display_, SessionOptions{});
  auto created = session_->Create({Job()});
  ASSERT_FALSE(created.has_value());
  EXPECT_THAT(created.error().message, HasSubstr("digits"));
}

}  // namespace
}  // namespace ringmaster::cli
