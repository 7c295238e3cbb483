// Making way for a new lineage: stop, promise, report (rule 9).
#include <algorithm>
#include <utility>

#include "common/membership/member_impl.h"

namespace ringmaster::membership {

void MemberImpl::OnRecoveryReport(const RecoveryAsked& event) {
  // Of a lineage that has begun already.
  if (event.lineage <= EpochLineage(EpochOf(state_.view)) || event.lineage < state_.lineage) return;
  asked_lineage_ = std::max(asked_lineage_, event.lineage);
}

void MemberImpl::CheckRecovery() {
  if (asked_lineage_ == 0) return;
  if (asked_lineage_ <= EpochLineage(EpochOf(state_.view))) {
    asked_lineage_ = reported_lineage_ = 0;
    return;
  }
  if (!workers_known_) return;  // an unknown worker would count as dead
  // All workers, whatever view they are in: a pod that has lost its file knows of none, and its
  // workers may train on.
  const Epoch below = MakeEpoch(asked_lineage_, 0);
  if (way_asked_ < below) {
    way_asked_ = below;
    if (self_ >= 0 && !stop_sent_ && !stopped_) {
      stop_sent_ = true;
      if (!state_.stopping) {
        state_.stopping = true;
        Store();
      }
    }
    Emit(StopWorkers{below});
  }
  if (way_stopped_ < below && Holds(Clause::kStopBeforeReport)) return;
  const std::uint64_t lineage = std::exchange(asked_lineage_, 0);
  if (state_.lineage < lineage && Holds(Clause::kLineagePromise)) {
    GiveUp();
    pending_.reset();
    state_.lineage = lineage;
    Store();
    Say("makes way for lineage " + std::to_string(lineage));
  }
  ReportToOperator(lineage);
}

void MemberImpl::ReportToOperator(std::uint64_t lineage) {
  reported_lineage_ = lineage;
  RecoveryReport report;
  report.lineage = lineage;
  report.view = state_.view;
  report.resigned = self_ >= 0 && state_.resigned;
  report.ran = self_ >= 0 && ran_;
  report.candidate.pod = config_.self;
  report.candidate.workers = workers_;
  Emit(ReportToArbiter{std::move(report)});
}

}  // namespace ringmaster::membership
