// The operators: they vote for the record, notify pods of its view, and recover from quorum loss.
#include <algorithm>
#include <string>
#include <utility>

#include "common/membership/sim/world.h"

namespace ringmaster::membership::sim {

// As quorum_record.h says: the operator answers from its own last write, and stores the new state
// by compare-and-swap; if the other operator has written, it reads the record again.
void World::AskRecord(int index, const Message& message, int from) {
  SimOperator& op = operators_[index];
  if (op.down_until > events_.now()) return;
  journal_.Trace([&] { return "operator " + std::to_string(index) + " <- " + Describe(message); });
  if (op.state.view == nullptr) op.Read(record_);
  if (op.state.view == nullptr) return;
  RecordResult result = AnswerAsRecord(op.state, message, options_.without);
  if (result.changed && op.version != record_.version() &&
      !options_.without.Has(Clause::kRecordSwaps)) {
    ++journal_.coverage().record_conflicts;
    op.Read(record_);
    if (op.state.view == nullptr) return;
    result = AnswerAsRecord(op.state, message, options_.without);
  }
  if (result.changed) {
    op.Write(result.state, &record_);
  }
  if (network_.Loses()) return;
  events_.After(network_.Delay(), Kind::kFromRecord, 0, from, 0, 0, Command::kStop,
                events_.Keep(std::move(result.answer)));
}

// Tells a pod that is behind the newest view that the record knows, or that the operator has heard
// of where the record was deleted.
void World::NotifyView(int pod) {
  SimPod& self = pods_[pod];
  if (!self.up) return;
  bool reachable = operators_[0].down_until <= events_.now() && network_.ReachesOperators(pod);
  const ViewPtr known = record_.record().view ? record_.record().view : operators_[0].heard;
  bool behind = EpochOf(self.member->current()) < EpochOf(known);
  if (reachable && behind) StepMember(pod, ringmaster::membership::ViewDecided{known});
  if (reachable) StepMember(pod, TargetChanged{job_.min_pods, 0});
  if (reachable && self.leaving) StepMember(pod, DrainRequested{{self.uid}, std::nullopt});
  if (self.up) events_.After(500 * kMs, Kind::kNotifyView, pod);
}

// ---- Recovery from quorum loss (rule 9)

namespace {

constexpr Micros kPatience = 5000 * kMs;

}  // namespace

bool World::WriteRecord(int index, const QuorumRecord& state, bool swap) {
  SimOperator& op = operators_[index];
  if (swap && op.version != record_.version()) {
    ++journal_.coverage().record_conflicts;
    op.Read(record_);
    return false;
  }
  op.Write(state, &record_);
  return true;
}

// The pods that are not proven dead, so they may be in a view.
std::vector<int> World::MustReport() const {
  std::vector<int> pods;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (pods_[i].started && !Proven(static_cast<int>(i))) pods.push_back(static_cast<int>(i));
  }
  return pods;
}

void World::RunRecovery(int index) {
  SimOperator& op = operators_[index];
  if (op.down_until > events_.now()) return;
  if (random_.Chance(600)) op.Read(record_);  // else from its own last write
  HearPods(index);
  const ViewPtr known = op.KnownView();
  if (known == nullptr) return;
  if (op.view != known->epoch)
    op.able_at = events_.now();  // a new view gets time to begin training
  op.view = known->epoch;
  BeginIfStalled(index);
  if (op.state.view == nullptr || !QuorumLost(op.state)) return;
  if (op.lineage != op.state.lineage) {
    op.lineage = op.state.lineage;
    op.reports.clear();
    op.pods_at_begin = MustReport();
  }
  bool fresh = !options_.without.Has(Clause::kFreshPods);
  for (int pod : fresh ? MustReport() : op.pods_at_begin) Ask(pod, op.lineage, false);
  FinishIfHeard(index, true);
}

void World::HearPods(int index) {
  SimOperator& op = operators_[index];
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    const SimPod& pod = pods_[i];
    const bool heard = pod.up && pod.paused_until <= events_.now() &&
                       network_.ReachesOperators(static_cast<int>(i));
    if (heard && EpochOf(pod.member->current()) > EpochOf(op.heard))
      op.heard = pod.member->current();
  }
}

// Begins a recovery when no view has been able to train for a while. R is moved only when every pod
// that may live can be heard, so that the recovery is likely to come to an end.
void World::BeginIfStalled(int index) {
  SimOperator& op = operators_[index];
  const bool deleted = op.state.view == nullptr;
  const QuorumRecord before = deleted ? NewRecord(op.heard) : op.state;
  bool all_heard = true;
  for (int i : MustReport()) {
    const SimPod& pod = pods_[i];
    bool heard = pod.up && pod.paused_until <= events_.now() && network_.ReachesOperators(i);
    all_heard = all_heard && heard;
    if (heard && pod.member->able()) op.able_at = events_.now();
  }
  // The record was deleted in the middle of a recovery: some pods have made way for it and take
  // part in no lower lineage, whatever the others can.
  const bool cut_short = deleted && record_.lineage() > EpochLineage(before.view->epoch);
  bool begin = (all_heard && (cut_short || events_.now() - op.able_at >= kPatience)) ||
               std::exchange(op.at_once, false);
  if (!begin || (!deleted && QuorumLost(op.state))) return;
  const std::uint64_t lineage = NextLineage(
      before.view->epoch, std::max(before.lineage, record_.lineage()), options_.without);
  record_.WriteLineage(lineage);
  if (!WriteRecord(index, BeginRecovery(before, lineage), true)) return;
  ++journal_.coverage().recoveries;
  journal_.Trace([&] {
    return "operator " + std::to_string(index) + " begins lineage " + std::to_string(lineage);
  });
}

void World::Ask(int pod, std::uint64_t lineage, bool fresh_workers) {
  if (network_.Loses()) return;
  events_.After(network_.Delay(), Kind::kAsked, pod, 0, lineage, fresh_workers ? 1 : 0);
}

void World::OnAsked(int pod, std::uint64_t lineage, bool fresh_workers) {
  if (!pods_[pod].up || !network_.ReachesOperators(pod)) return;
  journal_.Trace(
      [&] { return pods_[pod].uid + " is asked for lineage " + std::to_string(lineage); });
  for (int s = 0; fresh_workers && s < job_.slots; ++s) {
    if (pods_[pod].workers[s].used) KillWorker(pod, s);
  }
  StepMember(pod, RecoveryAsked{lineage});
}

void World::OnReport(int index, int from, const RecoveryReport& report) {
  SimOperator& op = operators_[index];
  if (op.down_until > events_.now() || !network_.ReachesOperators(from)) return;
  journal_.Trace([&] {
    return "operator " + std::to_string(index) + " <- report of " + pods_[from].uid + " for " +
           std::to_string(report.lineage) + ": " + EpochText(EpochOf(report.view)) +
           (report.resigned ? " resigned" : "") + (report.ran ? " ran" : "");
  });
  op.reports[from] = report;
  FinishIfHeard(index, false);
}

void World::FinishIfHeard(int index, bool ask) {
  SimOperator& op = operators_[index];
  if (op.state.view == nullptr || !QuorumLost(op.state) || op.lineage != op.state.lineage) return;
  std::vector<int> pods = MustReport();
  if (options_.without.Has(Clause::kFreshPods)) {
    pods = op.pods_at_begin;
    std::erase_if(pods, [&](int pod) { return Proven(pod); });
  }
  std::vector<std::string> uids;
  for (int pod : pods) uids.push_back(pods_[pod].uid);
  std::vector<const RecoveryReport*> reports;
  for (const auto& [pod, report] : op.reports) reports.push_back(&report);
  RecoveryResult result =
      RecoverFromQuorumLoss(op.lineage, uids, reports, job_.min_pods, options_.without);
  for (const std::string& uid : result.silent) {
    if (!ask) break;
    journal_.coverage().recovery_waits += pods_[IndexOf(uid)].gone ? 1 : 0;
  }
  if (result.view) FinishWith(index, result.view);
  if (result.nobody_holds) Restart(index, uids, ask);
}

void World::FinishWith(int index, const ViewPtr& view) {
  SimOperator& op = operators_[index];
  bool swap = !options_.without.Has(Clause::kRecordLineageSwap);
  if (!WriteRecord(index, FinishRecovery(op.state, view), swap)) return;
  ++(view->reason == Reason::kBootstrap ? journal_.coverage().restarts
                                        : journal_.coverage().recovered_views);
  journal_.Trace(
      [&] { return "operator " + std::to_string(index) + " decides " + Describe(*view); });
  Announce(view);
}

// Begins the job again from the checkpoint, once every pod that stays has fresh workers.
void World::Restart(int index, const std::vector<std::string>& pods, bool ask) {
  SimOperator& op = operators_[index];
  std::vector<Candidate> candidates;
  bool all = true;
  for (const std::string& uid : pods) {
    int pod = IndexOf(uid);
    if (pods_[pod].leaving) continue;
    auto report = op.reports.find(pod);
    bool ready = report != op.reports.end() && ReadyToRestart(report->second.candidate) &&
                 static_cast<int>(report->second.candidate.workers.size()) == job_.slots;
    if (ready) {
      candidates.push_back(report->second.candidate);
    } else {
      all = false;
      if (ask) Ask(pod, op.lineage, true);
    }
  }
  if (!all || candidates.empty()) return;
  FinishWith(index, RestartView(op.lineage, EpochOf(op.state.view), candidates, job_.min_pods));
}

}  // namespace ringmaster::membership::sim
