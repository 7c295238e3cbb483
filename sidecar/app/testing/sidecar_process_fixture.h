// A job of real sidecars and launchers with fake workers (fake_worker.cc), and a fake operator in
// the test's process.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "common/ring_key/ring_key.h"
#include "common/tls/certificate.h"
#include "sidecar/app/testing/fake_operator.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::app {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

inline bool Eventually(const std::function<bool()>& done) {
  for (auto deadline = Clock::now() + std::chrono::seconds(20); Clock::now() < deadline;
       usleep(1000)) {
    if (done()) return true;
  }
  return false;
}

// "host:port" -> the body of GET path, "" if nobody answers.
inline std::string Get(const std::string& where, const std::string& path,
                       const std::string& header = "Host: x") {
  size_t colon = where.rfind(':');
  if (colon == std::string::npos) return "";
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(where.substr(colon + 1))));
  inet_pton(AF_INET, where.substr(0, colon).c_str(), &address.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval limit{2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    std::string request = "GET " + path + " HTTP/1.1\r\n" + header + "\r\n\r\n";
    [[maybe_unused]] ssize_t sent = send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    char buffer[65536];
    for (ssize_t got; (got = recv(fd, buffer, sizeof buffer, 0)) > 0;)
      answer.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

struct PodProcesses {
  std::string uid, dir;
  pid_t sidecar = -1, launcher = -1;
};

class SidecarProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // no process that is left behind hides from the test
  }

  void TearDown() override {
    for (PodProcesses& pod : pods_) KillPod(&pod);
    operator_.reset();
    Eventually([] {
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      return waitpid(-1, nullptr, WNOHANG) < 0;
    });
    EXPECT_LT(waitpid(-1, nullptr, WNOHANG), 0) << "somebody is left behind";
    if (HasFailure()) {
      for (PodProcesses& pod : pods_) {
        std::ifstream log(pod.dir + "/log");
        std::cout << "--- " << pod.uid << "\n" << log.rdbuf() << std::endl;
      }
    }
  }

  void StartJob(int pods, std::vector<std::string> env = {}, uint32_t min_pods = 1) {
    env_ = std::move(env);
    operator_ = std::make_unique<ringmaster::app::testing::FakeOperator>(dir_ + "/op", pods,
                                                                         min_pods, operator_tls_);
    operator_->Start();
    for (int i = 0; i < pods; ++i) AddPod();
  }

  PodProcesses& AddPod() {
    PodProcesses pod;
    pod.uid = "uid-" + std::to_string(pods_.size());
    pod.dir = dir_ + "/" + pod.uid;
    std::filesystem::create_directory(pod.dir);
    pods_.push_back(pod);
    StartSidecar(&pods_.back());
    pods_.back().launcher = Spawn(pods_.back(), {LAUNCHER_BINARY, "--", WORKER_BINARY});
    return pods_.back();
  }

  // A directory as a mounted Secret is.
  void WriteTls(const std::string& dir, const tls::KeyPair& authority, const std::string& name) {
    const auto pair =
        tls::Issue(authority, {name}, std::chrono::system_clock::now(), std::chrono::hours(1));
    ASSERT_TRUE(pair) << pair.error();
    std::filesystem::create_directories(dir);
    const std::pair<std::string, std::string> contents[] = {{"ca.crt", authority.certificate_pem},
                                                            {"tls.crt", pair->certificate_pem},
                                                            {"tls.key", pair->key_pem}};
    for (const auto& [file, text] : contents) {
      std::ofstream(dir + "/" + file) << text;
    }
  }

  // An operator and certificates for `pods` pods; they find theirs in <pod dir>/tls.
  void PrepareTls(int pods) {
    operator_tls_ = dir_ + "/op-tls";
    WriteTls(operator_tls_, authority_, tls::kOperatorName);
    for (int i = 0; i < pods; ++i) {
      WriteTls(dir_ + "/uid-" + std::to_string(i) + "/tls", authority_, tls::JobName("job-uid"));
    }
  }

  std::string LogOf(const PodProcesses& pod) {
    std::ifstream log(pod.dir + "/log");
    return {std::istreambuf_iterator<char>(log), {}};
  }

  void StartSidecar(PodProcesses* pod) { pod->sidecar = Spawn(*pod, {SIDECAR_BINARY}); }

  pid_t Spawn(const PodProcesses& pod, std::vector<std::string> command) {
    std::vector<std::string> env = env_;
    for (auto& [key, value] : std::map<std::string, std::string>{
             {"JOB_NAMESPACE", "default"},
             {"JOB_NAME", "job"},
             {"JOB_UID", "job-uid"},
             {"POD_NAME", "job-worker-" + pod.uid.substr(4)},
             {"POD_UID", pod.uid},
             {"OPERATOR", "unix:" + dir_ + "/op"},
             {"STATE_DIR", pod.dir},
             {"SOCKET", pod.dir + "/s"},
             {"TLS_DIR", operator_tls_.empty() ? "" : pod.dir + "/tls"},
             {"GRACE_SECONDS", "10"}}) {
      env.push_back("RINGMASTER_" + key + "=" + value);
    }
    std::vector<char*> argv, envp;
    for (auto& text : command) argv.push_back(text.data());
    for (auto& text : env) envp.push_back(text.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    const std::string log = pod.dir + "/log";
    pid_t pid = fork();
    if (pid == 0) {
      int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      dup2(fd, STDOUT_FILENO);
      dup2(fd, STDERR_FILENO);
      execve(argv[0], argv.data(), envp.data());
      _exit(126);
    }
    return pid;
  }

  static void Kill(pid_t* pid) {
    if (*pid <= 0) return;
    kill(*pid, SIGKILL);
    waitpid(*pid, nullptr, 0);
    *pid = -1;
  }
  static void KillPod(PodProcesses* pod) {
    Kill(&pod->sidecar);
    Kill(&pod->launcher);
  }

  json Status(const PodProcesses& pod) {
    const std::string token = ring_key_.empty() ? "" : ring_key::MakeToken(ring_key_);
    json status = json::parse(
        Get(operator_->HttpOf(pod.uid), "/status", "Ringmaster-Token: " + token), nullptr, false);
    return status.is_object() ? status : json::object();
  }

  // All of these pods train in one view of `size` ranks newer than `after`; the epoch, or 0.
  uint64_t AwaitView(const std::vector<int>& pods, size_t size, uint64_t after = 0) {
    uint64_t epoch = 0;
    bool found = Eventually([&] {
      std::set<uint64_t> epochs;
      for (int i : pods) {
        json status = Status(pods_[i]);
        if (status.value("state", "") != "Training" || status["view"]["ranks"].size() != size)
          return false;
        epochs.insert(status["epoch"].get<uint64_t>());
      }
      epoch = *epochs.begin();
      return epochs.size() == 1 && epoch > after;
    });
    if (found) return epoch;
    for (int i : pods) ADD_FAILURE() << Status(pods_[i]).dump();
    return 0;
  }

  pid_t WorkerPid(const PodProcesses& pod, int slot = 0) {
    const json status = Status(pod);
    for (const json& worker : status.value("workers", json::array())) {
      if (worker["slot"] == slot) return worker["pid"];
    }
    return 0;
  }

  void KillWorker(const PodProcesses& pod, int slot = 0, int signal = SIGKILL) {
    pid_t worker = 0;
    ASSERT_TRUE(Eventually([&] { return (worker = WorkerPid(pod, slot)) > 0; }));
    ASSERT_EQ(kill(worker, signal), 0);
  }

  int CoordinatorIndex() {
    for (size_t i = 0; i < pods_.size(); ++i) {
      if (Status(pods_[i]).value("coordinator", false)) return static_cast<int>(i);
    }
    return -1;
  }

  int ExitCode(pid_t* pid) {
    int status = -1;
    EXPECT_TRUE(Eventually([&] { return waitpid(*pid, &status, WNOHANG) == *pid; }))
        << "it does not end";
    if (status != -1) *pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  json LastRebuild(const PodProcesses& pod) {
    json rebuilds = Status(pod)["rebuilds"];
    return rebuilds.empty() ? json::object() : rebuilds.back();
  }

  support::TempDir temporary_;
  const std::string dir_ = temporary_.path().string();
  std::string operator_tls_;  // empty: no TLS
  std::string ring_key_;      // of the job; empty: none
  const tls::KeyPair authority_ =
      *tls::MakeAuthority(std::chrono::system_clock::now(), std::chrono::hours(1));
  std::vector<std::string> env_;
  std::unique_ptr<ringmaster::app::testing::FakeOperator> operator_;
  std::deque<PodProcesses> pods_;
};

}  // namespace ringmaster::app
