// The sidecar without its sockets: it feeds the membership machine what happens, carries out what
// it decides, and keeps what /status and the metrics show.
//
// Thread rule: the sidecar's loop only. Outputs may be called at any time inside a call and must
// not call back in.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "common/membership/member.h"
#include "sidecar/app/options.h"
#include "sidecar/app/rebuild_tracker.h"
#include "sidecar/app/worker_table.h"
#include "sidecar/health/rebuild_log.h"

namespace ringmaster::health {
class Metrics;
}

namespace ringmaster::app {

struct AgentOutputs {
  std::function<SteadyTime()> now;
  std::function<int64_t()> unix_ms;
  std::function<tl::expected<void, std::string>(const membership::PersistentState&)> persist;
  std::function<void(uint64_t connection, const nlohmann::json& frame)> link_send;
  std::function<void(uint64_t connection, const std::string& message)> link_refuse;
  std::function<void(const std::string& pod, const std::string& address,
                     const membership::Message&)>
      deliver;
  std::function<void(const membership::Message&)> ask_record;
  // The pods of the view that is installed now, the own one included.
  std::function<void(const std::vector<membership::Pod>&)> watch;
  std::function<bool(const std::string& pod)> suspects;
  // Its sidecar's connection is closed: it is suspected soon, unless it comes back.
  std::function<bool(const std::string& pod)> unreachable;
  std::function<void(Epoch, uint64_t step)> set_news;  // what heartbeats say
  std::function<void(bool ready, const std::vector<uint32_t>& missing,
                     const std::string& candidate)>
      report_readiness;
  std::function<void(const std::string& view, const std::string& rebuild, uint64_t step)>
      report_view;
  std::function<void(const job::WorkerExit&)> report_exit;
  std::function<void(Epoch)> report_finished;
  // Whether this pod is in a view that can train, as far as it knows; else for how long not.
  std::function<void(bool able, std::chrono::milliseconds unable)> report_health;
  std::function<void(const membership::RecoveryReport&)> report_recovery;
};

class Agent {
 public:
  Agent(const SidecarOptions& options, membership::Pod self, membership::PersistentState state,
        AgentOutputs outputs, health::Metrics* metrics);

  void Start();
  // Every quarter of a second, at NextWake(), and every few milliseconds while Hurried().
  void Tick();
  SteadyTime NextWake() const;
  bool Hurried() const { return table_.Doubtful(); }

  // The worker link.
  void OnHello(uint64_t connection, bool launcher, const nlohmann::json& hello, int peer_pid);
  void OnFrame(uint64_t connection, const nlohmann::json& frame);
  void OnClosed(uint64_t connection);

  // Other sidecars.
  void OnMessage(const std::string& body, const std::string& from, const std::string& address);
  void OnRecordAnswer(const std::string& body);
  void OnSuspect(const std::string& pod, const std::string& why);
  void OnUnreachable(const std::string& pod, const std::string& why);
  void OnHeard(const std::string& pod, Epoch epoch, uint64_t step);

  // The operator.
  void OnOperator(bool connected);
  void OnAccepted();
  void OnViewDecided(const std::string& view);
  void OnDrain(const std::vector<std::string>& pods, const std::string& reason,
               int64_t deadline_unix_ms);
  void OnTarget(uint32_t min_pods, uint32_t expected_pods);
  void OnFinish(const std::string& reason);
  void OnRecover(uint64_t lineage, bool fresh_workers);

  // SIGTERM: drain, then end.
  void Terminate();
  // Nothing is left to do here; the exit code is 0 unless the state could not be stored.
  bool Done() const { return done_; }
  int exit_code() const { return exit_code_; }

  bool Healthy() const { return exit_code_ == 0; }
  bool Ready() const;
  nlohmann::json Status() const;

 private:
  WorkerTableCallbacks TableCallbacks();
  void Feed(membership::Event event);
  void Run(const membership::Action& action);
  void AfterEvents();
  void Install(const ViewPtr& view);
  void LeaveByPlan(const std::string& reason);
  void Drain(const std::vector<std::string>& pods, const std::string& reason,
             std::optional<SteadyTime> deadline);
  bool EverybodyLeaves() const;
  void Fail(const std::string& error);

  void OnWorkersChanged();
  void OnProcessExit(const job::WorkerExit& exit);
  void OnRebuilt(const job::Rebuild& figures);
  void TellNews(Epoch epoch);
  void OnWorkerSuspects(Epoch epoch, int rank, const std::string& reason);
  void OnFinished(Epoch epoch);

  void ReportReadiness();
  void CheckInitTimeout();
  void CheckStateLost();
  void CheckHealth();
  void CheckSuspicions();
  void CheckTermination();
  void SampleProgress();
  void RememberProgress();
  uint64_t Step() const;
  double SamplesPerSecond() const;
  std::string State() const;
  nlohmann::json WorkerStatus(const WorkerProcess& worker) const;
  Epoch CurrentEpoch() const { return membership::EpochOf(member_.current()); }

  const SidecarOptions options_;
  const membership::Pod self_;
  const AgentOutputs outputs_;
  health::Metrics* const metrics_;
  membership::Member member_;
  WorkerTable table_;
  health::RebuildLog rebuilds_;
  RebuildTracker tracker_{&rebuilds_};

  std::deque<membership::Event> events_;  // fed while another is worked on
  bool working_ = false;
  ViewPtr installed_;  // the newest view handed to the workers

  // Suspicions that workers have of ranks of the current view: they count when they last, or at
  // once when the pod's sidecar is unreachable too.
  std::map<int, SteadyTime> rank_suspicions_;
  Epoch rank_suspicions_epoch_ = 0;
  std::deque<std::pair<SteadyTime, double>> samples_;
  // Of workers that have ended, too: /status goes on to tell how far the pod got and why a process
  // is no more.
  static constexpr size_t kKeepExits = 32;
  uint64_t highest_step_ = 0;
  std::map<std::string, double> last_values_;
  std::deque<job::WorkerExit> exits_;

  std::string reported_readiness_;
  std::optional<bool> reported_able_;
  std::optional<SteadyTime> unable_since_;
  SteadyTime started_at_{};
  std::optional<SteadyTime> accepted_at_, target_at_;
  bool operator_connected_ = false;
  bool init_timeout_said_ = false;
  bool workers_known_ = false;
  bool draining_ = false, left_ = false, terminating_ = false, stop_sent_ = false;
  std::string drain_reason_;
  std::set<std::string> drained_pods_;  // asked to leave, as far as this sidecar was told
  SteadyTime resign_at_{}, give_up_at_{};
  std::optional<SteadyTime> gone_since_;  // terminating and no worker lives
  bool finishing_ = false;
  std::optional<SteadyTime> finishing_since_;
  std::optional<SteadyTime> state_lost_since_;
  bool gave_up_ = false;
  bool done_ = false;
  int exit_code_ = 0;
};

}  // namespace ringmaster::app
