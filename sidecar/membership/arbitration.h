// Arbitration (membership rule 9): how a job goes on when no view can decide its successor any
// more.
//  Pure. The operator drives it, in steps of which each may be lost and taken again:
//
//   1. R is moved to a lineage above all that are known (BeginArbitration, by compare-and-swap).
//   2. Every pod that is not proven dead is asked, by `ArbitrationAsked`. It stops its workers,
//   stores
//      the promise of that lineage, and reports (ArbitrationReport).
//   3. When nobody is silent (Arbitrate), R is moved to the first view of the lineage
//      (FinishArbitration, by compare-and-swap), and everybody is told.
//
// Why it is safe: after the last report every pod is dead or takes part in no lower lineage, so no
// view of one trains or decides any more; and R names one first view. The pods that are asked for
// have to be listed after the last report came in: a pod that is made later can get into no lower
// view.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sidecar/membership/clause.h"
#include "sidecar/membership/record.h"
#include "sidecar/membership/view.h"

namespace ringmaster::membership {

// What a pod says when it makes way. Its promise is stored and its workers have stopped.
struct ArbitrationReport {
  std::uint64_t lineage = 0;  // promised
  ViewPtr view;               // the newest it knows; null: none
  bool resigned = false;      // from `view`
  bool ran = false;           // an operation of `view` has completed: its joiners hold the state
  Candidate candidate;        // the pod and its living workers
};

// R looks for the first view of its lineage.
bool Arbitrating(const RecordState& record);
// `lineage` must be above that of the record and of its view.
RecordState BeginArbitration(const RecordState& record, std::uint64_t lineage);
RecordState FinishArbitration(const RecordState& record, ViewPtr first);

struct ArbitrationResult {
  std::vector<std::string> silent;  // of `pods`: have not reported
  ViewPtr view;                     // the first of the lineage; null while somebody is silent, or:
  bool nobody_holds = false;        // no living worker holds the state: from the checkpoint
};

// `pods`: uids that have to report. Reports of others, and of lower lineages, count for nothing.
ArbitrationResult Arbitrate(std::uint64_t lineage, const std::vector<std::string>& pods,
                            const std::vector<const ArbitrationReport*>& reports,
                            std::uint32_t min_pods, ClauseSet without = {});

// Whether this pod can begin again: all of its workers are fresh and have called init().
bool ReadyToRestart(const Candidate& candidate);
// The first view of a lineage that begins from the checkpoint. `parent`: the newest view known.
ViewPtr RestartView(std::uint64_t lineage, Epoch parent, std::vector<Candidate> candidates,
                    std::uint32_t min_pods);

}  // namespace ringmaster::membership
