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
// `segment` bytes at a time: a segment comes into the cache once, to be saved and to be reduced.
// The same on all ranks.
struct DirectSizes {
  size_t bytes = size_t{256} << 10;
  size_t segment = size_t{1} << 20;
  // A segment and the slots in which it is staged fit into an L2 cache of 1 MiB. With more than two
  // ranks, smaller segments would cost more by the meeting for each than the cache saves.
  size_t segment_of_two_ranks = size_t{512} << 10;
};

// Whether all ranks of the view share memory. The answer is the same on each of them.
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
  size_t SegmentBytes() const;
  // After a failure: what was saved goes back to the callers.
  void RestoreInputs(const Retained& result, const PendingTable& pending) const;

  const DirectSizes direct_;
  bool all_share_memory_ = false;
  Participants ranks_;
  const Participants::Ranks* on_ = nullptr;  // of what was executed last; null: not this rank
  BufferPool pool_;
};

}  // namespace ringmaster::engine
