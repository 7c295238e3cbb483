// The operations of this rank on their way: agreed on, executed, kept, given out.
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
  // `pending`: what this rank has asked for; what is given out is taken from there. Outlives this.
  Pipeline(std::unique_ptr<Backend> backend, size_t fusion_bytes, PendingTable* pending)
      : backend_(std::move(backend)),
        pending_(pending),
        negotiator_({fusion_bytes, [this](const Request& r) { return backend_->RunsAlone(r); }},
                    &sets_) {}
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // A view is installed, or is over. Without a view nothing is executed.
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

  // Forgets what has been asked for, and the process sets. All ranks do so between the same two
  // operations.
  void Void();

  // ---- Agreed on, executed, given out
  // One round with all ranks. On failure (RM_ERR_EPOCH_MOVED) nothing has happened.
  // Operations that were asked for before `long_ago` have waited for a long time: they are in
  // result->unanswered.
  Status Agree(bool armed, std::chrono::steady_clock::time_point long_ago, RoundResult* result);
  // Executes `response` as operation next_number(), whose result is then kept: *result.
  Status Execute(Response response, const Retained** result);
  // Copies the result to the callers' buffers and completes their operations, but for step ends.
  void Publish(const Retained& result) { backend_->Publish(result, pending_); }
  uint64_t next_number() const { return log_.next_number(); }

  // ---- After a view change
  std::vector<Holding::Result> Holdings() const { return log_.Holdings(); }
  // All ranks take part in sending a kept result from the rank that holds it to those without it.
  // `lacks`: this rank needs it. *result: what this rank has received and keeps; null if it needed
  // nothing.
  Status HandOver(const RecoveryPlan::Handover& handover, bool lacks, const Retained** result);
  // Drops the results that are kept: this rank's state counts for nothing, so nobody can use them
  // any more.
  void DropResults() { log_.Trim(); }
  // This rank has been given the state in which all operations below have been executed.
  void Restart(uint64_t next_number, const SetTable& sets) {
    log_.Restart(next_number);
    sets_ = sets;
  }

 private:
  // Another rank knows that all ranks have executed this operation.
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
