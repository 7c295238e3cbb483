// The parts of an agent with fake outputs, for their tests: a pod u0 whose view is {u0, u1, u2},
// one rank each.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/job/rebuild.h"
#include "common/job/worker_exit.h"
#include "common/membership/message_json.h"
#include "sidecar/app/departure.h"
#include "sidecar/app/membership_loop.h"
#include "sidecar/app/operator_reports.h"
#include "sidecar/app/peer_monitor.h"
#include "sidecar/app/training_history.h"
#include "sidecar/app/worker_table.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app::testing_parts {

struct AgentParts {
  AgentParts()
      : clock{[this] { return now; }, [] { return int64_t{1000}; }},
        history(1, &metrics),
        reports(Reports()),
        membership(SelfConfig(), State(), Hooks()),
        table({.job = "job", .pod = "p0", .pod_uid = "u0", .slots = 1}, Table()),
        departure("u0", std::chrono::seconds(30), clock, &membership, &table),
        peers("u0", clock, Peers(), &membership, &departure, &history.tracker()) {
    membership.Feed(membership::Started{});
  }
  AgentParts(const AgentParts&) = delete;
  AgentParts& operator=(const AgentParts&) = delete;

  static ViewPtr FirstView() {
    membership::View view;
    view.epoch = membership::MakeEpoch(1, 1);
    view.coordinator = "u1";
    for (uint32_t i = 0; i < 3; ++i) {
      membership::Pod pod;
      pod.uid = "u" + std::to_string(i);
      pod.name = "p" + std::to_string(i);
      pod.incarnation = 1;
      pod.address = pod.heartbeat = pod.http = "10.0.0.1:" + std::to_string(100 + i);
      view.pods.push_back(pod);
      view.ranks.push_back({.pod = i, .slot = 0, .incarnation = 1, .tcp = "t", .shm = ""});
    }
    return std::make_shared<const membership::View>(view);
  }

  // Connection 1 is the launcher, 2 the worker of slot 0, in the first view.
  void StartTraining() {
    table.orders().SettleWelcome();
    const nlohmann::json running = {{{"slot", 0}, {"incarnation", 1}, {"pid", 9}}};
    table.OnHello(1, true, {{"slots", 1}, {"running", running}}, 0, now);
    table.OnHello(2, false, {{"slot", 0}, {"incarnation", 1}, {"tcp", "t"}}, 0, now);
    membership.Feed(membership::WorkersChanged{table.processes().Living()});
    membership.Feed(membership::ViewDecided{FirstView()});
    log.clear();
  }

  bool Logged(const std::string& entry) const {
    for (const std::string& line : log) {
      if (line == entry) return true;
    }
    return false;
  }

  SteadyTime now{std::chrono::seconds(1000)};
  std::vector<std::string> log;        // what went out, to all sides
  nlohmann::json to_launcher;          // the last frame to it
  std::string unreachable;             // the pod whose sidecar's connection is closed
  std::vector<std::string> unsettled;  // pods of which it is not known whether they live
  health::Metrics metrics{"default", "job", "p0"};
  AgentClock clock;
  TrainingHistory history;
  OperatorReports reports;
  MembershipLoop membership;
  WorkerTable table;
  Departure departure;
  PeerMonitor peers;

 private:
  static membership::Config SelfConfig() {
    membership::Config config;
    config.self.uid = "u0";
    config.self.name = "p0";
    return config;
  }
  static membership::PersistentState State() {
    membership::PersistentState state;
    state.incarnation = 1;
    return state;
  }
  MembershipHooks Hooks() {
    MembershipHooks hooks;
    hooks.now = clock.now;
    hooks.persist = [](const membership::PersistentState&) {
      return tl::expected<void, std::string>();
    };
    hooks.run = [this](const membership::Action& action) { Run(action); };
    hooks.stepped = [] {};
    hooks.settled = [] {};
    return hooks;
  }
  void Run(const membership::Action& action) {
    if (auto* install = std::get_if<membership::InstallView>(&action)) {
      membership.SetInstalled(install->view);
      table.orders().Install(install->view, now);
    } else if (auto* send = std::get_if<membership::Send>(&action)) {
      peers.Deliver(*send);
    }
  }
  WorkerTableCallbacks Table() {
    WorkerTableCallbacks callbacks;
    callbacks.send = [this](uint64_t to, const nlohmann::json& frame) {
      log.push_back(frame["t"].get<std::string>() + " to " + std::to_string(to));
      if (to == 1) to_launcher = frame;
    };
    callbacks.refuse = [](uint64_t, const std::string&) {};
    callbacks.drop = [](uint64_t) {};
    callbacks.changed = [] {};
    callbacks.stopped = callbacks.boundary = callbacks.ran = callbacks.finished = [](Epoch) {};
    callbacks.rebuilt = [](const job::Rebuild&) {};
    callbacks.suspects = [](Epoch, int, const std::string&) {};
    callbacks.broken = [](Epoch, int, const std::string&) {};
    callbacks.exited = [](const job::WorkerExit&) {};
    callbacks.terminate = [] {};
    return callbacks;
  }
  PeerOutputs Peers() {
    PeerOutputs outputs;
    outputs.deliver = [this](const std::string& to, const std::string&,
                             const membership::Message& message, const std::string&) {
      log.push_back(std::string(membership::MessageKindText(message.kind)) + " to " + to);
    };
    outputs.watch = [](const std::vector<membership::Pod>&) {};
    outputs.suspects = [](const std::string&) { return false; };
    outputs.look_around = [this](const std::string&) { return unsettled; };
    outputs.unreachable = [this](const std::string& pod) { return pod == unreachable; };
    outputs.set_news = [](Epoch, uint64_t) {};
    return outputs;
  }
  OperatorOutputs Reports() {
    OperatorOutputs outputs;
    outputs.ask_record = [](const membership::Message&) {};
    outputs.report_readiness = [this](bool, const std::vector<uint32_t>&, const std::string&) {
      log.push_back("readiness");
    };
    outputs.report_view = [this](const membership::ViewPtr&, const std::string& rebuild, uint64_t) {
      log.push_back(rebuild.empty() ? "view" : "rebuild");
    };
    outputs.report_exit = [this](const job::WorkerExit& exit) {
      log.push_back(exit.by_us ? "exit by us" : "exit");
    };
    outputs.report_finished = [this](Epoch) { log.push_back("finished"); };
    outputs.report_health = [this](bool able, std::chrono::milliseconds) {
      log.push_back(able ? "able" : "unable");
    };
    outputs.report_stalls = [](const std::vector<job::Stall>&) {};
    outputs.report_failing_gpus = [](const std::vector<job::GpuHealth>&) {};
    outputs.report_step_awaited = [](std::chrono::milliseconds) {};
    outputs.report_all_leave = [this] { log.push_back("all leave"); };
    outputs.report_recovery = [](const membership::RecoveryReport&) {};
    return outputs;
  }
};

}  // namespace ringmaster::app::testing_parts
