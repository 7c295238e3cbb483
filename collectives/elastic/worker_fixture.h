// Workers of a fake sidecar: in threads of the test, and as processes of test_worker.cc.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "collectives/elastic/training_process.h"
#include "collectives/sidecar_client/fake_sidecar.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::elastic {

using Json = nlohmann::json;

inline TrainingProcess::Clock::time_point Soon() {
  return TrainingProcess::Clock::now() + std::chrono::seconds(30);
}

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() { sidecar_ = std::make_unique<sidecar_client::FakeSidecar>(directory_ + "/s"); }
  ~WorkerTest() override {
    for (auto& [slot, pid] : pids_) kill(pid, SIGKILL);
    for (auto& [slot, pid] : pids_) waitpid(pid, nullptr, 0);
    sidecar_.reset();
  }

  WorkerOptions Options(int slot) {
    WorkerOptions options;
    options.socket = directory_ + "/s";
    options.job = "test";
    options.slot = slot;
    if (slot == 0) options.timeline = &timeline_;
    return options;
  }
  std::unique_ptr<TrainingProcess> StartOne(engine::StateRegistry* state) {
    return StartOne(state, Options(0));
  }
  std::unique_ptr<TrainingProcess> StartOne(engine::StateRegistry* state,
                                            const WorkerOptions& options) {
    std::unique_ptr<TrainingProcess> worker;
    std::thread starts([&] {
      const Status status = TrainingProcess::Start(options, state, Soon(), &worker);
      EXPECT_TRUE(status.ok()) << status.message();
    });
    EXPECT_FALSE(sidecar_->Await(0, "enter").is_null());
    epoch_ = sidecar_->InstallView({0}, "Bootstrap", {});
    starts.join();
    return worker;
  }

  void Spawn(int slot, int steps) {
    const std::string out = directory_ + "/out" + std::to_string(slot);
    const pid_t pid = fork();
    if (pid == 0) {
      setenv("RINGMASTER_SOCKET", (directory_ + "/s").c_str(), 1);
      setenv("RINGMASTER_SLOT", std::to_string(slot).c_str(), 1);
      setenv("RINGMASTER_JOB_UID", "test", 1);
      dup2(open(out.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600), 1);
      execl(TEST_WORKER, TEST_WORKER, std::to_string(steps).c_str(), nullptr);
      _exit(127);
    }
    pids_[slot] = pid;
  }
  int Reap(int slot) {
    int status = 0;
    waitpid(pids_[slot], &status, 0);
    pids_.erase(slot);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  std::vector<std::string> Lines(int slot) {
    std::ifstream in(directory_ + "/out" + std::to_string(slot));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  void AwaitStep(int slot, uint64_t step) {
    EXPECT_FALSE(
        sidecar_->Await(slot, "ping", [&](const Json& f) { return f["step"] >= step; }).is_null());
  }
  // Expects that every line is a step, one after the other, with the weights that so many steps
  // make.
  void CheckSteps(int slot, int first, int last) {
    const auto lines = Lines(slot);
    int expected = first;
    for (const std::string& line : lines) {
      std::istringstream words(line);
      std::string word;
      long long step = 0, epoch = 0, size = 0, sum = 0;
      words >> word >> step >> epoch >> size >> sum;
      if (word != "step") continue;
      if (expected == 0) expected = static_cast<int>(step);
      EXPECT_EQ(step, expected++) << "slot " << slot;
      EXPECT_EQ(sum, 1000 * step) << "slot " << slot << ": " << line;
    }
    EXPECT_EQ(expected, last + 1) << "slot " << slot << ": "
                                  << (lines.empty() ? "nothing" : lines.back());
  }

  timeline::Timeline timeline_;  // of the worker in slot 0
  support::TempDir temporary_;
  const std::string directory_ = temporary_.path().string();
  std::unique_ptr<sidecar_client::FakeSidecar> sidecar_;
  std::map<int, pid_t> pids_;
  uint64_t epoch_ = 0;
};

}  // namespace ringmaster::elastic
