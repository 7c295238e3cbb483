#include "operator/cli/logs_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::cli {
namespace {

using kube::Json;
using testing::HasSubstr;

// Every pod's log has four lines, by two workers if the job has two per pod.
class ApiWithLogs : public local::InMemoryApi {
 public:
  ApiWithLogs() : InMemoryApi(std::make_shared<local::Store>(local::StoreOptions{})) {}

  kube::Result<void> PodLog(const std::string&, const std::string& pod, const std::string&,
                            bool follow, const std::function<bool(std::string_view)>& on_text,
                            std::stop_token) override {
    if (no_content)
      return tl::unexpected(kube::Error{kube::ErrorCode::kInternal, 204, "", "HTTP status 204"});
    if (!more.empty()) {
      on_text(more);
      more += more_each;
      on_read(pod);
      return {};
    }
    const char* text = labelled ? "[2] a\n[3] b\n[2] c\n[3] d\n" : "a\nb\nc\nd\n";
    on_text(text);
    if (follow) on_text(labelled ? "[2] new\n[3] new\n" : "new\n");
    if (on_read) on_read(pod);
    return {};
  }

  bool labelled = false;
  bool no_content = false;
  std::string more, more_each;  // not empty: the log when a stream breaks
  std::function<void(const std::string& pod)> on_read;
};

class LogsCommandTest : public testing::Test {
 protected:
  void MakeJob(int slots) {
    api_->labelled = slots > 1;
    const Json job = {{"apiVersion", "ringmaster.dev/v1alpha1"},
                      {"kind", "HorovodJob"},
                      {"metadata", {{"name", "digits"}, {"namespace", "default"}}},
                      {"spec", {{"slotsPerWorker", slots}, {"worker", {{"replicas", 2}}}}}};
    ASSERT_TRUE(api_->Create(kube::HorovodJobs(), "default", job).has_value());
  }
  void MakePod(int index) {
    const Json pod = {{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata",
                       {{"name", "digits-worker-" + std::to_string(index)},
                        {"namespace", "default"},
                        {"labels",
                         {{"training.kubeflow.org/job-name", "digits"},
                          {"training.kubeflow.org/job-role", "worker"},
                          {"ringmaster.dev/job-uid", "u"},
                          {"training.kubeflow.org/replica-index", std::to_string(index)}}}}},
                      {"spec",
                       {{"containers", {{{"name", "worker"}, {"image", "x"}}}},
                        {"initContainers", {{{"name", "side"}, {"image", "x"}}}}}}};
    ASSERT_TRUE(api_->Create(kube::Pods(), "default", pod).has_value());
    const Json running = {{"status",
                           {{"phase", "Running"},
                            {"containerStatuses",
                             {{{"name", "worker"}, {"state", {{"running", Json::object()}}}}}}}}};
    ASSERT_TRUE(api_->Patch(kube::Pods(), "default", "digits-worker-" + std::to_string(index),
                            running, {.subresource = "status"})
                    .has_value());
  }
  void EndJob() {
    const Json status = {
        {"status", {{"conditions", {{{"type", "Succeeded"}, {"status", "True"}}}}}}};
    ASSERT_TRUE(
        api_->Patch(kube::HorovodJobs(), "default", "digits", status, {.subresource = "status"})
            .has_value());
  }
  // The output, or the message of the failure.
  std::string Print(LogsOptions options, const std::string& name = "digits") {
    options.name = name;
    char* text = nullptr;
    size_t size = 0;
    std::FILE* out = open_memstream(&text, &size);
    const auto done = PrintLogs({api_, run_dir_, "default"}, {}, options, out);
    std::fclose(out);
    const std::string printed(text, size);
    free(text);
    return done ? printed : done.error().message;
  }

  // A log as a run on this machine keeps it.
  std::string KeepLog(const std::string& pod) {
    const auto dir = temporary_.path() / "logs" / pod;
    std::filesystem::create_directories(dir);
    std::ofstream(dir / "worker.log") << "its last line\n";
    run_dir_ = temporary_.path();
    return (dir / "worker.log").string();
  }

  const support::TempDir temporary_;
  std::filesystem::path run_dir_;
  std::shared_ptr<ApiWithLogs> api_ = std::make_shared<ApiWithLogs>();
};

TEST_F(LogsCommandTest, OfAJobEachPodComesWithItsWorkersNumber) {
  MakeJob(1);
  MakePod(0);
  MakePod(1);
  EXPECT_EQ(Print({}), "[0] a\n[0] b\n[0] c\n[0] d\n[1] a\n[1] b\n[1] c\n[1] d\n");
  EXPECT_EQ(Print({}, "digits-worker-1"), "a\nb\nc\nd\n");
  EXPECT_THAT(Print({.container = "side"}), HasSubstr("digits-worker-0: a\n"));
}

TEST_F(LogsCommandTest, AContainerThatThePodsDoNotHaveIsNamedWithThoseThatTheyHave) {
  MakeJob(1);
  EXPECT_THAT(Print({.container = "nope"}), HasSubstr("has no pods")) << "so nobody knows";
  MakePod(0);
  MakePod(1);
  const std::string says = " has no such container; it has worker, side";
  EXPECT_EQ(Print({.container = "nope"}), "-c nope: digits" + says);
  EXPECT_EQ(Print({.container = "nope"}, "digits-worker-1"), "-c nope: digits-worker-1" + says);
  EndJob();  // else a command that follows it would go on
  EXPECT_EQ(Print({.container = "nope", .follow = true}), "-c nope: digits" + says);
}

TEST_F(LogsCommandTest, PodsAreReadAtTheSameTimeAndPrintedInTheirOrder) {
  MakeJob(1);
  for (int i = 0; i < 3; ++i) MakePod(i);
  std::atomic<int> read{0};
  std::atomic<bool> alone{false};
  // None is done before all have been asked.
  api_->on_read = [&](const std::string&) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (++read; read < 3 && !alone;) {
      if (std::chrono::steady_clock::now() > end) alone = true;
      std::this_thread::yield();
    }
  };
  const std::string printed = Print({});
  EXPECT_FALSE(alone) << "they are asked one after the other";
  EXPECT_EQ(printed,
            "[0] a\n[0] b\n[0] c\n[0] d\n[1] a\n[1] b\n[1] c\n[1] d\n[2] a\n[2] b\n[2] c\n[2] d\n");
}

TEST_F(LogsCommandTest, RankNamesAWorkerInAPodOfSeveral) {
  MakeJob(2);
  MakePod(1);
  EXPECT_EQ(Print({.rank = 3}), "[3] b\n[3] d\n");
  EXPECT_EQ(Print({.tail = 1, .rank = 2}), "[2] c\n") << "its own last line, not the pod's";
  EXPECT_THAT(
      Print({.rank = 0}),
      HasSubstr("--rank 0: job \"digits\" has no pod of that worker now, it has workers 2-3"));
  EXPECT_THAT(Print({.rank = 2}, "digits-worker-1"), HasSubstr("--rank goes with a job"));
}

TEST_F(LogsCommandTest, FollowingGoesOnWithPodsThatJoinUntilTheJobEnds) {
  MakeJob(1);
  MakePod(0);
  std::atomic<int> read{0};
  api_->on_read = [&](const std::string& pod) {
    const int number = ++read;
    if (number == 1) MakePod(1);
    if (number > 1 && pod == "digits-worker-1") EndJob();
  };
  const std::string printed = Print({.follow = true});
  EXPECT_THAT(printed, HasSubstr("[0] new\n"));
  EXPECT_THAT(printed, HasSubstr("[1] a\n[1] b\n[1] c\n[1] d\n[1] new\n"));
}

TEST_F(LogsCommandTest, AStreamThatBreaksIsGoneOnWithWhereItWas) {
  MakeJob(1);
  MakePod(0);
  api_->more = "a\nb\nc\nd\n";
  api_->more_each = "e\n";
  std::atomic<int> read{0};
  api_->on_read = [&](const std::string&) {
    if (++read == 3) EndJob();
  };
  EXPECT_EQ(Print({.follow = true}), "[0] a\n[0] b\n[0] c\n[0] d\n[0] e\n[0] e\n");
}

// A user follows the last lines of one worker while the worker writes a line.
TEST_F(LogsCommandTest, ALineThatAStreamIsCutInStaysWhole) {
  MakeJob(2);
  MakePod(1);
  api_->more = "[2] a\n[3] b\n[2] one half";
  api_->more_each = " and the other\n[2] e";
  std::atomic<int> read{0};
  api_->on_read = [&](const std::string&) {
    if (++read == 1) api_->more_each = "nd";
    if (read == 3) EndJob();
  };
  EXPECT_EQ(Print({.follow = true, .tail = 1, .rank = 2}),
            "[2] a\n[2] one half and the other\n[2] end\n");
}

TEST_F(LogsCommandTest, FollowingOneRankFollowsItsPodAlone) {
  MakeJob(2);
  MakePod(0);
  MakePod(1);
  api_->on_read = [this](const std::string& pod) {
    EXPECT_EQ(pod, "digits-worker-1");
    EndJob();
  };
  EXPECT_EQ(Print({.follow = true, .rank = 3}), "[3] b\n[3] d\n[3] new\n");
}

TEST_F(LogsCommandTest, FollowingAWorkerThatNoPodHasSaysSoAtOnceAndWhichThereAre) {
  MakeJob(2);
  for (const int index : {0, 1, 3}) MakePod(index);
  EndJob();
  testing::internal::CaptureStderr();
  EXPECT_EQ(Print({.follow = true, .rank = 99}), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringmaster: --rank 99: job \"digits\" has no pod of that worker now, it has workers "
            "0-3, 6-7; waiting until one joins or the job ends\n");
}

TEST_F(LogsCommandTest, AJobThatHasEndedIsReadToItsEnd) {
  MakeJob(1);
  MakePod(0);
  EndJob();
  EXPECT_THAT(Print({.follow = true}), HasSubstr("[0] new\n"));
}

TEST_F(LogsCommandTest, APodThatHasNoNodeYetHasPrintedNothing) {
  MakeJob(1);
  MakePod(0);
  api_->no_content = true;
  testing::internal::CaptureStderr();
  EXPECT_EQ(Print({}), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "ringmaster: digits has printed nothing\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(Print({.rank = 0}), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringmaster: worker 0 of digits has printed nothing\n");
}

TEST_F(LogsCommandTest, OfPodsThatHaveLeftItIsSaidWhereTheirLogsAre) {
  MakeJob(2);
  const std::string first = KeepLog("digits-worker-0"), other = KeepLog("digits-worker-1");
  EXPECT_EQ(Print({.rank = 3}),
            "--rank 3: job \"digits\" has no pod of that worker now\n"
            "digits-worker-1 has left; what it printed is in " +
                other);
  EXPECT_EQ(Print({}),
            "job \"digits\" has no pods\ndigits-worker-0 has left; what it printed is in " + first +
                "\ndigits-worker-1 has left; what it printed is in " + other);
  EXPECT_EQ(Print({}, "digits-worker-0"),
            "digits-worker-0 has left; what it printed is in " + first);
  MakePod(1);
  testing::internal::CaptureStderr();
  EXPECT_THAT(Print({}), HasSubstr("[2] a\n"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringmaster: digits-worker-0 has left; what it printed is in " + first + "\n");
}

TEST_F(LogsCommandTest, WhatIsNeitherPodNorJobIsNamed) {
  EXPECT_EQ(Print({}, "nope"),
            "there is no pod or job \"nope\" in namespace \"default\", and no other");
  MakeJob(2);
  MakePod(1);
  EXPECT_EQ(Print({}, "digits-worker-0"),
            "there is no pod or job \"digits-worker-0\" in namespace \"default\"; did you mean "
            "digits-worker-1?");
}

}  // namespace
}  // namespace ringmaster::cli
