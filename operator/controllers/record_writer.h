// Writes what the planner decides about a job's quorum record: the first view of a lineage, and the
// beginning of a recovery from quorum loss.
//
// Both methods return false if the job has to be reconciled again after a while.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <cstdint>

#include "operator/controllers/creation_backoff.h"
#include "operator/controllers/event_writer.h"
#include "operator/controllers/job_observer.h"
#include "operator/controllers/quorum_record_store.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

class RecordWriter {
 public:
  // All arguments outlive the writer. Through `queue` the job comes back after a write of the
  // record: the next reconcile notifies the sidecars of its content.
  RecordWriter(QuorumRecordStore* records, JobObserver* observer, CreationBackoff* backoff,
               EventWriter* events, runtime::WorkQueue* queue)
      : records_(records), observer_(observer), backoff_(backoff), events_(events), queue_(queue) {}

  bool WriteFirstView(const planner::Snapshot& snapshot, const membership::ViewPtr& view);
  // Emits `event` at once: the lineage is written to the job's status first, so the status that
  // this reconcile writes later will be refused, and with it its events.
  bool BeginRecovery(const planner::Snapshot& snapshot, std::uint64_t lineage,
                     const planner::Event& event);

 private:
  bool IsStillRight(const planner::Snapshot& snapshot, const membership::ViewPtr& view);
  bool AfterWrite(const api::HorovodJob& job, const kube::Result<void>& written);

  QuorumRecordStore* const records_;
  JobObserver* const observer_;
  CreationBackoff* const backoff_;
  EventWriter* const events_;
  runtime::WorkQueue* const queue_;
};

}  // namespace ringmaster::controllers
