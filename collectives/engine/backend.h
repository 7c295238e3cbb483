// Backend: what moves the bytes of agreed operations.
//
// Agreement, votes and recovery stay on the host's communicator, whatever the backend: so a view
// change is decided in one place, and a backend only has to run what all have agreed on, or say
// that it could not. CpuBackend runs on the host's communicator itself, so aborting that ends its
// calls too; a backend with a path of its own (collectives/nccl) has Abort().
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

  // Says how the view that is installed next comes about. `planned`: the ranks that are not in it
  // any more have left at the end of a step, and nothing was interrupted.
  virtual void ExpectView(bool /*planned*/) {}
  // A view of `workers`, by rank, stands. `host` is its communicator and stays valid until
  // Uninstall().
  virtual void Install(Communicator* host, const std::vector<std::string>& workers) = 0;
  virtual void Uninstall() = 0;

  // The process set is removed: frees what was kept for it.
  virtual void ForgetSet(int32_t process_set) = 0;

  // Whether this request is better reduced where the callers have it than packed with others. The
  // answer is the same on all ranks of a view, because it follows from the view and from what the
  // ranks have agreed on.
  virtual bool RunsAlone(const Request& /*request*/) const { return false; }

  // Runs what the ranks have agreed on. The result goes to a buffer of the backend or, if the
  // backend sets result->response.direct (on all ranks alike), to where the callers want it; such a
  // result counts only after Confirm(). On failure (RM_ERR_EPOCH_MOVED) the callers' inputs are as
  // they were.
  virtual Status Execute(const Response& response, const PendingTable& pending,
                         Retained* result) = 0;

  // Returns when the last operation has been executed by all ranks that take part in it.
  virtual Status Confirm() = 0;
  // Confirm() has failed, so the operation may run once more: the callers' inputs are again as they
  // were, and the result is kept beside them.
  virtual void Withdraw(Retained* /*result*/, const PendingTable& /*pending*/) {}

  // Gives all ranks the result that rank `holder` has kept: `held` on the holder, null elsewhere.
  // Other ranks that have it take part, too. `result` says how many bytes its parts have.
  virtual Status HandOver(int holder, const Retained* held, Retained* result) = 0;

  // Copies the result to the callers' buffers and completes their operations, but for step ends,
  // which the engine completes itself. False: an operation of the response is not pending here.
  virtual bool Publish(const Retained& result, PendingTable* pending) = 0;

  // Ends what waits for peers in views up to `epoch`, now and later: RM_ERR_EPOCH_MOVED. The host's
  // communicator is aborted as well.
  virtual void Abort(uint64_t /*epoch*/) {}
};

}  // namespace ringmaster::engine
