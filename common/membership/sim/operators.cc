#include "common/membership/sim/operators.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership::sim {

void Operators::Begin(const ViewPtr& first) {
  parts_.record.Begin(NewRecord(first));
  for (SimOperator& op : operators_) {
    op.Read(parts_.record);
    op.able_at = parts_.events.now();
  }
}

bool Operators::KnowAView() const {
  return std::any_of(operators_.begin(), operators_.end(),
                     [](const SimOperator& op) { return op.heard != nullptr; });
}

void Operators::Forget(int pod) {
  for (SimOperator& op : operators_) op.reports.erase(pod);
}

void Operators::Heal() {
  for (SimOperator& op : operators_) op.down_until = 0;
}

// As quorum_record.h says: the operator answers from its own last write, and stores the new state
// by compare-and-swap; if the other operator has written, it reads the record again.
void Operators::AskRecord(int index, const Message& message, int from) {
  SimOperator& op = operators_[index];
  if (op.down_until > parts_.events.now()) return;
  parts_.journal.Trace(
      [&] { return "operator " + std::to_string(index) + " <- " + Describe(message); });
  if (op.state.view == nullptr) op.Read(parts_.record);
  if (op.state.view == nullptr) return;
  RecordResult result = AnswerAsRecord(op.state, message, parts_.options.without);
  if (result.changed && op.version != parts_.record.version() &&
      !parts_.options.without.Has(Clause::kRecordSwaps)) {
    ++parts_.journal.coverage().record_conflicts;
    op.Read(parts_.record);
    if (op.state.view == nullptr) return;
    result = AnswerAsRecord(op.state, message, parts_.options.without);
  }
  if (result.changed) {
    op.Write(result.state, &parts_.record);
  }
  if (parts_.network.Loses()) return;
  parts_.events.After(parts_.network.Delay(), Kind::kFromRecord, 0, from, 0, 0, Command::kStop,
                      parts_.events.Keep(std::move(result.answer)));
}

// Tells a pod that is behind the newest view that the record knows, or that the operator has heard
// of where the record was deleted.
void Operators::NotifyView(int pod) {
  const SimPod& self = parts_.pods[pod];
  if (!self.up) return;
  bool reachable =
      operators_[0].down_until <= parts_.events.now() && parts_.network.ReachesOperators(pod);
  const ViewPtr known =
      parts_.record.record().view ? parts_.record.record().view : operators_[0].heard;
  bool behind = EpochOf(self.member->current()) < EpochOf(known);
  if (reachable && behind) parts_.sidecars.Step(pod, ringmaster::membership::ViewDecided{known});
  if (reachable) parts_.sidecars.Step(pod, TargetChanged{parts_.job.Sizes(), 0});
  if (reachable && self.leaving)
    parts_.sidecars.Step(pod, DrainRequested{{self.uid}, std::nullopt});
  if (self.up) parts_.events.After(500 * kMs, Kind::kNotifyView, pod);
}

// ---- Recovery from quorum loss (rule 9)

namespace {

constexpr Micros kPatience = 5000 * kMs;

}  // namespace

bool Operators::WriteRecord(int index, const QuorumRecord& state, bool swap) {
  SimOperator& op = operators_[index];
  if (swap && op.version != parts_.record.version()) {
    ++parts_.journal.coverage().record_conflicts;
    op.Read(parts_.record);
    return false;
  }
  op.Write(state, &parts_.record);
  return true;
}

// The pods that are not proven dead, so they may be in a view.
std::vector<int> Operators::MustReport() const {
  std::vector<int> pods;
  for (std::size_t i = 0; i < parts_.pods.size(); ++i) {
    if (parts_.pods[i].started && !parts_.pods[i].ProvenDead(parts_.events.now()))
      pods.push_back(static_cast<int>(i));
  }
  return pods;
}

void Operators::RunRecovery(int index) {
  SimOperator& op = operators_[index];
  if (op.down_until > parts_.events.now()) return;
  if (parts_.random.Chance(600)) op.Read(parts_.record);  // else from its own last write
  HearPods(index);
  const ViewPtr known = op.KnownView();
  if (known == nullptr) return;
  if (op.view != known->epoch)
    op.able_at = parts_.events.now();  // a new view gets time to begin training
  op.view = known->epoch;
  BeginIfStalled(index);
  if (op.state.view == nullptr || !QuorumLost(op.state)) return;
  if (op.lineage != op.state.lineage) {
    op.lineage = op.state.lineage;
    op.reports.clear();
    op.pods_at_begin = MustReport();
  }
  bool fresh = !parts_.options.without.Has(Clause::kFreshPods);
  for (int pod : fresh ? MustReport() : op.pods_at_begin) Ask(pod, op.lineage, false);
  FinishIfHeard(index, true);
}

void Operators::HearPods(int index) {
  SimOperator& op = operators_[index];
  for (std::size_t i = 0; i < parts_.pods.size(); ++i) {
    const SimPod& pod = parts_.pods[i];
    const bool heard = pod.up && pod.paused_until <= parts_.events.now() &&
                       parts_.network.ReachesOperators(static_cast<int>(i));
    if (heard && EpochOf(pod.member->current()) > EpochOf(op.heard))
      op.heard = pod.member->current();
  }
}

// Begins a recovery when no view has been able to train for a while. R is moved only when every pod
// that may live can be heard, so that the recovery is likely to come to an end.
void Operators::BeginIfStalled(int index) {
  SimOperator& op = operators_[index];
  const bool deleted = op.state.view == nullptr;
  const QuorumRecord before = deleted ? NewRecord(op.heard) : op.state;
  bool all_heard = true;
  for (int i : MustReport()) {
    const SimPod& pod = parts_.pods[i];
    bool heard =
        pod.up && pod.paused_until <= parts_.events.now() && parts_.network.ReachesOperators(i);
    all_heard = all_heard && heard;
    if (heard && pod.member->able()) op.able_at = parts_.events.now();
  }
  // The record was deleted in the middle of a recovery: some pods have made way for it and take
  // part in no lower lineage, whatever the others can.
  const bool cut_short = deleted && parts_.record.lineage() > EpochLineage(before.view->epoch);
  bool begin = (all_heard && (cut_short || parts_.events.now() - op.able_at >= kPatience)) ||
               std::exchange(op.at_once, false);
  if (!begin || (!deleted && QuorumLost(op.state))) return;
  const std::uint64_t lineage =
      NextLineage(before.view->epoch, std::max(before.lineage, parts_.record.lineage()),
                  parts_.options.without);
  parts_.record.WriteLineage(lineage);
  if (!WriteRecord(index, BeginRecovery(before, lineage), true)) return;
  ++parts_.journal.coverage().recoveries;
  parts_.journal.Trace([&] {
    return "operator " + std::to_string(index) + " begins lineage " + std::to_string(lineage);
  });
}

void Operators::Ask(int pod, std::uint64_t lineage, bool fresh_workers) {
  if (parts_.network.Loses()) return;
  parts_.events.After(parts_.network.Delay(), Kind::kAsked, pod, 0, lineage, fresh_workers ? 1 : 0);
}

void Operators::OnAsked(int pod, std::uint64_t lineage, bool fresh_workers) {
  if (!parts_.pods[pod].up || !parts_.network.ReachesOperators(pod)) return;
  parts_.journal.Trace(
      [&] { return parts_.pods[pod].uid + " is asked for lineage " + std::to_string(lineage); });
  for (int s = 0; fresh_workers && s < parts_.job.slots; ++s) {
    if (parts_.pods[pod].workers[s].used) parts_.workers.Kill(pod, s);
  }
  parts_.sidecars.Step(pod, RecoveryAsked{lineage});
}

void Operators::OnReport(int index, int from, const RecoveryReport& report) {
  SimOperator& op = operators_[index];
  if (op.down_until > parts_.events.now() || !parts_.network.ReachesOperators(from)) return;
  parts_.journal.Trace([&] {
    return "operator " + std::to_string(index) + " <- report of " + parts_.pods[from].uid +
           " for " + std::to_string(report.lineage) + ": " + EpochText(EpochOf(report.view)) +
           (report.resigned ? " resigned" : "") + (report.ran ? " ran" : "");
  });
  op.reports[from] = report;
  FinishIfHeard(index, false);
}

void Operators::FinishIfHeard(int index, bool ask) {
  SimOperator& op = operators_[index];
  if (op.state.view == nullptr || !QuorumLost(op.state) || op.lineage != op.state.lineage) return;
  std::vector<int> pods = MustReport();
  if (parts_.options.without.Has(Clause::kFreshPods)) {
    pods = op.pods_at_begin;
    std::erase_if(pods, [&](int pod) { return parts_.pods[pod].ProvenDead(parts_.events.now()); });
  }
  std::vector<std::string> uids;
  for (int pod : pods) uids.push_back(parts_.pods[pod].uid);
  std::vector<const RecoveryReport*> reports;
  for (const auto& [pod, report] : op.reports) reports.push_back(&report);
  RecoveryResult result =
      RecoverFromQuorumLoss(op.lineage, uids, reports, parts_.job.Sizes(), parts_.options.without);
  for (const std::string& uid : result.silent) {
    if (!ask) break;
    parts_.journal.coverage().recovery_waits += parts_.pods[IndexOf(uid)].gone ? 1 : 0;
  }
  if (result.view) FinishWith(index, result.view);
  if (result.nobody_holds) Restart(index, uids, ask);
}

void Operators::FinishWith(int index, const ViewPtr& view) {
  SimOperator& op = operators_[index];
  bool swap = !parts_.options.without.Has(Clause::kRecordLineageSwap);
  if (!WriteRecord(index, FinishRecovery(op.state, view), swap)) return;
  ++(view->reason == Reason::kBootstrap ? parts_.journal.coverage().restarts
                                        : parts_.journal.coverage().recovered_views);
  parts_.journal.Trace(
      [&] { return "operator " + std::to_string(index) + " decides " + Describe(*view); });
  parts_.invariants.Announce(view);
}

// Begins the job again from the checkpoint, once every pod that stays has fresh workers.
void Operators::Restart(int index, const std::vector<std::string>& pods, bool ask) {
  SimOperator& op = operators_[index];
  std::vector<Candidate> candidates;
  bool all = true;
  for (const std::string& uid : pods) {
    int pod = IndexOf(uid);
    if (parts_.pods[pod].leaving) continue;
    auto report = op.reports.find(pod);
    bool ready = report != op.reports.end() && ReadyToRestart(report->second.candidate) &&
                 static_cast<int>(report->second.candidate.workers.size()) == parts_.job.slots;
    if (ready) {
      candidates.push_back(report->second.candidate);
    } else {
      all = false;
      if (ask) Ask(pod, op.lineage, true);
    }
  }
  if (!all || candidates.empty()) return;
  FinishWith(index,
             RestartView(op.lineage, EpochOf(op.state.view), candidates, parts_.job.min_pods));
}

}  // namespace ringmaster::membership::sim
