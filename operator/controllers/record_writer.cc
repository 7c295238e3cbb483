#include "operator/controllers/record_writer.h"

#include "common/logging/log.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {

using kube::ErrorCode;

bool RecordWriter::WriteFirstView(const planner::Snapshot& snapshot,
                                  const membership::ViewPtr& view) {
  const api::HorovodJob& job = snapshot.job;
  // The very first view needs no reports, because no pod can be in an earlier one.
  const bool recovery = membership::EpochLineage(view->epoch) > 1;
  if (recovery && !IsStillRight(snapshot, view)) return false;
  if (backoff_->Waits(job, Needed::kRecord)) return true;
  const auto written = records_->Bootstrap(job, view);
  if (written) {
    logging::Info("first view job={} epoch={} view={}", job.Key(),
                  membership::EpochText(view->epoch), logging::Value(membership::Describe(*view)));
  }
  return AfterWrite(job, written);
}

bool RecordWriter::BeginRecovery(const planner::Snapshot& snapshot, std::uint64_t lineage,
                                 const planner::Event& event) {
  const api::HorovodJob& job = snapshot.job;
  if (backoff_->Waits(job, Needed::kRecord)) return true;
  const auto begun = records_->BeginRecovery({job.ns, job.name, job.uid}, lineage, snapshot.view);
  if (begun) {
    logging::Warn("no view can train any more, a lineage begins job={} lineage={}", job.Key(),
                  lineage);
    events_->EmitEvent(job, event);
  }
  return AfterWrite(job, begun);
}

bool RecordWriter::AfterWrite(const api::HorovodJob& job, const kube::Result<void>& written) {
  if (written || written.error().code == ErrorCode::kAlreadyExists) {
    backoff_->Worked(job, Needed::kRecord);
    queue_->Add(job.Key());
    return true;
  }
  logging::Warn("record not written job={} error={}", job.Key(),
                logging::Value(written.error().message));
  // Another client's write came first: that is no refusal.
  if (written.error().code == ErrorCode::kConflict) return false;
  backoff_->FailedWithEvent(job, Needed::kRecord, written.error(), "FailedRecord");
  return backoff_->Waits(job, Needed::kRecord);
}

// Whether the pods that the API server lists now, after the last report, lead to the same view: the
// cache may lack a pod that has got into a view meanwhile.
bool RecordWriter::IsStillRight(const planner::Snapshot& snapshot,
                                const membership::ViewPtr& view) {
  const auto fresh = observer_->WithListedPods(snapshot);
  if (!fresh) {
    logging::Warn("pods not listed job={} error={}", snapshot.job.Key(),
                  logging::Value(fresh.error().message));
    return false;
  }
  const planner::QuorumRecovery now = planner::EvaluateRecovery(*fresh);
  return now.view != nullptr ? *now.view == *view
                             : now.nobody_holds && view->reason == membership::Reason::kBootstrap;
}

}  // namespace ringmaster::controllers
