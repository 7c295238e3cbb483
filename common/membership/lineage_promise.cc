#include "common/membership/lineage_promise.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ringmaster::membership {

void LineagePromise::Ask(std::uint64_t lineage) {
  const bool begun = lineage <= EpochLineage(parts_.state->epoch());
  if (begun || lineage < parts_.state->stored().lineage) return;
  asked_ = std::max(asked_, lineage);
}

void LineagePromise::Renew() {
  if (asked_ == 0) asked_ = reported_;
  parts_.workers->ForgetStopAll();
}

bool LineagePromise::Advance() {
  if (asked_ == 0) return false;
  if (asked_ <= EpochLineage(parts_.state->epoch())) {
    asked_ = reported_ = 0;
    return false;
  }
  if (!parts_.workers->known()) return false;  // an unknown worker would count as dead
  const Epoch first = MakeEpoch(asked_, 0);
  parts_.workers->StopAllBelow(first);
  if (!parts_.workers->StoppedBelow(first) && !without_.Has(Clause::kStopBeforeReport)) {
    return false;
  }
  const std::uint64_t lineage = std::exchange(asked_, 0);
  const bool promises =
      parts_.state->stored().lineage < lineage && !without_.Has(Clause::kLineagePromise);
  if (promises) {
    parts_.state->PromiseLineage(lineage);
    parts_.outbox->EmitLog("makes way for lineage " + std::to_string(lineage));
  }
  Report(lineage);
  return promises;
}

void LineagePromise::Report(std::uint64_t lineage) {
  const MemberState& state = *parts_.state;
  reported_ = lineage;
  RecoveryReport report;
  report.lineage = lineage;
  report.view = state.stored().view;
  report.resigned = state.in_view() && state.stored().resigned;
  report.ran = state.in_view() && parts_.ranks->ran();
  report.candidate.pod = self_;
  report.candidate.workers = parts_.workers->living();
  parts_.outbox->Emit(ReportToOperator{std::move(report)});
}

}  // namespace ringmaster::membership
