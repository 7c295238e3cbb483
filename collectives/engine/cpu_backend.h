// The backend that reduces in the host's memory, over the host's communicator.
//
// Execution and publication are separate calls because the result is retained between them: a
// survivor that has not executed an operation gets the result from one that has, and then only
// publishes it.
//
// Thread rule: the engine's thread only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/engine/backend.h"
#include "collectives/engine/participants.h"

namespace ringmaster::engine {

// Sizes of direct allreduces, in bytes; they are the same on all ranks. An allreduce of at least
// `bytes` over shared memory is reduced in the callers' buffers, `segment` bytes at a time, so that
// a segment that is saved and then reduced is read into the cache only once.
struct DirectSizes {
  size_t bytes = size_t{256} << 10;
  size_t segment = size_t{1} << 20;
  // A segment of this size and the slots in which it is staged fit into an L2 cache of 1 MiB. With
  // more than two ranks, such small segments would cost more than the cache saves, because the
  // ranks wait for each other at each segment.
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
  void Note(const Response& response) override { ranks_.Note(response); }
  Status Confirm() override { return on_->host->Barrier(); }
  void Withdraw(Retained* result, const PendingTable& pending) override;
  Status HandOver(int holder, const Retained* held, Retained* result) override;
  bool Publish(const Retained& result, PendingTable* pending) override;

 private:
  using Batch = std::span<const Request>;

  // The same on all ranks that take part.
  size_t SegmentBytes() const;
  // After a failure: copies the saved inputs back to the callers' buffers.
  void RestoreInputs(const Retained& result, const PendingTable& pending) const;

  const DirectSizes direct_;
  bool all_share_memory_ = false;
  Participants ranks_;
  // The ranks that took part in what was executed last; null: this rank did not.
  const Participants::Ranks* on_ = nullptr;
  BufferPool pool_;
};

}  // namespace ringmaster::engine
