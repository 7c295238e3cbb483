// The backend that reduces in the host's memory, on the host's communicator.
//
// Execution and publication are apart because the result is retained between them: a survivor that
// has not executed an operation gets the buffer from one that has, and only publishes it.
//
// Thread rule: the engine's thread only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/engine/backend.h"
#include "collectives/engine/participants.h"

namespace ringmaster::engine {

// An allreduce of at least `bytes` over shared memory is reduced where the callers have it,
// `piece` bytes at a time: a piece comes into the cache once, to be saved and to be reduced. The
// same on all ranks.
struct DirectSizes {
  size_t bytes = size_t{256} << 10;
  size_t piece = size_t{1} << 20;
  // With what it is staged in, it fits into 1 MiB of L2. More ranks lose more by meeting for each
  // piece than they win by that.
  size_t piece_of_two_ranks = size_t{512} << 10;
};

// All ranks of the view: the same answer on each of them.
bool AllShareMemory(const Communicator* host);

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(DirectSizes direct = {}) : direct_(direct) {}

  void Install(Communicator* host, const std::vector<std::string>& workers) override {
    ranks_.Install(host, workers);
    all_share_memory_ = AllShareMemory(host);
  }
  void Uninstall() override { ranks_.Uninstall(); }
  void ForgetSet(int32_t process_set) override { ranks_.ForgetSet(process_set); }
  bool RunsAlone(const Request& request) const override;
  Status Execute(const Response& response, const PendingTable& pending, Retained* result) override;
  Status Confirm() override { return on_->host->Barrier(); }
  void Withdraw(Retained* result, const PendingTable& pending) override;
  Status HandOver(int holder, const Retained* held, Retained* result) override;
  bool Publish(const Retained& result, PendingTable* pending) override;

 private:
  using Batch = std::span<const Request>;

  // The same on all ranks: it depends on the view.
  size_t PieceBytes() const;
  // After a failure: what was saved goes back to the callers.
  void RestoreInputs(const Retained& result, const PendingTable& pending) const;

  const DirectSizes direct_;
  bool all_share_memory_ = false;
  Participants ranks_;
  const Participants::Ranks* on_ = nullptr;  // of what was executed last; null: not this rank
  BufferPool pool_;
};

}  // namespace ringmaster::engine
