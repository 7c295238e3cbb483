// A sidecar reports the process ids of its workers; a process that is not the pod's is not touched.
#include "operator/cli/pod_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <thread>

namespace ringmaster::cli {
namespace {

using testing::HasSubstr;

class PodProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    char program[] = "/bin/sleep", seconds[] = "600", uid[] = "RINGMASTER_POD_UID=uid-a";
    char* arguments[] = {program, seconds, nullptr};
    char* environment[] = {uid, nullptr};
    ASSERT_EQ(posix_spawn(&pid_, program, nullptr, nullptr, arguments, environment), 0);
    // posix_spawn returns before the new program's environment can be read.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!HasEnvironment() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ASSERT_TRUE(HasEnvironment());
  }
  void TearDown() override {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  bool HasEnvironment() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/environ");
    return file.peek() != std::ifstream::traits_type::eof();
  }
  bool Lives() const {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == 0;
  }
  pid_t pid_ = 0;
};

TEST_F(PodProcessTest, AProcessOfThePodIsKilled) {
  ASSERT_EQ(KillProcessOfPod(pid_, "uid-a"), "");
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_status, SIGKILL);
}

TEST_F(PodProcessTest, AProcessOfAnotherPodIsLeftAlone) {
  for (const char* uid : {"uid-b", "uid-", "uid-ab", ""}) {
    EXPECT_NE(KillProcessOfPod(pid_, uid), "") << uid;
  }
  EXPECT_TRUE(Lives());
}

TEST_F(PodProcessTest, NumbersThatMeanManyProcessesAreRefused) {
  for (const pid_t pid : {-1, 0, 1, -pid_}) {
    EXPECT_THAT(KillProcessOfPod(pid, "uid-a"), HasSubstr("no process of a pod"));
  }
  EXPECT_TRUE(Lives());
}

}  // namespace
}  // namespace ringmaster::cli
