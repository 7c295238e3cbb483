#include "sidecar/app/agent.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/membership/message_json.h"
#include "common/membership/view_json.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app {
namespace {

using membership::EpochText;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A broken ring between two living pods needs a new view too; a dead rank is known from its own
// sidecar long before.
constexpr seconds kRankSuspicion{3};
constexpr char kAllGone[] = "the connections to its sidecar and to a worker of it are closed";
// The operator says the target and, if the job has a view, Found in one breath; Accepted comes
// before it has looked.
constexpr milliseconds kFoundMayFollow{100};
constexpr seconds kOperatorLooks{3};
// Of the time until a pod is killed: for resigning, where the boundary did not come. Half of it
// where there is little.
constexpr seconds kResignReserve{2};
// However little is said to be left: the word may come late, is in whole seconds, and kubelets give
// two seconds to who has none.
constexpr milliseconds kLeastForBoundary{250};
// After the last worker is gone others may still ask for the view that was decided. At the end of
// the job nobody does: it is only the word that all have agreed to end that has to be out, and
// workers take their time to exit after it.
constexpr milliseconds kLinger{300};
constexpr seconds kWithoutLauncher{2};
// What a worker knows of the view's first operation comes with its pings, several in this time.
constexpr seconds kStateLost{2};
// Nearly every view is followed by the next in less, and nobody need know.
constexpr seconds kUnable{1};

// Until when a pod that is killed in `left` may wait for the boundary.
milliseconds ForBoundary(milliseconds left) {
  return std::max(left - std::min<milliseconds>(kResignReserve, left / 2), kLeastForBoundary);
}

membership::Config MemberConfig(const membership::Pod& self) {
  membership::Config config;
  config.self = self;
  config.seed = std::hash<std::string>()(self.uid) | 1;
  return config;
}

}  // namespace

Agent::Agent(const SidecarOptions& options, membership::Pod self, membership::PersistentState state,
             AgentOutputs outputs, health::Metrics* metrics)
    : options_(options),
      self_(std::move(self)),
      outputs_(std::move(outputs)),
      metrics_(metrics),
      member_(MemberConfig(self_), std::move(state)),
      table_({.job = options.job_uid,
              .pod = options.pod_name,
              .pod_uid = options.pod_uid,
              .slots = options.slots},
             TableCallbacks()) {}

WorkerTableCallbacks Agent::TableCallbacks() {
  WorkerTableCallbacks callbacks;
  callbacks.send = outputs_.link_send;
  callbacks.refuse = outputs_.link_refuse;
  callbacks.changed = [this] { OnWorkersChanged(); };
  callbacks.stopped = [this](Epoch epoch) {
    tracker_.Stopped(outputs_.now());
    Feed(membership::WorkersStopped{epoch});
  };
  callbacks.boundary = [this](Epoch epoch) {
    Feed(membership::BoundaryReached{epoch});
    if (epoch == CurrentEpoch() && EverybodyLeaves()) LeaveByPlan(drain_reason_);
  };
  callbacks.rebuilt = [this](const job::Rebuild& figures) { OnRebuilt(figures); };
  callbacks.ran = [this](Epoch epoch) { Feed(membership::FirstOperationDone{epoch}); };
  callbacks.suspects = [this](Epoch epoch, int rank, const std::string& why) {
    OnWorkerSuspects(epoch, rank, why);
  };
  callbacks.finished = [this](Epoch epoch) { OnFinished(epoch); };
  callbacks.exited = [this](const job::WorkerExit& exit) { OnProcessExit(exit); };
  callbacks.terminate = [this] {
    Drain({self_.uid}, "SIGTERM", outputs_.now() + ForBoundary(options_.grace));
  };
  return callbacks;
}

void Agent::Start() {
  started_at_ = outputs_.now();
  if (member_.current() != nullptr) {
    installed_ = member_.current();
    table_.Restore(installed_);
    table_.SettleWelcome();
    spdlog::info("state reloaded epoch={} incarnation={}", EpochText(CurrentEpoch()),
                 member_.state().incarnation);
    outputs_.watch(installed_->pods);
    TellNews(CurrentEpoch());
  }
  if (options_.operator_target.empty()) table_.SettleWelcome();
  Feed(membership::Started{});
}

// ---- Events in, actions out

void Agent::Feed(membership::Event event) {
  if (done_) return;
  events_.push_back(std::move(event));
  // The loop below takes it: the actions of one event are finished before the next.
  if (working_) return;
  working_ = true;
  while (!events_.empty() && !done_) {
    membership::Event next = std::move(events_.front());
    events_.pop_front();
    for (const membership::Action& action : member_.Step(next, outputs_.now())) {
      if (done_) break;  // not stored: nothing that comes after may happen
      Run(action);
    }
    if (member_.changing()) tracker_.Noticed(outputs_.now(), outputs_.unix_ms());
  }
  working_ = false;
  AfterEvents();
}

void Agent::Run(const membership::Action& action) {
  if (auto* persist = std::get_if<membership::Persist>(&action)) {
    auto stored = outputs_.persist(persist->state);
    if (!stored) Fail(stored.error());
  } else if (auto* send = std::get_if<membership::Send>(&action)) {
    outputs_.deliver(send->to, send->address, send->message);
  } else if (auto* record = std::get_if<membership::SendToRecord>(&action)) {
    outputs_.ask_record(record->message);
  } else if (auto* stop = std::get_if<membership::StopWorkers>(&action)) {
    tracker_.Noticed(outputs_.now(), outputs_.unix_ms());
    tracker_.StopAsked(outputs_.now());
    table_.Stop(stop->epoch);
  } else if (auto* arm = std::get_if<membership::ArmWorkers>(&action)) {
    table_.Arm(arm->epoch);
  } else if (auto* install = std::get_if<membership::InstallView>(&action)) {
    Install(install->view);
  } else if (std::get_if<membership::LeftByPlan>(&action) != nullptr) {
    LeaveByPlan(drain_reason_.empty() ? "drained" : drain_reason_);
  } else if (auto* report = std::get_if<membership::ReportToArbiter>(&action)) {
    membership::RecoveryReport told = report->report;
    told.candidate.workers = table_.Living();  // it knows which of them have been in a view
    outputs_.report_recovery(told);
  } else if (auto* log = std::get_if<membership::Log>(&action)) {
    spdlog::info("membership note=\"{}\" epoch={}", log->text, EpochText(CurrentEpoch()));
  }
}

void Agent::Fail(const std::string& error) {
  spdlog::error("giving up error=\"{}\"", error);
  exit_code_ = 1;
  done_ = true;
}

void Agent::AfterEvents() {
  TellNews(CurrentEpoch());
  metrics_->SetCoordinator(member_.is_coordinator());
  if (member_.current() != nullptr && installed_ == nullptr) {
    // A view that does not list us: workers that come now are joiners.
    table_.Restore(member_.current());
    table_.SettleWelcome();
  }
  ReportReadiness();
  CheckHealth();
}

void Agent::Install(const ViewPtr& view) {
  const SteadyTime now = outputs_.now();
  const ViewPtr before = std::exchange(installed_, view);
  const bool listed = view->FindPod(self_.uid) >= 0;
  spdlog::info(
      "view installed epoch={} reason={} pods={} ranks={} train={} planned={} coordinator={} "
      "listed={}",
      EpochText(view->epoch), membership::ReasonText(view->reason), view->pods.size(),
      view->ranks.size(), view->train, view->planned, view->coordinator, listed);
  table_.Install(view);
  TellNews(view->epoch);
  outputs_.watch(listed ? view->pods : std::vector<membership::Pod>{});
  rank_suspicions_.clear();
  job::Rebuild* rebuild =
      tracker_.Installed(before.get(), *view, options_.slots, now, outputs_.unix_ms());
  if (view->reason == membership::Reason::kBootstrap) {  // anew: steps are counted from the first
    highest_step_ = 0;
    tracker_.ForgetSteps();
  }
  metrics_->SetEpoch(view->epoch);
  metrics_->SetWorldSize(static_cast<int>(view->ranks.size()));
  if (rebuild != nullptr) metrics_->CountRebuild(rebuild->reason);
  outputs_.report_view(membership::EncodeView(*view), rebuild ? job::ToJson(*rebuild).dump() : "",
                       Step());
}

void Agent::TellNews(Epoch epoch) { outputs_.set_news(epoch, tracker_.newest_step()); }

// ---- The pod's own processes

void Agent::OnHello(uint64_t connection, bool launcher, const json& hello, int peer_pid) {
  table_.OnHello(connection, launcher, hello, peer_pid, outputs_.now());
}
void Agent::OnFrame(uint64_t connection, const json& frame) {
  table_.OnFrame(connection, frame, outputs_.now());
  RememberProgress();
  TellNews(CurrentEpoch());
}
void Agent::OnClosed(uint64_t connection) { table_.OnClosed(connection, outputs_.now()); }

void Agent::OnWorkersChanged() {
  // Before everybody who may live has been heard of, the others would count as dead.
  if (!workers_known_) {
    const bool patient = outputs_.now() - started_at_ < kWithoutLauncher;
    if (!table_.Complete() && patient) return;
    if (table_.processes().empty() && table_.HasLauncher() && patient) return;
    workers_known_ = true;
  }
  Feed(membership::WorkersChanged{table_.Living()});
}

void Agent::OnProcessExit(const job::WorkerExit& exit) {
  spdlog::info(
      "worker exited slot={} incarnation={} standby={} exit_code={} signal={} restarting={} "
      "epoch={}",
      exit.slot, exit.incarnation, exit.standby, exit.exit_code, exit.signal, exit.restarting,
      EpochText(CurrentEpoch()));
  if (exit.standby) return;
  exits_.push_back(exit);
  if (exits_.size() > kKeepExits) exits_.pop_front();
  if (exit.restarting) metrics_->CountWorkerRestart();
  metrics_->CountWorkerExit(exit.exit_code);
  job::WorkerExit report = exit;
  report.by_us = exit.by_us || draining_ || finishing_;
  outputs_.report_exit(report);
  const bool in_view =
      installed_ != nullptr &&
      installed_->FindRank(self_.uid, static_cast<uint32_t>(exit.slot), exit.incarnation) >= 0;
  if (!in_view || finishing_ || left_) return;
  const SteadyTime now = outputs_.now();
  if (exit.at_us > 0) tracker_.Died(SteadyTime(std::chrono::microseconds(exit.at_us)), now);
  tracker_.Noticed(now, outputs_.unix_ms());
}

void Agent::OnRebuilt(const job::Rebuild& figures) {
  const Epoch epoch = figures.epoch;
  Feed(membership::FirstOperationDone{epoch});
  job::Rebuild* rebuild = rebuilds_.Find(epoch);
  const bool first = rebuild != nullptr && !rebuild->complete;
  rebuild = tracker_.Finished(figures);
  if (rebuild == nullptr) return;
  if (first) {
    for (const auto& [phase, duration] : rebuild->seconds)
      metrics_->ObserveRebuild(phase, rebuild->reason, duration);
    spdlog::info("rebuild complete epoch={} reason={} seconds={} steps_lost={}", EpochText(epoch),
                 rebuild->reason, job::ToJson(rebuild->seconds).dump(), rebuild->steps_lost);
    if (rebuild->steps_lost > 0) highest_step_ = figures.steps_resumed;
  }
  if (installed_ != nullptr && installed_->epoch == epoch) {
    outputs_.report_view(membership::EncodeView(*installed_), job::ToJson(*rebuild).dump(), Step());
  }
}

void Agent::OnWorkerSuspects(Epoch epoch, int rank, const std::string& reason) {
  if (installed_ == nullptr || epoch != installed_->epoch) return;
  if (rank < 0 || rank >= static_cast<int>(installed_->ranks.size())) return;
  spdlog::info("worker suspects rank={} reason=\"{}\" epoch={}", rank, reason, EpochText(epoch));
  rank_suspicions_epoch_ = epoch;
  rank_suspicions_.try_emplace(rank, outputs_.now());
  const std::string pod = installed_->pods[installed_->ranks[rank].pod].uid;
  if (pod != self_.uid && outputs_.unreachable(pod)) OnSuspect(pod, kAllGone);
}

void Agent::OnFinished(Epoch epoch) {
  if (std::exchange(finishing_, true)) return;
  finishing_since_ = outputs_.now();
  spdlog::info("finishing epoch={}", EpochText(epoch));
  table_.Finish();
  outputs_.report_finished(epoch);
  Feed(membership::Finishing{epoch});
}

// ---- Other sidecars and the operator

void Agent::OnMessage(const std::string& body, const std::string& from,
                      const std::string& address) {
  auto message = membership::DecodeMessage(body);
  if (!message || message->from != from) {
    spdlog::warn("message refused from={} error=\"{}\"", from,
                 message ? "its sender is another" : message.error());
    return;
  }
  Feed(membership::MessageReceived{std::move(*message), address});
}

void Agent::OnRecordAnswer(const std::string& body) {
  auto message = membership::DecodeMessage(body);
  if (!message) return spdlog::warn("record's answer refused error=\"{}\"", message.error());
  Feed(membership::RecordAnswered{std::move(*message)});
}

void Agent::OnSuspect(const std::string& pod, const std::string& why) {
  if (finishing_) return;
  spdlog::info("pod suspected pod={} reason=\"{}\" epoch={}", pod, why, EpochText(CurrentEpoch()));
  Feed(membership::PodSuspected{pod, why});
}

// A sidecar alone may come back before it is missed. If a worker of its pod is gone as well, the
// pod is.
void Agent::OnUnreachable(const std::string& pod, const std::string& why) {
  if (finishing_ || installed_ == nullptr) return;
  spdlog::info("sidecar unreachable pod={} reason=\"{}\" epoch={}", pod, why,
               EpochText(CurrentEpoch()));
  if (rank_suspicions_epoch_ != installed_->epoch) return;
  const int index = installed_->FindPod(pod);
  const bool accused =
      std::any_of(rank_suspicions_.begin(), rank_suspicions_.end(), [&](const auto& entry) {
        return static_cast<int>(installed_->ranks[entry.first].pod) == index;
      });
  if (accused) OnSuspect(pod, kAllGone);
}

void Agent::OnHeard(const std::string& pod, Epoch epoch, uint64_t step) {
  // Steps of an older view may be void by now.
  if (epoch == CurrentEpoch()) tracker_.SawStep(step);
  Feed(membership::PodHeard{pod, epoch});
}

void Agent::OnOperator(bool connected) {
  operator_connected_ = connected;
  spdlog::info("operator link connected={}", connected);
  if (!connected) return;
  reported_able_.reset();
  CheckHealth();
}

void Agent::OnAccepted() {
  if (!accepted_at_) accepted_at_ = outputs_.now();
}

void Agent::OnViewDecided(const std::string& text) {
  auto view = membership::DecodeView(text);
  if (!view) return spdlog::warn("found view refused error=\"{}\"", view.error());
  Feed(membership::ViewDecided{std::make_shared<const membership::View>(std::move(*view))});
}

void Agent::OnDrain(const std::vector<std::string>& pods, const std::string& reason,
                    int64_t deadline_unix_ms) {
  std::optional<SteadyTime> deadline;
  if (deadline_unix_ms > 0)
    deadline = outputs_.now() + ForBoundary(milliseconds(deadline_unix_ms - outputs_.unix_ms()));
  if (std::find(pods.begin(), pods.end(), self_.uid) != pods.end())
    return Drain(pods, reason, deadline);
  Feed(membership::DrainRequested{pods, deadline});
}

void Agent::OnTarget(uint32_t min_pods, uint32_t expected_pods) {
  if (!target_at_) target_at_ = outputs_.now();
  Feed(membership::TargetChanged{min_pods, expected_pods});
}

void Agent::OnFinish(const std::string& reason) {
  if (finishing_ || left_) return;
  spdlog::info("told to finish reason=\"{}\" epoch={}", reason, EpochText(CurrentEpoch()));
  finishing_ = true;
  finishing_since_ = outputs_.now();
  table_.Finish();
  table_.LeaveJoiners(CurrentEpoch(), reason);  // ranks have agreed by themselves, or are about to
  Feed(membership::Finishing{CurrentEpoch()});
}

void Agent::OnRecover(uint64_t lineage, bool fresh_workers) {
  if (finishing_) return;
  spdlog::info("asked to make way lineage={} fresh_workers={} epoch={}", lineage, fresh_workers,
               EpochText(CurrentEpoch()));
  if (lineage <= membership::EpochLineage(CurrentEpoch())) return;
  if (fresh_workers && !draining_ && !left_)
    table_.KillUsed("the job starts again from its checkpoint");
  Feed(membership::RecoveryAsked{lineage});
}

// ---- Leaving

void Agent::Terminate() {
  if (terminating_) return;
  terminating_ = true;
  const SteadyTime now = outputs_.now();
  resign_at_ = now + ForBoundary(options_.grace);
  give_up_at_ = now + std::max<milliseconds>(options_.grace - milliseconds(500), milliseconds(500));
  spdlog::info("terminating grace_seconds={} epoch={}", options_.grace.count(),
               EpochText(CurrentEpoch()));
  if (!finishing_) Drain({self_.uid}, "SIGTERM", resign_at_);
  CheckTermination();
}

void Agent::Drain(const std::vector<std::string>& pods, const std::string& reason,
                  std::optional<SteadyTime> deadline) {
  if (left_ || finishing_) return;
  if (!draining_)
    spdlog::info("draining reason=\"{}\" epoch={}", reason, EpochText(CurrentEpoch()));
  draining_ = true;
  drain_reason_ = reason;
  drained_pods_.insert(pods.begin(), pods.end());
  Feed(membership::DrainRequested{pods, deadline});
  const membership::Role role = member_.role();
  if (role == membership::Role::kWaiting || role == membership::Role::kJoining) {
    LeaveByPlan(reason);  // in no view there is no boundary to wait for
  } else if (EverybodyLeaves()) {
    table_.Arm(CurrentEpoch());  // no view comes after this one: all go at its next boundary
  }
}

bool Agent::EverybodyLeaves() const {
  if (!draining_ || member_.role() != membership::Role::kMember) return false;
  const auto& pods = member_.current()->pods;
  return std::all_of(pods.begin(), pods.end(), [this](const membership::Pod& pod) {
    return drained_pods_.count(pod.uid) > 0;
  });
}

void Agent::LeaveByPlan(const std::string& reason) {
  if (std::exchange(left_, true)) return;
  spdlog::info("left by plan reason=\"{}\" epoch={}", reason, EpochText(CurrentEpoch()));
  table_.Leave(CurrentEpoch(), reason);
}

void Agent::CheckTermination() {
  if (!terminating_) return;
  const SteadyTime now = outputs_.now();
  if (!table_.AnyLiving()) {
    if (!gone_since_) gone_since_ = now;
    // Who has left by plan goes on until the record knows the view that dropped it: others may not
    // have heard, and nobody else would tell them.
    const bool needed = member_.role() == membership::Role::kLeft && !member_.done();
    const bool lingered = now - finishing_since_.value_or(*gone_since_) >= kLinger;
    if (lingered && (!needed || now >= give_up_at_)) done_ = true;
    return;
  }
  gone_since_.reset();
  if (now >= resign_at_ && !std::exchange(stop_sent_, true))
    table_.StopLauncher(1, "the grace period ends");
  if (now >= give_up_at_) done_ = true;
}

// ---- Time

void Agent::Tick() {
  const SteadyTime now = outputs_.now();
  table_.Tick(now);
  const bool told = target_at_ && now - *target_at_ >= kFoundMayFollow;
  if (told || (accepted_at_ && now - *accepted_at_ >= kOperatorLooks)) table_.SettleWelcome();
  if (!workers_known_ && now - started_at_ >= kWithoutLauncher) OnWorkersChanged();
  Feed(membership::Tick{});
  CheckSuspicions();
  CheckInitTimeout();
  CheckStateLost();
  CheckHealth();
  SampleProgress();
  CheckTermination();
}

SteadyTime Agent::NextWake() const {
  SteadyTime wake = outputs_.now() + milliseconds(250);
  if (auto deadline = member_.NextDeadline()) wake = std::min(wake, *deadline);
  if (terminating_) wake = std::min(wake, outputs_.now() + milliseconds(50));
  if (Hurried()) wake = std::min(wake, outputs_.now() + milliseconds(5));
  return wake;
}

void Agent::CheckSuspicions() {
  if (installed_ == nullptr || finishing_ || left_) return;
  for (const membership::Pod& pod : std::vector<membership::Pod>(installed_->pods)) {
    if (pod.uid != self_.uid && outputs_.suspects(pod.uid))
      Feed(membership::PodSuspected{pod.uid, "silent"});
  }
  if (rank_suspicions_epoch_ != installed_->epoch || member_.changing()) return;
  for (const auto& [rank, since] : std::map<int, SteadyTime>(rank_suspicions_)) {
    if (outputs_.now() - since < kRankSuspicion) continue;
    const membership::Pod& pod = installed_->pods[installed_->ranks[rank].pod];
    rank_suspicions_.erase(rank);
    if (pod.uid == self_.uid) continue;
    spdlog::warn("ring stays broken though the pod answers rank={} pod={} epoch={}", rank, pod.name,
                 EpochText(installed_->epoch));
    Feed(membership::PodSuspected{pod.uid, "the ring to it stays broken"});
  }
}

void Agent::CheckInitTimeout() {
  if (init_timeout_said_ || installed_ != nullptr ||
      outputs_.now() - started_at_ < options_.init_timeout)
    return;
  init_timeout_said_ = true;
  std::string slots;
  for (uint32_t slot : table_.MissingSlots())
    slots += (slots.empty() ? "" : ",") + std::to_string(slot);
  spdlog::error("no first view within the init timeout seconds={} slots_without_init={}",
                options_.init_timeout.count(), slots.empty() ? "none" : slots);
  reported_readiness_.clear();
  ReportReadiness();
}

// No view can follow, and a process started again is a joiner that nobody can give the state. An
// operator begins the job anew (membership.md, rule 9), or says what that waits for. Where none
// does, those who are left would wait for ever: that they fail is what ends the job.
void Agent::CheckStateLost() {
  if (gave_up_ || finishing_ || left_ || draining_ || !member_.state_lost()) {
    state_lost_since_.reset();
    return;
  }
  const SteadyTime now = outputs_.now();
  const bool has_operator = !options_.operator_target.empty();
  if (!state_lost_since_ && has_operator)
    spdlog::warn(
        "all workers that had the job's state have died: the operator begins the job again from "
        "its checkpoint epoch={}",
        EpochText(CurrentEpoch()));
  if (!state_lost_since_ || operator_connected_) state_lost_since_ = now;
  if (now - *state_lost_since_ < (has_operator ? options_.init_timeout : kStateLost)) return;
  gave_up_ = true;
  const std::string message = "all workers that had the job's state have died (view " +
                              EpochText(CurrentEpoch()) +
                              "): there is nothing to go on from; start the job again";
  spdlog::error("giving up error=\"{}\"", message);
  table_.GiveUp(message);
}

void Agent::CheckHealth() {
  const SteadyTime now = outputs_.now();
  const bool able = member_.able() || finishing_;
  if (able) {
    unable_since_.reset();
  } else if (!unable_since_) {
    unable_since_ = now;
  }
  if (reported_able_ == able || (!able && now - *unable_since_ < kUnable)) return;
  reported_able_ = able;
  outputs_.report_health(
      able,
      able ? milliseconds(0) : std::chrono::duration_cast<milliseconds>(now - *unable_since_));
}

void Agent::ReportReadiness() {
  if (table_.processes().empty() && reported_readiness_.empty() && !init_timeout_said_) return;
  membership::Candidate candidate{self_, table_.Living()};
  candidate.pod.incarnation = member_.state().incarnation;
  const std::vector<uint32_t> missing = table_.MissingSlots();
  std::string text = membership::EncodeCandidate(candidate);
  if (text == reported_readiness_) return;
  reported_readiness_ = text;
  outputs_.report_readiness(missing.empty(), missing, text);
}

}  // namespace ringmaster::app
