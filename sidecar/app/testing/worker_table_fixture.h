// A worker table whose launcher and workers are the test, and whose clock is moved by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sidecar/app/worker_table.h"

namespace ringmaster::app {

using membership::MakeEpoch;
using membership::View;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline const Epoch kFirst = MakeEpoch(1, 1), kSecond = MakeEpoch(1, 2);

class WorkerTableTest : public testing::Test {
 protected:
  void Make(int slots, bool settle = true) {
    WorkerTableCallbacks callbacks;
    callbacks.send = [this](uint64_t connection, const json& frame) {
      sent_.push_back({connection, frame});
    };
    callbacks.refuse = [this](uint64_t, const std::string& message) {
      refused_.push_back(message);
    };
    callbacks.drop = [this](uint64_t connection) { dropped_.push_back(connection); };
    callbacks.changed = [this] {
      ++changes_;
      if (changed_) changed_();
    };
    callbacks.stopped = [this](Epoch epoch) { stopped_.push_back(epoch); };
    callbacks.boundary = [this](Epoch epoch) { boundaries_.push_back(epoch); };
    callbacks.rebuilt = [](const job::Rebuild&) {};
    callbacks.ran = [this](Epoch epoch) { ran_.push_back(epoch); };
    callbacks.suspects = [](Epoch, int, const std::string&) {};
    callbacks.broken = [](Epoch, int, const std::string&) {};
    callbacks.finished = [this](Epoch epoch) { finished_.push_back(epoch); };
    callbacks.exited = [this](const job::WorkerExit& exit) { exits_.push_back(exit); };
    callbacks.terminate = [] {};
    table_ = std::make_unique<WorkerTable>(WorkerTableOptions{.job = "job",
                                                              .pod = "p0",
                                                              .pod_uid = "u0",
                                                              .slots = slots,
                                                              .stopped_for = stopped_for_},
                                           callbacks);
    if (settle) table_->orders().SettleWelcome();
  }

  void Launcher(json running = json::array()) {
    table_->OnHello(1, true, {{"slots", Slots()}, {"running", running}}, 0, now_);
  }
  // pid 0 and peer 0: another pid namespace.
  void Worker(uint64_t connection, int slot, uint64_t incarnation, Epoch epoch = 0,
              bool standby = false, int pid = 0) {
    table_->OnHello(connection, false,
                    {{"slot", slot},
                     {"incarnation", incarnation},
                     {"standby", standby},
                     {"epoch", epoch},
                     {"tcp", "t"},
                     {"shm", "s"},
                     {"pid", pid}},
                    pid, now_);
  }
  void Frame(uint64_t connection, const json& frame) { table_->OnFrame(connection, frame, now_); }
  int Slots() const { return slots_; }

  static ViewPtr MakeView(Epoch epoch, std::vector<std::pair<int, uint64_t>> own) {
    View view;
    view.epoch = epoch;
    view.parent = epoch - 1;
    view.pods.push_back({.uid = "u0", .name = "p0"});
    for (auto [slot, incarnation] : own) {
      view.ranks.push_back(
          {.pod = 0, .slot = static_cast<uint32_t>(slot), .incarnation = incarnation});
    }
    return std::make_shared<const View>(view);
  }

  std::vector<std::string> TypesTo(uint64_t connection) const {
    std::vector<std::string> types;
    for (const auto& [to, frame] : sent_) {
      if (to == connection) types.push_back(frame["t"]);
    }
    return types;
  }
  json LastTo(uint64_t connection, const std::string& type) const {
    for (auto it = sent_.rbegin(); it != sent_.rend(); ++it) {
      if (it->first == connection && it->second["t"] == type) return it->second;
    }
    return json::object();
  }

  // Time passes, and the table is looked after as in a sidecar that is awake.
  void Pass(milliseconds time) {
    for (const SteadyTime end = now_ + time; now_ < end;) {
      now_ = std::min(end, now_ + milliseconds(250));
      table_->Tick(now_);
    }
  }

  int slots_ = 1;
  milliseconds stopped_for_{1000};
  std::unique_ptr<WorkerTable> table_;
  std::vector<std::pair<uint64_t, json>> sent_;
  std::vector<std::string> refused_;
  std::vector<uint64_t> dropped_;
  std::vector<Epoch> stopped_, boundaries_, ran_, finished_;
  std::vector<job::WorkerExit> exits_;
  int changes_ = 0;
  std::function<void()> changed_;
  SteadyTime now_{};
};

}  // namespace ringmaster::app
