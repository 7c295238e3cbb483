// Recovery from quorum loss (membership rule 9): how a job goes on when no view can decide its
// successor any more.
//
// Pure. The operator calls these functions, in steps that may each be lost and repeated:
//
//   1. R is moved to a lineage above all that are known (NextLineage, BeginRecovery, by
//      compare-and-swap).
//   2. Every pod that is not proven dead is asked, by `RecoveryAsked`. It stops its workers, stores
//      the promise of that lineage, and reports (RecoveryReport).
//   3. When no pod is silent (RecoverFromQuorumLoss), R is moved to the first view of the lineage
//      (FinishRecovery, by compare-and-swap), and all pods are notified.
//
// Why it is safe: after the last report every pod is dead or takes part in no lower lineage, so no
// view of a lower lineage trains or decides any more; and R names one first view. The pods that
// have to report must be listed after the last report came in, because a pod may have joined
// meanwhile. A pod that is made later can get into no view of a lower lineage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/membership/clause.h"
#include "common/membership/quorum_record.h"
#include "common/membership/sizes.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

// What a pod reports when it gives up its view for the new lineage. It has stopped its workers and
// stored its promise by then.
struct RecoveryReport {
  std::uint64_t lineage = 0;  // the pod has promised to take part in no lower one
  ViewPtr view;               // the newest it knows; null: none
  bool resigned = false;      // from `view`
  bool ran = false;           // an operation of `view` has completed: its joiners hold the state
  Candidate candidate;        // the pod and its living workers
};

// The lineage of a recovery that begins now: above every lineage that may have had a first view.
// `newest`: the newest view that is known. `written`: the highest lineage that was ever begun. It
// is kept apart from R, and is written there (by compare-and-swap) before R is moved: an R that was
// deleted may have named a first view of that lineage of which no pod has heard, and another view
// with the same epoch would be a second job.
std::uint64_t NextLineage(Epoch newest, std::uint64_t written, ClauseSet without = {});

// True while a recovery has begun and R does not name the first view of its lineage yet.
bool QuorumLost(const QuorumRecord& record);
// `lineage` must be above that of the record and of its view.
QuorumRecord BeginRecovery(const QuorumRecord& record, std::uint64_t lineage);
QuorumRecord FinishRecovery(const QuorumRecord& record, ViewPtr first);

struct RecoveryResult {
  std::vector<std::string> silent;  // those of `pods` that have not reported
  // The first view of the lineage. Null while a pod is silent, and where nobody holds the state.
  ViewPtr view;
  // No living worker holds the state, so the job begins again from its checkpoint.
  bool nobody_holds = false;
};

// `pods`: uids of the pods that have to report. Reports of other pods, and reports for lower
// lineages, do not count.
RecoveryResult RecoverFromQuorumLoss(std::uint64_t lineage, const std::vector<std::string>& pods,
                                     const std::vector<const RecoveryReport*>& reports,
                                     const Sizes& sizes, ClauseSet without = {});

// Whether this pod can begin again from the checkpoint: it has workers, all of them have asked to
// enter a view, and none has been in one.
bool ReadyToRestart(const Candidate& candidate);
// The first view of a lineage that begins from the checkpoint. `parent`: the newest view known.
ViewPtr RestartView(std::uint64_t lineage, Epoch parent, std::vector<Candidate> candidates,
                    std::uint32_t min_pods, const PodOrder& order = TopologyLess);

}  // namespace ringmaster::membership
