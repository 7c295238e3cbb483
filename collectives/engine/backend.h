// Backend: what moves the bytes of agreed operations.
//
// Negotiation and recovery use the host's communicator, whatever the backend is. So a view change
// is decided in one place, and a backend only has to run what all ranks have agreed on, or say that
// it could not. CpuBackend itself runs on the host's communicator, so an abort of that ends its
// calls, too; a backend that moves bytes another way (collectives/nccl) overrides Abort().
//
// Owner: the engine's Pipeline. Thread rule: Abort() from any thread, the rest from the engine's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/engine/pending_table.h"
#include "collectives/engine/response.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

class Backend {
 public:
  virtual ~Backend() = default;

  // Called before Install(). `planned`: the view comes from a planned change, so the ranks that are
  // no longer in it have left at the end of a step, and nothing was interrupted.
  virtual void ExpectView(bool /*planned*/) {}
  // A new view of `workers`, by rank, is connected. `host` is its communicator and stays valid
  // until Uninstall().
  virtual void Install(Communicator* host, const std::vector<std::string>& workers) = 0;
  virtual void Uninstall() = 0;

  // The process set has been removed: frees what was kept for it.
  virtual void ForgetSet(int32_t process_set) = 0;

  // Whether this request should be reduced in the callers' buffers instead of being packed with
  // others. The answer must be the same on all ranks of a view, so it may depend only on the view
  // and on what the ranks have agreed on.
  virtual bool RunsAlone(const Request& /*request*/) const { return false; }

  // Runs what the ranks have agreed on. The result goes to a buffer of the backend, or to the
  // callers' `out` if the backend sets result->response.direct (on all ranks alike); a direct
  // result counts only after Confirm(). On failure the callers' inputs are as they were.
  // RM_ERR_EPOCH_MOVED: the view is dead. RM_ERR_OUT_OF_MEMORY, RM_ERR_INTERNAL: this worker can't
  // go on.
  virtual Status Execute(const Response& response, const PendingTable& pending,
                         Retained* result) = 0;

  // Another backend runs this. All ranks of the view call it for each such response, in their
  // order, also those that take no part in it: what the ranks agree on by counting what they have
  // run stays the same on all of them.
  virtual void Note(const Response& /*response*/) {}

  // Returns when all ranks that take part in the last operation have executed it. Only called if
  // this rank takes part.
  virtual Status Confirm() = 0;
  // Confirm() has failed, so the operation may have to run once more: restores the callers' inputs
  // that a direct result has overwritten, and moves that result to a buffer in *result.
  virtual void Withdraw(Retained* /*result*/, const PendingTable& /*pending*/) {}

  // Gives all ranks the result that rank `holder` has kept. `held`: the result on the holder; null
  // on ranks that lack it. All ranks of the view take part, also those that need nothing. On entry
  // the parts of `result` have their sizes; on return they have the data.
  virtual Status HandOver(int holder, const Retained* held, Retained* result) = 0;

  // Copies the result to the callers' buffers and completes their operations, except step ends,
  // which the engine completes itself. False: an operation of the response is not pending here.
  virtual bool Publish(const Retained& result, PendingTable* pending) = 0;

  // Ends every wait for peers in views up to `epoch`, now and later, with RM_ERR_EPOCH_MOVED. The
  // caller aborts the host's communicator as well.
  virtual void Abort(uint64_t /*epoch*/) {}
};

}  // namespace ringmaster::engine
