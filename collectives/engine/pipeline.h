// Takes the operations of this rank through their stages: they are agreed on, executed, kept and
// published.
//
// Owner: the engine's loop. Thread rule: Abort() from any thread, the rest from the engine's.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "collectives/engine/backend.h"
#include "collectives/engine/negotiator.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/recovery.h"
#include "collectives/engine/result_log.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

class Pipeline {
 public:
  // `pending`: what this rank has asked for; Publish() takes operations from it. Outlives this.
  Pipeline(std::unique_ptr<Backend> backend, size_t fusion_bytes, PendingTable* pending)
      : backend_(std::move(backend)),
        pending_(pending),
        negotiator_({fusion_bytes, [this](const Request& r) { return backend_->RunsAlone(r); }},
                    &sets_) {}
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // A view is installed, or is over. Call nothing that runs in a view without one. `workers` and
  // `planned` as for Backend.
  void Install(Communicator* host, const std::vector<std::string>& workers, bool planned = false);
  void Uninstall();
  // The size up to which all ranks of the view pack requests into one buffer.
  void SetFusionBytes(size_t bytes) { negotiator_.SetFusionBytes(bytes); }

  // From any thread: Backend::Abort.
  void Abort(uint64_t epoch) { backend_->Abort(epoch); }

  // ---- Process sets
  const SetTable& sets() const { return sets_; }
  // Why an operation of this process set can't be asked for here; RM_OK: it can.
  Status CheckSet(int32_t process_set) const;
  // Adds or removes a process set if that is what the response is for, and remembers a transfer.
  // Call it before the response is published. Returns the operations of a removed set that are
  // still pending.
  std::vector<std::shared_ptr<Operation>> ApplySets(const Retained& result);

  // Forgets what has been announced, and the process sets. All ranks must call it between the same
  // two operations.
  void Void();

  // ---- Agreed on, executed, published
  // One round with all ranks (Negotiator::Round). Operations that were asked for before `long_ago`
  // have waited for a long time; they will be in result->unanswered.
  Status Agree(bool armed, std::chrono::steady_clock::time_point long_ago, RoundResult* result);
  // Executes `response` as operation next_number(). *result is the result, which is kept from now
  // on. On failure the operation has not been executed; if only its confirmation has failed, its
  // result is kept as prepared. Errors are those of Backend::Execute.
  Status Execute(Response response, const Retained** result);
  // Copies the result to the callers' buffers and completes their operations, except step ends.
  void Publish(const Retained& result) { backend_->Publish(result, pending_); }
  uint64_t next_number() const { return log_.next_number(); }

  // ---- After a view change
  std::vector<Holding::Result> Holdings() const { return log_.Holdings(); }
  // Sends a kept result from the rank that holds it to those that lack it; all ranks take part.
  // `lacks`: this rank has the job's state, so it needs the results that it lacks. *result: what
  // this rank has received and keeps; null if it needed nothing.
  Status HandOver(const RecoveryPlan::Handover& handover, bool lacks, const Retained** result);
  // Drops the results that are kept, because this rank's state counts for nothing any more.
  void DropResults() { log_.Trim(); }
  // This rank has been given the state after all operations with numbers below `next_number`.
  void Restart(uint64_t next_number, const SetTable& sets) {
    log_.Restart(next_number);
    sets_ = sets;
  }

 private:
  // Another rank knows that all ranks have executed this operation, so what this rank has prepared
  // counts. RM_ERR_INTERNAL: it has prepared nothing.
  Status CommitOwn(const Response& response, const Retained** result);

  Communicator* host_ = nullptr;  // null: no view
  const std::unique_ptr<Backend> backend_;
  PendingTable* const pending_;
  SetTable sets_;
  std::string self_;  // this worker's name
  Negotiator negotiator_;
  ResultLog log_;
};

}  // namespace ringmaster::engine
