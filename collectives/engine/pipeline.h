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

  // A view stands, or is over. Between the two nothing is executed.
  void Install(Communicator* host, const std::vector<std::string>& workers, bool planned = false);
  void Uninstall();
  // Up to so many bytes all ranks of the view pack into one buffer.
  void SetFusionBytes(size_t bytes) { negotiator_.SetFusionBytes(bytes); }

  // From any thread: Backend::Abort.
  void Abort(uint64_t epoch) { backend_->Abort(epoch); }

  // ---- Process sets
  const SetTable& sets() const { return sets_; }
  // Why an operation of this process set can't be asked for here; RM_OK: it can.
  Status CheckSet(int32_t process_set) const;
  // What adds or removes a process set does so, and a transfer is remembered; to be called before
  // it is published. Returned are the operations of a removed set: they are left over.
  std::vector<std::shared_ptr<Operation>> ApplySets(const Retained& result);

  // ---- Agreed on, executed, given out
  // One round with all ranks. On failure (RM_ERR_EPOCH_MOVED) nothing has happened.
  // `long_ago`: what was asked for before has waited for long, and is in result->unanswered.
  Status Agree(bool armed, std::chrono::steady_clock::time_point long_ago, RoundResult* result);
  // Executes `response` as operation next_number(), whose result is then kept: *result.
  Status Execute(Response response, const Retained** result);
  // Copies the result to the callers' buffers and completes their operations, but for step ends.
  void Publish(const Retained& result) { backend_->Publish(result, pending_); }
  uint64_t next_number() const { return log_.next_number(); }

  // ---- After a view change
  std::vector<Holding::Result> Holdings() const { return log_.Holdings(); }
  // All ranks take part in sending a kept result from its holder to those without it. *result: what
  // this rank has received and keeps; null if it needed none. `lacks`: it has state, so it may.
  Status HandOver(const RecoveryPlan::Handover& handover, bool lacks, const Retained** result);
  // What is kept is of no use to anybody any more: this rank's state counts for nothing.
  void DropResults() { log_.Trim(); }
  // This rank has been given the state in which all operations below have been executed.
  void Restart(uint64_t next_number, const SetTable& sets) {
    log_.Restart(next_number);
    sets_ = sets;
  }

 private:
  // Another rank knows that all have executed it.
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
