// Members with a network, disks, workers and a record that a test controls. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/membership/member.h"
#include "common/membership/next_view.h"
#include "common/membership/quorum_record.h"

namespace ringmaster::membership {

using std::chrono::milliseconds;

// Delivers at once and in order what is sent, except to members that are cut off. Workers stop,
// reach boundaries and complete operations as soon as they are asked.
class Job {
 public:
  explicit Job(int pods, int slots = 1, std::uint32_t min_pods = 1) : min_pods_(min_pods) {
    std::vector<Candidate> candidates;
    for (int i = 0; i < pods; ++i) candidates.push_back(NewCandidate(i, slots));
    first_ = std::make_shared<const View>(BootstrapView(candidates, min_pods));
    record_ = NewRecord(first_);
    for (const Candidate& candidate : candidates) Start(candidate);
    for (const Candidate& candidate : candidates) Give(candidate.pod.uid, ViewDecided{first_});
  }

  static std::string Uid(int i) { return "p" + std::to_string(i); }

  Candidate NewCandidate(int i, int slots) {
    Candidate candidate;
    candidate.pod = {Uid(i), "job-worker-" + std::to_string(i), 1, "n", "z", Uid(i) + ":1", "", ""};
    for (int s = 0; s < slots; ++s) {
      candidate.workers.push_back({static_cast<std::uint32_t>(s), 1, "", "", true});
    }
    return candidate;
  }

  void Start(const Candidate& candidate, PersistentState state = {1}) {
    Config config;
    config.self = candidate.pod;
    config.sizes.least = min_pods_;
    members_.erase(candidate.pod.uid);
    members_.emplace(candidate.pod.uid, Member(config, std::move(state)));
    workers_[candidate.pod.uid] = candidate.workers;
    Give(candidate.pod.uid, Started{});
    Give(candidate.pod.uid, WorkersChanged{candidate.workers});
  }

  void Give(const std::string& uid, const Event& event) { GiveAll(uid, {event}); }
  // Gives a member all events before the actions that follow from the first one reach other
  // members.
  void GiveAll(const std::string& uid, const std::vector<Event>& events) {
    for (const Event& event : events) queue_.push_back({uid, event});
    Run();
  }

  void Run() {
    while (!queue_.empty()) {
      auto [uid, event] = queue_.front();
      queue_.pop_front();
      if (silent_.contains(uid)) continue;
      for (Action& action : members_.at(uid).Step(event, now_)) Do(uid, action);
    }
  }

  void Pass(milliseconds time) {
    for (milliseconds step{0}; step < time; step += milliseconds(10)) {
      now_ += milliseconds(10);
      for (auto& [uid, member] : members_) {
        if (auto at = member.NextDeadline(); at && *at <= now_) Give(uid, Tick{});
        auto next = member.NextDeadline();
        EXPECT_TRUE(silent_.contains(uid) || !next || *next > now_)
            << uid << " would be woken again and again for nothing";
      }
    }
  }

  void KillWorker(const std::string& uid, std::uint32_t slot) {
    std::erase_if(workers_[uid], [&](const Worker& worker) { return worker.slot == slot; });
    Give(uid, WorkersChanged{workers_[uid]});
  }
  void StartWorker(const std::string& uid, std::uint32_t slot, std::uint64_t incarnation) {
    workers_[uid].push_back({slot, incarnation, "", "", true});
    Give(uid, WorkersChanged{workers_[uid]});
  }

  const View& ViewOf(const std::string& uid) { return *members_.at(uid).current(); }
  Member& operator[](const std::string& uid) { return members_.at(uid); }

  std::vector<std::string> Pods(const std::string& uid) {
    std::vector<std::string> pods;
    for (const Pod& pod : ViewOf(uid).pods) pods.push_back(pod.uid);
    return pods;
  }

  std::set<std::string> silent_;  // members that are cut off
  // Which messages are delivered; null: all.
  std::function<bool(const std::string& to, const Message& message)> takes_;
  bool boundary_ = true;    // workers reach it when armed
  bool stops_ = true;       // workers stop when asked
  bool operations_ = true;  // workers complete one as soon as they have a view
  bool record_up_ = true;
  int to_record_ = 0;
  std::map<std::string, PersistentState> disk_;
  std::map<std::string, std::vector<std::string>> log_;  // kinds of actions, in order
  std::map<std::string, RecoveryReport> reports_;
  ViewPtr first_;
  QuorumRecord record_;
  TimePoint now_ = TimePoint(milliseconds(1000));

 private:
  void Do(const std::string& uid, Action& action) {
    if (auto* persist = std::get_if<Persist>(&action)) {
      disk_[uid] = persist->state;
      log_[uid].push_back("persist");
    } else if (auto* send = std::get_if<Send>(&action)) {
      log_[uid].push_back(std::string(MessageKindText(send->message.kind)));
      if (!members_.contains(send->to) || silent_.contains(send->to)) return;
      if (takes_ && !takes_(send->to, send->message)) return;
      queue_.push_back({send->to, MessageReceived{send->message, uid + ":1"}});
    } else if (auto* ask = std::get_if<SendToRecord>(&action)) {
      if (ask->message.kind != MessageKind::kDecided) ++to_record_;
      if (!record_up_) return;
      RecordResult result = AnswerAsRecord(record_, ask->message);
      record_ = result.state;
      queue_.push_back({uid, RecordAnswered{result.answer}});
    } else if (auto* stop = std::get_if<StopWorkers>(&action)) {
      log_[uid].push_back("stop");
      if (stops_) queue_.push_back({uid, WorkersStopped{stop->epoch}});
    } else if (auto* arm = std::get_if<ArmWorkers>(&action)) {
      log_[uid].push_back("arm");
      if (boundary_) queue_.push_back({uid, BoundaryReached{arm->epoch}});
    } else if (auto* install = std::get_if<InstallView>(&action)) {
      log_[uid].push_back("install");
      if (operations_ && install->view->train)
        queue_.push_back({uid, FirstOperationDone{install->view->epoch}});
    } else if (std::get_if<LeftByPlan>(&action)) {
      log_[uid].push_back("left");
    } else if (auto* report = std::get_if<ReportToOperator>(&action)) {
      log_[uid].push_back("report");
      reports_[uid] = report->report;
    }
  }

  std::uint32_t min_pods_;
  std::map<std::string, Member> members_;
  std::map<std::string, std::vector<Worker>> workers_;
  std::deque<std::pair<std::string, Event>> queue_;
};

using Uids = std::vector<std::string>;

}  // namespace ringmaster::membership
