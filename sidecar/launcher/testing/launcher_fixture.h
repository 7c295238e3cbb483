// The launcher as a real process with shell scripts as workers, and the test as its sidecar.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/worker_link/frame.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::launcher {

using nlohmann::json;
using worker_link::FrameReader;

inline std::chrono::steady_clock::time_point Deadline() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

// Plain reads: a stream throws when the process goes while it is read.
inline bool Alive(pid_t pid) {
  int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[512];
  ssize_t got = read(fd, text, sizeof text);
  close(fd);
  std::string stat(text, got > 0 ? static_cast<size_t>(got) : 0);
  size_t end = stat.rfind(')');
  return end != std::string::npos && stat[end + 2] != 'Z';
}

inline bool Eventually(const std::function<bool()>& done) {
  for (auto deadline = Deadline(); std::chrono::steady_clock::now() < deadline; usleep(2000)) {
    if (done()) return true;
  }
  return false;
}

class LauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    // What the launcher fails to kill comes to us, so that nothing hides from the test.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  void TearDown() override {
    if (launcher_ > 0) kill(launcher_, SIGKILL);
    if (connection_ >= 0) close(connection_);
    if (listener_ >= 0) close(listener_);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  void Listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    Path("s").copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener_, 4), 0);
  }

  // Runs `script` by sh as every worker. `env` are NAME=value pairs.
  void Start(const std::string& script, std::vector<std::string> env = {}) {
    StartCommand({"/bin/sh", "-c", script}, std::move(env));
  }
  void StartCommand(std::vector<std::string> command, std::vector<std::string> env = {}) {
    env.push_back("RINGMASTER_SOCKET=" + Path("s"));
    env.push_back("DIR=" + dir_);
    env.push_back(std::string("PATH=") + getenv("PATH"));
    command.insert(command.begin(), {LAUNCHER_BINARY, "--"});
    std::vector<char*> argv, envp;
    for (auto& text : command) argv.push_back(text.data());
    for (auto& text : env) envp.push_back(text.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    launcher_ = fork();
    if (launcher_ == 0) {
      dup2(log_to_ >= 0
               ? log_to_
               : open(Path("log").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600),
           STDERR_FILENO);
      execve(argv[0], argv.data(), envp.data());
      _exit(126);
    }
  }

  void Accept() {
    pollfd fd{listener_, POLLIN, 0};
    ASSERT_EQ(poll(&fd, 1, 20000), 1) << "the launcher does not connect: " << Log();
    connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    reader_ = {};
    hello_ = Await("hello");
    ASSERT_EQ(hello_["role"], "launcher");
  }

  // The next frame of this type; others are dropped.
  json Await(const std::string& type) { return AwaitOneOf({type}); }
  json AwaitOneOf(const std::set<std::string>& types) {
    for (auto deadline = Deadline(); std::chrono::steady_clock::now() < deadline;) {
      json frame;
      while (reader_.Next(&frame) == FrameReader::Result::kFrame) {
        if (types.count(frame["t"]) != 0) return frame;
      }
      pollfd fd{connection_, POLLIN, 0};
      if (poll(&fd, 1, 1000) <= 0) continue;
      char buffer[4096];
      ssize_t got = recv(connection_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      reader_.Feed({buffer, static_cast<size_t>(got)});
    }
    ADD_FAILURE() << "no frame " << *types.begin();
    return json::object({{"t", ""}, {"pid", 0}, {"incarnation", 0}, {"exitCode", -1}});
  }

  void Send(const json& frame) {
    std::string bytes = worker_link::EncodeFrame(frame);
    ASSERT_EQ(send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // What launcher and workers have written to standard error.
  std::string Log() const {
    std::ifstream file(Path("log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  int ExitCode() {
    int status = 0;
    bool ended = Eventually([&] { return waitpid(launcher_, &status, WNOHANG) == launcher_; });
    EXPECT_TRUE(ended) << "the launcher does not end";
    launcher_ = -1;
    return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // The process ids that scripts have written into `name`, one a line.
  std::vector<pid_t> Pids(const std::string& name, size_t count) {
    std::vector<pid_t> pids;
    EXPECT_TRUE(Eventually([&] {
      pids.clear();
      std::ifstream file(Path(name));
      for (pid_t pid; file >> pid;) pids.push_back(pid);
      return pids.size() >= count;
    })) << name;
    return pids;
  }

  support::TempDir temporary_;
  const std::string dir_ = temporary_.path().string();
  pid_t launcher_ = -1;
  int listener_ = -1, connection_ = -1;
  int log_to_ = -1;  // the launcher's standard error; -1: the file that Log() reads
  FrameReader reader_;
  json hello_;
};

}  // namespace ringmaster::launcher
