#include "common/membership/quorum_loss.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/membership/next_view.h"

namespace ringmaster::membership {
namespace {

using Reports = std::vector<const RecoveryReport*>;

// The worker that has this rank; null: it has died.
const Worker* FindWorker(const Candidate& candidate, const RankEntry& rank) {
  const auto at =
      std::find_if(candidate.workers.begin(), candidate.workers.end(), [&](const Worker& worker) {
        return worker.slot == rank.slot && worker.incarnation == rank.incarnation;
      });
  return at == candidate.workers.end() ? nullptr : &*at;
}

bool HoldsStateOf(const View& base, const Candidate& candidate) {
  return std::any_of(candidate.workers.begin(), candidate.workers.end(),
                     [&](const Worker& worker) { return worker.holds == base.epoch; });
}

// Which pod of `base` this report speaks for; -1: none. A sidecar that has lost its file is another
// incarnation than the view's: its promises and votes are gone, but not what its worker holds. Once
// all pods have given up the lower lineages nobody asks for those votes any more, so that the
// worker counts.
int MemberOf(const View& base, const RecoveryReport& report) {
  const Pod& pod = report.candidate.pod;
  const int member = base.FindMember(pod.uid, pod.incarnation);
  if (member >= 0 || !HoldsStateOf(base, report.candidate)) return member;
  return base.FindPod(pod.uid);
}

// The sidecars of the view are those that have reported.
void NameIncarnations(const Reports& reports, View* view) {
  for (const RecoveryReport* report : reports) {
    const Pod& pod = report->candidate.pod;
    const int index = view->FindPod(pod.uid);
    if (index >= 0 && view->pods[index].incarnation != pod.incarnation) view->pods[index] = pod;
  }
}

// The first view of the lineage, made of the members of `base` that have reported and not resigned.
// Null where none of them holds the state.
ViewPtr Continue(const View& base, std::uint64_t lineage, const Reports& reports,
                 const Sizes& sizes, ClauseSet without) {
  Change change;
  change.gone.assign(base.pods.size(), true);
  change.draining.assign(base.pods.size(), false);
  change.lost_worker.assign(base.ranks.size(), true);
  change.held.assign(base.ranks.size(), false);
  change.pod_lost = true;
  change.sizes = sizes;
  change.proposer = base.coordinator;
  for (const RecoveryReport* report : reports) {
    // A pod that knows a newer view does not go on from this one: either the newer view has made
    // its state void, or it holds newer steps.
    if (EpochOf(report->view) > base.epoch) continue;
    const int index = MemberOf(base, *report);
    const bool counted = report->resigned && without.Has(Clause::kResignedExcluded);
    if (index < 0 || (report->resigned && !counted)) continue;
    change.ran = change.ran || (EpochOf(report->view) == base.epoch && report->ran);
    change.gone[index] = false;
    for (std::size_t r = 0; r < base.ranks.size(); ++r) {
      if (base.ranks[r].pod != static_cast<std::uint32_t>(index)) continue;
      const Worker* worker = FindWorker(report->candidate, base.ranks[r]);
      change.lost_worker[r] = !counted && worker == nullptr;
      change.held[r] = worker != nullptr && worker->holds == base.epoch;
    }
  }
  const ViewPtr next = NextView(base, change, without);
  if (next == nullptr) return nullptr;
  View first = *next;
  first.epoch = MakeEpoch(lineage, 1);
  first.reason = Reason::kQuorumRecovered;
  NameIncarnations(reports, &first);
  return std::make_shared<const View>(std::move(first));
}

}  // namespace

std::uint64_t NextLineage(Epoch newest, std::uint64_t written, ClauseSet without) {
  if (without.Has(Clause::kLineageWritten)) written = 0;
  return std::max(EpochLineage(newest), written) + 1;
}

bool QuorumLost(const QuorumRecord& record) {
  return record.lineage > EpochLineage(EpochOf(record.view));
}

QuorumRecord BeginRecovery(const QuorumRecord& record, std::uint64_t lineage) {
  QuorumRecord next = record;
  next.lineage = std::max(record.lineage, lineage);
  return next;
}

QuorumRecord FinishRecovery(const QuorumRecord& record, ViewPtr first) {
  QuorumRecord next = NewRecord(std::move(first));
  next.lineage = std::max(record.lineage, EpochLineage(next.view->epoch));
  return next;
}

RecoveryResult RecoverFromQuorumLoss(std::uint64_t lineage, const std::vector<std::string>& pods,
                                     const Reports& all, const Sizes& sizes, ClauseSet without) {
  RecoveryResult result;
  Reports reports;
  for (const std::string& pod : pods) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const RecoveryReport* report) {
      return report->candidate.pod.uid == pod && report->lineage >= lineage;
    });
    if (at == all.end()) {
      result.silent.push_back(pod);
    } else {
      reports.push_back(*at);
    }
  }
  if (!result.silent.empty() && !without.Has(Clause::kReportAllOrProof)) return result;
  std::map<Epoch, ViewPtr> bases;
  for (const RecoveryReport* report : reports) {
    if (report->view != nullptr) bases[report->view->epoch] = report->view;
  }
  std::vector<ViewPtr> order;
  for (const auto& [epoch, view] : bases) order.push_back(view);
  if (!without.Has(Clause::kHighestView)) std::reverse(order.begin(), order.end());
  for (const ViewPtr& base : order) {
    result.view = Continue(*base, lineage, reports, sizes, without);
    if (result.view != nullptr) return result;
  }
  result.nobody_holds = true;
  return result;
}

bool ReadyToRestart(const Candidate& candidate) {
  return !candidate.workers.empty() &&
         std::all_of(candidate.workers.begin(), candidate.workers.end(),
                     [](const Worker& worker) { return worker.ready && !worker.used; });
}

ViewPtr RestartView(std::uint64_t lineage, Epoch parent, std::vector<Candidate> candidates,
                    std::uint32_t min_pods, const PodOrder& order) {
  View view = BootstrapView(std::move(candidates), min_pods, order);
  view.epoch = MakeEpoch(lineage, 1);
  view.parent = parent;
  return std::make_shared<const View>(std::move(view));
}

}  // namespace ringmaster::membership
