// The process's side of PMI against a launcher that a test plays.
#include "collectives/process_manager/pmi1.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include "collectives/process_manager/process_manager.h"

namespace ringmaster::process_manager {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Clock::time_point Soon() { return Clock::now() + std::chrono::seconds(20); }

// Answers as Hydra does, in a thread for each process.
class Launcher {
 public:
  explicit Launcher(int size) : size_(size) {}
  ~Launcher() {
    {
      const std::lock_guard lock(mu_);
      closing_ = true;
    }
    came_.notify_all();
    for (const int fd : processes_) shutdown(fd, SHUT_RDWR);
    threads_.clear();
    for (const int fd : processes_) close(fd);
    for (const int fd : own_) close(fd);
  }
  // May change an answer before it is sent. If it makes it empty, the launcher closes the
  // connection.
  std::function<std::string(const std::string& question, std::string answer)> change =
      [](const std::string&, std::string answer) { return answer; };

  // Starts a process of this rank: returns what it finds in its environment.
  Launch Start(int rank) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    processes_.push_back(ends[0]);
    own_.push_back(ends[1]);
    threads_.emplace_back([this, fd = ends[1]] { Serve(fd); });
    return {Launch::Protocol::kPmi1, ends[0], rank, size_};
  }
  std::unique_ptr<ProcessManager> Open(int rank) {
    std::unique_ptr<ProcessManager> manager;
    const Status status = process_manager::Open(Start(rank), &manager);
    EXPECT_TRUE(status.ok()) << status.message();
    return manager;
  }

  std::string asked() {
    const std::lock_guard lock(mu_);
    return asked_;
  }

 private:
  void Serve(int fd) {
    std::string line;
    char byte = 0;
    while (read(fd, &byte, 1) == 1) {
      if (byte != '\n') {
        line += byte;
        continue;
      }
      std::string answer = change(line, Answer(line));
      line.clear();
      if (answer.empty()) {
        shutdown(fd, SHUT_RDWR);
        return;
      }
      answer += "\n";
      if (send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
    }
  }
  static std::string Word(const std::string& line, const std::string& name) {
    const size_t at = line.find(name + "=");
    if (at == line.npos) return "";
    const size_t from = at + name.size() + 1;
    return line.substr(from, line.find(' ', from) - from);
  }
  std::string Answer(const std::string& question) {
    std::unique_lock lock(mu_);
    const std::string command = Word(question, "cmd");
    asked_ += command + " ";
    if (command == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
    if (command == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1";
    if (command == "put") {
      said_[Word(question, "key")] = Word(question, "value");
      return "cmd=put_result rc=0 msg=success";
    }
    if (command == "get")
      return "cmd=get_result rc=0 msg=success value=" + said_[Word(question, "key")];
    if (command == "finalize") return "cmd=finalize_ack";
    ++waiting_;
    came_.notify_all();
    came_.wait(lock, [&] { return waiting_ % size_ == 0 || closing_; });
    return "cmd=barrier_out";
  }

  const int size_;
  std::mutex mu_;
  std::condition_variable came_;
  std::map<std::string, std::string> said_;
  int waiting_ = 0;
  bool closing_ = false;
  std::string asked_;
  std::vector<int> processes_, own_;
  std::vector<std::jthread> threads_;  // destroyed first
};

TEST(Pmi1Test, EveryProcessHearsWhatAllHaveSaid) {
  Launcher launcher(3);
  std::vector<std::unique_ptr<ProcessManager>> managers;
  for (int rank = 0; rank < 3; ++rank) managers.push_back(launcher.Open(rank));
  std::vector<std::vector<std::string>> said(3);
  {
    std::vector<std::jthread> processes;
    for (int rank = 0; rank < 3; ++rank) {
      processes.emplace_back([&, rank] {
        const std::string mine = "rank " + std::to_string(rank) + " = \"\n";
        const Status status = managers[rank]->Exchange("worker", mine, Soon(), &said[rank]);
        EXPECT_TRUE(status.ok()) << status.message();
      });
    }
  }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(managers[rank]->rank(), rank);
    EXPECT_EQ(managers[rank]->size(), 3);
    EXPECT_EQ(managers[rank]->job(), "kvs_1");
    EXPECT_THAT(said[rank], ElementsAre("rank 0 = \"\n", "rank 1 = \"\n", "rank 2 = \"\n"));
  }
}

TEST(Pmi1Test, AProcessTakesItsLeave) {
  Launcher launcher(1);
  launcher.Open(0).reset();
  EXPECT_THAT(launcher.asked(), HasSubstr("finalize"));
}

TEST(Pmi1Test, WhoWaitsForOthersWaitsUntilTheDeadline) {
  Launcher launcher(2);
  const auto manager = launcher.Open(0);
  std::vector<std::string> said;
  const Status status =
      manager->Exchange("worker", "a", Clock::now() + std::chrono::milliseconds(50), &said);
  EXPECT_EQ(status.code(), RM_ERR_TIMEOUT);
  EXPECT_THAT(status.message(), HasSubstr("the other processes have not called init"));
}

// Else the late answer of the first init would be taken for that of the second.
TEST(Pmi1Test, AfterAQuestionWithoutAnswerNothingIsAskedAgain) {
  Launcher launcher(2);
  const Launch launch = launcher.Start(0);
  std::unique_ptr<ProcessManager> manager;
  ASSERT_TRUE(Open(launch, &manager).ok());
  std::vector<std::string> said;
  EXPECT_EQ(manager->Exchange("worker", "a", Clock::now(), &said).code(), RM_ERR_TIMEOUT);
  manager.reset();
  const Status again = Open(launch, &manager);
  EXPECT_EQ(again.code(), RM_ERR_UNAVAILABLE);
  EXPECT_THAT(again.message(), HasSubstr("left a question of an earlier init without an answer"));
}

TEST(Pmi1Test, ALauncherThatRefusesOrGoesIsSaid) {
  for (const auto& [answer, what] : std::map<std::string, std::string>{
           {"cmd=put_result rc=-1 msg=no_room", "'cmd=put' failed: no_room"},
           {"", "it has gone"}}) {
    Launcher launcher(1);
    launcher.change = [own_word = answer](const std::string& question, std::string own) {
      return question.rfind("cmd=put", 0) == 0 ? own_word : own;
    };
    const auto manager = launcher.Open(0);
    std::vector<std::string> said;
    const Status status = manager->Exchange("worker", "a", Soon(), &said);
    EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
    EXPECT_THAT(status.message(), HasSubstr(what));
  }
}

// What a process reads from an environment with these variables.
Status Read(const std::map<std::string, std::string>& variables, Launch* launch) {
  return ReadLaunch(
      [&](const char* name) {
        const auto variable = variables.find(name);
        return variable == variables.end() ? "" : variable->second;
      },
      launch);
}

TEST(ReadLaunchTest, WhatIsNoNumberIsNamed) {
  const std::pair<std::map<std::string, std::string>, std::string> cases[] = {
      {{{"PMI_FD", "7"}, {"PMI_RANK", "2"}, {"PMI_SIZE", "2"}},
       "PMI_RANK is '2', allowed is less than PMI_SIZE, 2"},
      {{{"PMI_FD", "7"}, {"PMI_RANK", "first"}, {"PMI_SIZE", "2"}},
       "PMI_RANK is 'first', allowed is a number as mpiexec sets it"},
      {{{"PMI_FD", "7"}, {"PMI_RANK", "0"}},
       "PMI_SIZE is '', allowed is a number as mpiexec sets it"},
      {{{"PMI_FD", "x"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}},
       "PMI_FD is 'x', allowed is a number as mpiexec sets it"},
  };
  for (const auto& [variables, error] : cases) {
    Launch launch;
    EXPECT_EQ(Read(variables, &launch).message(), error);
  }
}

TEST(ReadLaunchTest, TakesTheLauncherOfSeveralAndNoneForOne) {
  using Protocol = Launch::Protocol;
  const std::pair<std::map<std::string, std::string>, Protocol> cases[] = {
      {{}, Protocol::kNone},
      {{{"PMI_FD", "7"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, Protocol::kNone},
      {{{"PMI_FD", "7"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, Protocol::kPmi1},
      // These variables come from the shell in which mpiexec was started.
      {{{"PMI_FD", "7"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"SLURM_STEP_NUM_TASKS", "1"}},
       Protocol::kPmi1},
      {{{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "a"}}, Protocol::kPmix},
      {{{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "a"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
       Protocol::kNone},
      {{{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "a"}, {"SLURM_STEP_NUM_TASKS", "1"}},
       Protocol::kNone},
      {{{"PMIX_RANK", "0"},
        {"PMIX_NAMESPACE", "a"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"SLURM_STEP_NUM_TASKS", "1"}},
       Protocol::kPmix},
  };
  for (const auto& [variables, protocol] : cases) {
    Launch launch;
    const Status status = Read(variables, &launch);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(launch.protocol, protocol) << testing::PrintToString(variables);
  }
  Launch launch;
  ASSERT_TRUE(Read(cases[2].first, &launch).ok());
  EXPECT_EQ(std::tuple(launch.socket, launch.rank, launch.size), std::tuple(7, 1, 2));
}

}  // namespace
}  // namespace ringmaster::process_manager
