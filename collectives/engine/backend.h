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

  // How the view comes about that is installed next. `planned`: whoever is not in it any more has
  // left at a step's end, and nothing was interrupted.
  virtual void ExpectView(bool /*planned*/) {}
  // A view of `workers`, by rank, stands. `host` is its communicator and stays valid until
  // Uninstall().
  virtual void Install(Communicator* host, const std::vector<std::string>& workers) = 0;
  virtual void Uninstall() = 0;

  // The process set is removed: what was kept for it is of no more use.
  virtual void ForgetSet(int32_t process_set) = 0;

  // It moves best where the callers have it, so packing it with others would cost more than it
  // saves. The same on all ranks of a view: it follows from what they have agreed on and the view.
  virtual bool RunsAlone(const Request& /*request*/) const { return false; }

  // Runs what the ranks have agreed on and puts the result in a buffer of the backend, or, if it
  // sets result->response.direct, where the callers want it: on all ranks alike, and such a result
  // counts only after Confirm(). On failure (RM_ERR_EPOCH_MOVED) the callers' inputs are as they
  // were.
  virtual Status Execute(const Response& response, const PendingTable& pending,
                         Retained* result) = 0;

  // Returns when all ranks that take part in what was executed last have executed it.
  virtual Status Confirm() = 0;
  // Confirm() has failed, so the operation may run once more: the callers' inputs are again as they
  // were, and the result is kept beside them.
  virtual void Withdraw(Retained* /*result*/, const PendingTable& /*pending*/) {}

  // Gives all ranks the result that rank `holder` has kept: `held` on the holder, null elsewhere.
  // Ranks that have it too take part all the same. `result` says how many bytes its parts have.
  virtual Status HandOver(int holder, const Retained* held, Retained* result) = 0;

  // Copies the result to the callers' buffers and completes their operations, but for step ends,
  // which the engine completes itself. False: an operation of the response is not pending here.
  virtual bool Publish(const Retained& result, PendingTable* pending) = 0;

  // Ends what waits for peers in views up to `epoch`, now and later: RM_ERR_EPOCH_MOVED. The host's
  // communicator is aborted as well.
  virtual void Abort(uint64_t /*epoch*/) {}
};

}  // namespace ringmaster::engine
