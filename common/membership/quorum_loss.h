// Recovery from quorum loss (membership rule 9): how a job goes on when no view can decide its
// successor any more.
//
// Pure. The operator drives it, in steps each of which may be lost and repeated:
//
//   1. R is moved to a lineage above all that are known (NextLineage, BeginRecovery, by
//      compare-and-swap).
//   2. Every pod that is not proven dead is asked, by `RecoveryAsked`. It stops its workers, stores
//      the promise of that lineage, and reports (RecoveryReport).
//   3. When no pod is silent (RecoverFromQuorumLoss), R is moved to the first view of the lineage
//      (FinishRecovery, by compare-and-swap), and all pods are notified.
//
// Why it is safe: after the last report every pod is dead or takes part in no lower lineage, so no
// view of one trains or decides any more; and R names one first view. The pods that are asked for
// have to be listed after the last report came in: a pod that is made later can get into no lower
// view.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/membership/clause.h"
#include "common/membership/quorum_record.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

// What a pod reports when it gives up its view for the new lineage. It has stored its promise and
// stopped its workers.
struct RecoveryReport {
  std::uint64_t lineage = 0;  // promised
  ViewPtr view;               // the newest it knows; null: none
  bool resigned = false;      // from `view`
  bool ran = false;           // an operation of `view` has completed: its joiners hold the state
  Candidate candidate;        // the pod and its living workers
};

// The lineage of a recovery that begins now, above all that may have had a first view. `newest`:
// the newest view that is known. `written`: the highest lineage that was ever begun, kept apart
// from R, where it is written (by compare-and-swap) before R is moved: an R that was deleted may
// have named a first view of that lineage of which no pod has heard, and another one with the same
// epoch would be a second job.
std::uint64_t NextLineage(Epoch newest, std::uint64_t written, ClauseSet without = {});

// True while R looks for the first view of its lineage.
bool QuorumLost(const QuorumRecord& record);
// `lineage` must be above that of the record and of its view.
QuorumRecord BeginRecovery(const QuorumRecord& record, std::uint64_t lineage);
QuorumRecord FinishRecovery(const QuorumRecord& record, ViewPtr first);

struct RecoveryResult {
  std::vector<std::string> silent;  // of `pods`: have not reported
  ViewPtr view;                     // the first of the lineage; null while a pod is silent, or:
  bool nobody_holds = false;        // no living worker holds the state: from the checkpoint
};

// `pods`: uids that have to report. Reports of others, and of lower lineages, count for nothing.
RecoveryResult RecoverFromQuorumLoss(std::uint64_t lineage, const std::vector<std::string>& pods,
                                     const std::vector<const RecoveryReport*>& reports,
                                     std::uint32_t min_pods, ClauseSet without = {});

// Whether this pod can begin again: all of its workers are fresh and have called init().
bool ReadyToRestart(const Candidate& candidate);
// The first view of a lineage that begins from the checkpoint. `parent`: the newest view known.
ViewPtr RestartView(std::uint64_t lineage, Epoch parent, std::vector<Candidate> candidates,
                    std::uint32_t min_pods, const PodOrder& order = TopologyLess);

}  // namespace ringmaster::membership
