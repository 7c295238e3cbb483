// One agent with fake outputs; the other pods are names.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/membership/message_json.h"
#include "common/membership/view_json.h"
#include "sidecar/app/agent.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app {

class AgentTest : public testing::Test {
 protected:
  using json = nlohmann::json;
  using Message = membership::Message;
  using MessageKind = membership::MessageKind;
  using milliseconds = std::chrono::milliseconds;
  using seconds = std::chrono::seconds;

  void SetUp() override {
    options_.job_name = "job";
    options_.job_uid = "job-uid";
    options_.pod_name = "p0";
    options_.pod_uid = "u0";
    options_.operator_target = operator_target_;
    AgentOutputs outputs;
    outputs.clock.now = [this] { return now_; };
    outputs.clock.unix_ms = [] { return int64_t{1000}; };
    outputs.persist =
        [this](const membership::PersistentState&) -> tl::expected<void, std::string> {
      log_.push_back(disk_full_ ? "persist failed" : "persist");
      if (disk_full_) return tl::unexpected(std::string("no space"));
      return {};
    };
    outputs.link.send = [this](uint64_t to, const json& frame) {
      log_.push_back(frame["t"]);
      if (frame["t"] == "error") errors_[to] = frame["message"];
    };
    outputs.link.refuse = [](uint64_t, const std::string&) {};
    outputs.link.drop = [](uint64_t) {};
    outputs.peers.deliver = [this](const std::string& to, const std::string&,
                                   const Message& message, const std::string&) {
      log_.push_back(std::string(membership::MessageKindText(message.kind)) + " to " + to);
      if (message.kind == MessageKind::kSuspect) suspected_ = message.pods;
    };
    outputs.job_operator.ask_record = [this](const Message&) { log_.push_back("record"); };
    outputs.peers.watch = [this](const std::vector<membership::Pod>& pods) {
      watched_ = pods.size();
    };
    outputs.peers.suspects = [](const std::string&) { return false; };
    outputs.peers.look_around = [](const std::string&) { return std::vector<std::string>(); };
    outputs.peers.unreachable = [this](const std::string& pod) { return pod == unreachable_; };
    outputs.peers.set_news = [](Epoch, uint64_t) {};
    outputs.job_operator.report_readiness = [this](bool ready, const std::vector<uint32_t>& missing,
                                                   const std::string&) {
      ready_ = ready;
      missing_ = missing;
    };
    outputs.job_operator.report_view = [this](const membership::ViewPtr& view,
                                              const std::string& rebuild, uint64_t) {
      reported_view_ = membership::EncodeView(*view);
      rebuild_ = rebuild;
    };
    outputs.job_operator.report_exit = [this](const job::WorkerExit& exit) {
      exits_.push_back(exit);
    };
    outputs.job_operator.report_finished = [](Epoch) {};
    outputs.job_operator.report_health = [this](bool able, milliseconds unable) {
      healths_.emplace_back(able, unable);
    };
    outputs.job_operator.report_stalls = [this](const std::vector<job::Stall>& stalls) {
      stalls_.push_back(stalls.empty() ? "none" : job::Describe(stalls[0]));
    };
    outputs.job_operator.report_failing_gpus = [this](const std::vector<job::GpuHealth>& gpus) {
      for (const job::GpuHealth& gpu : gpus) failing_gpus_.push_back(job::Describe(gpu));
    };
    outputs.job_operator.report_step_awaited = [this](milliseconds awaited) {
      awaited_.push_back(awaited);
    };
    outputs.job_operator.report_all_leave = [this] { log_.push_back("all leave"); };
    outputs.job_operator.report_recovery = [this](const membership::RecoveryReport& report) {
      log_.push_back("report");
      report_ = report;
    };
    membership::Pod self;
    self.uid = "u0";
    self.name = "p0";
    agent_ = std::make_unique<Agent>(options_, self, stored_, outputs, &metrics_);
    agent_->Start();
  }

  // The launcher names the worker of slot 0, which began then.
  void NameWorker(SteadyTime began) {
    const auto us =
        std::chrono::duration_cast<std::chrono::microseconds>(began.time_since_epoch()).count();
    agent_->workers().OnHello(
        1, true,
        {{"slots", 1},
         {"running", {{{"slot", 0}, {"incarnation", 1}, {"pid", 9}, {"beganUs", us}}}}},
        0);
  }
  // The worker of slot 0, connected and waiting in init.
  void StartWorker() {
    agent_->workers().OnHello(
        1, true, {{"slots", 1}, {"running", {{{"slot", 0}, {"incarnation", 1}, {"pid", 9}}}}}, 0);
    agent_->workers().OnHello(2, false, {{"slot", 0}, {"incarnation", 1}, {"tcp", "t"}}, 0);
    agent_->workers().OnFrame(2, {{"t", "enter"}});
  }

  // u0 and two others, one rank each, u1 coordinates.
  static std::string FirstView() {
    membership::View view;
    view.epoch = membership::MakeEpoch(1, 1);
    view.coordinator = "u1";
    for (uint32_t i = 0; i < 3; ++i) {
      membership::Pod pod;
      pod.uid = "u" + std::to_string(i);
      pod.name = "p" + std::to_string(i);
      pod.incarnation = 1;
      pod.address = "10.0.0.1:" + std::to_string(100 + i);
      pod.heartbeat = pod.http = pod.address;
      view.pods.push_back(pod);
      view.ranks.push_back({.pod = i, .slot = 0, .incarnation = 1, .tcp = "t", .shm = ""});
    }
    return membership::EncodeView(view);
  }
  // The successor of the first view, made because that pod is lost.
  static std::string ViewWithout(const std::string& pod) {
    membership::View view = *membership::DecodeView(FirstView());
    view.parent = view.epoch;
    view.epoch = membership::MakeEpoch(1, 2);
    view.reason = membership::Reason::kPodLost;
    const int gone = view.FindPod(pod);
    view.pods.erase(view.pods.begin() + gone);
    view.ranks.erase(view.ranks.begin() + gone);
    return membership::EncodeView(view);
  }

  bool Logged(const std::string& entry) const {
    return std::find(log_.begin(), log_.end(), entry) != log_.end();
  }
  void Resigns(const std::string& pod) {
    Message message;
    message.kind = MessageKind::kResign;
    message.from = pod;
    message.incarnation = 1;
    message.view = membership::MakeEpoch(1, 1);
    agent_->peers().OnMessage(membership::EncodeMessage(message), pod, "");
  }
  void Advance(milliseconds by) { AdvanceWithPingsOf(2, by); }
  void AdvanceWithPingsOf(uint64_t connection, milliseconds by) {
    for (milliseconds step(50); by.count() > 0; by -= step) {
      now_ += step;
      agent_->workers().OnFrame(connection, {{"t", "ping"}, {"n", 1}});
      agent_->Tick();
    }
  }

  // Of the view that all three have been in nobody trains any more; connection 3 is a new worker.
  void LoseAllWorkers() {
    StartWorker();
    agent_->orders().OnViewDecided(FirstView());
    agent_->workers().OnFrame(
        1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 137}, {"signal", 9}});
    agent_->workers().OnHello(3, false, {{"slot", 0}, {"incarnation", 2}, {"tcp", "t"}}, 0);
    Resigns("u1");
    AdvanceWithPingsOf(3, seconds(4));
    EXPECT_TRUE(errors_.empty()) << "u2 may go on";
    Resigns("u2");
  }

  std::string operator_target_ = "unix:/nowhere";
  SidecarOptions options_;
  health::Metrics metrics_{"default", "job", "p0"};
  SteadyTime now_{seconds(1000)};
  bool disk_full_ = false, ready_ = false;
  std::vector<uint32_t> missing_;
  size_t watched_ = 0;
  std::string reported_view_;
  membership::PersistentState stored_{.incarnation = 1};
  std::string unreachable_;
  std::string rebuild_;
  std::vector<std::string> log_;
  std::vector<std::string> suspected_;      // in the last message that says so
  std::map<uint64_t, std::string> errors_;  // by connection
  std::vector<job::WorkerExit> exits_;
  std::vector<std::string> stalls_;
  std::vector<std::string> failing_gpus_;
  std::vector<milliseconds> awaited_;  // for how long the end of a step, as it was reported
  std::vector<std::pair<bool, milliseconds>> healths_;
  membership::RecoveryReport report_;
  std::unique_ptr<Agent> agent_;
};

}  // namespace ringmaster::app
