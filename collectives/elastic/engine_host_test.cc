#include "collectives/elastic/engine_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/elastic/first_view.h"
#include "collectives/engine/fake_listener.h"

namespace ringmaster::elastic {
namespace {

using engine::Operation;
using testing::HasSubstr;
using testing::StartsWith;

EngineHost::Clock::time_point Soon() { return EngineHost::Clock::now() + std::chrono::seconds(30); }

class EngineHostTest : public testing::Test {
 protected:
  EngineHostTest() { options_.job = "test"; }

  // The sum if each rank gives 3.
  float Sum() {
    float data = 3;
    engine::Request request{"sum", engine::Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
    const auto operation = std::make_shared<Operation>(std::move(request), &data, &data);
    const Status submitted = host_.engine()->Submit(operation);
    EXPECT_TRUE(submitted.ok()) << submitted.message();
    EXPECT_TRUE(operation->WaitUntil(Soon()));
    EXPECT_TRUE(operation->status().ok()) << operation->status().message();
    return data;
  }

  WorkerOptions options_;  // a test changes them before a start
  engine::StateRegistry state_;
  PingFacts facts_;
  engine::FakeListener listener_;  // read once the engine is closed
  EngineHost host_{options_, &state_, &facts_};
};

TEST_F(EngineHostTest, AProcessThatIsAloneIsInTheFirstViewAndNeedsNoEndpoint) {
  EXPECT_EQ(host_.engine(), nullptr);
  const Status started = host_.StartAlone();
  ASSERT_TRUE(started.ok()) << started.message();
  EXPECT_EQ(host_.endpoint(), nullptr);
  const engine::Membership membership = host_.engine()->info().membership();
  EXPECT_EQ(membership.epoch, kFirstEpoch);
  EXPECT_EQ(membership.rank, 0);
  EXPECT_EQ(membership.size, 1);
  EXPECT_EQ(host_.engine()->info().workers(), std::vector<std::string>{"this process"});
  EXPECT_EQ(Sum(), 3);
}

TEST_F(EngineHostTest, InAJobItHasNoViewUntilItIsGivenOneAndTellsTheListenerOfIt) {
  const Status started = host_.StartInJob(&listener_);
  ASSERT_TRUE(started.ok()) << started.message();
  EXPECT_FALSE(host_.engine()->info().entered);
  engine::WorkerView view;
  view.epoch = 7;
  view.self = 0;
  view.workers = {"the worker"};
  view.peers = {host_.endpoint()->Address()};
  EXPECT_THAT(view.peers[0].tcp, StartsWith("127.0.0.1:"));
  EXPECT_NE(view.peers[0].shm, "");
  host_.engine()->PostView(view);
  ASSERT_TRUE(host_.engine()->AwaitEntered(Soon()).ok());
  EXPECT_EQ(Sum(), 3);
  host_.Close();
  EXPECT_THAT(listener_.heard, testing::Contains("installed 7"));
}

TEST_F(EngineHostTest, TheEndpointIsWhatTheOptionsAskFor) {
  options_.bind = "::1";
  options_.shared_memory = false;
  const Status started = host_.StartInJob(&listener_);
  ASSERT_TRUE(started.ok()) << started.message();
  EXPECT_THAT(host_.endpoint()->Address().tcp, StartsWith("[::1]:"));
  EXPECT_EQ(host_.endpoint()->Address().shm, "");
}

TEST_F(EngineHostTest, WithoutAnEndpointThereIsNoEngine) {
  options_.bind = "no address";
  EXPECT_FALSE(host_.StartInJob(&listener_).ok());
  EXPECT_EQ(host_.engine(), nullptr);
  host_.Close();
}

TEST_F(EngineHostTest, ACloseEndsTheEngineAndItsEndTakesItAway) {
  ASSERT_TRUE(host_.StartAlone().ok());
  host_.Close();
  ASSERT_NE(host_.engine(), nullptr) << "its facts may still be asked for";
  EXPECT_EQ(host_.engine()->info().membership().size, 1);
  host_.End();
  EXPECT_EQ(host_.engine(), nullptr);
  host_.Close();
}

TEST_F(EngineHostTest, WhatNoLauncherHasStartedHasNoFixedWorld) {
  const Status started = host_.StartInFixedWorld(Soon());
  EXPECT_EQ(started.code(), RM_ERR_INVALID);
  EXPECT_THAT(started.message(), HasSubstr("no launcher has started this process"));
  EXPECT_EQ(host_.engine(), nullptr);
}

// Plays mpiexec: its end of the socket to the one process that it has started.
class MpiLauncher {
 public:
  MpiLauncher() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    thread_ = std::thread([this] { Serve(); });
  }
  ~MpiLauncher() {
    shutdown(ends_[1], SHUT_RDWR);
    thread_.join();
    for (const int end : ends_) close(end);
  }
  process_manager::Launch launch() const {
    return {process_manager::Launch::Protocol::kPmi1, ends_[0], /*rank=*/0, /*size=*/1};
  }
  // Whether the process has taken its leave, which it doesn't do before the launcher has answered.
  bool left() const { return left_; }

 private:
  void Serve() {
    std::string line;
    char byte = 0;
    while (read(ends_[1], &byte, 1) == 1) {
      if (byte != '\n') {
        line += byte;
        continue;
      }
      const std::string answer = Answer(line) + "\n";
      left_ = left_ || line.starts_with("cmd=finalize");
      if (send(ends_[1], answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
      line.clear();
    }
  }
  std::string Answer(const std::string& question) {
    if (question.starts_with("cmd=init")) return "cmd=response_to_init rc=0";
    if (question.starts_with("cmd=get_my")) return "cmd=my_kvsname kvsname=kvs_1";
    if (question.starts_with("cmd=get ")) return "cmd=get_result rc=0 value=" + said_;
    if (question.starts_with("cmd=barrier")) return "cmd=barrier_out";
    if (question.starts_with("cmd=put")) said_ = question.substr(question.find("value=") + 6);
    return "cmd=done rc=0";
  }

  int ends_[2] = {-1, -1};
  std::atomic<bool> left_ = false;
  std::string said_;  // the newest line that the process has sent
  std::thread thread_;
};

TEST_F(EngineHostTest, InAFixedWorldTheLauncherIsKeptUntilItIsLeft) {
  MpiLauncher launcher;
  options_.launch = launcher.launch();
  const Status started = host_.StartInFixedWorld(Soon());
  ASSERT_TRUE(started.ok()) << started.message();
  EXPECT_NE(host_.endpoint(), nullptr);
  EXPECT_EQ(host_.engine()->info().membership().epoch, kFirstEpoch);
  EXPECT_THAT(host_.engine()->info().WorkerAt(0), StartsWith("rank 0 on "));
  EXPECT_EQ(Sum(), 3);
  EXPECT_FALSE(launcher.left());
  host_.LeaveLauncher();
  EXPECT_TRUE(launcher.left());
  host_.LeaveLauncher();
}

}  // namespace
}  // namespace ringmaster::elastic
