// The backend that reduces in the host's memory, on the host's communicator.
//
// Execution and publication are apart because the result is retained between them: a survivor that
// has not executed an operation gets the buffer from one that has, and only publishes it.
//
// Thread rule: the engine's thread only.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/engine/backend.h"

namespace ringmaster::engine {

// A lone allreduce of at least `bytes` over shared memory is reduced where the callers have it,
// `piece` bytes at a time: what has to be saved of a piece is saved while it is in cache. The same
// on all ranks.
struct DirectSizes {
  size_t bytes = size_t{256} << 10;
  size_t piece = size_t{1} << 20;
};

// All ranks of the view: the same answer on each of them.
bool AllShareMemory(const Communicator* host);

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(DirectSizes direct = {}) : direct_(direct) {}

  void Install(Communicator* host, const std::vector<std::string>& workers) override {
    host_ = host;
    world_ = {nullptr, host, workers};
    all_share_memory_ = AllShareMemory(host);
  }
  void Uninstall() override {
    host_ = nullptr;
    sets_.clear();
  }
  void ForgetSet(int32_t process_set) override { sets_.erase(process_set); }
  Status Execute(const Response& response, const PendingTable& pending, Retained* result) override;
  Status Confirm() override { return on_->host->Barrier(); }
  void Withdraw(Retained* result, const PendingTable& pending) override;
  Status HandOver(int holder, const Retained* held, Retained* result) override;
  bool Publish(const Retained& result, PendingTable* pending) override;

 private:
  using Batch = std::span<const Request>;

  Status Run(Batch batch, int root, const PendingTable& pending, Part* part);
  Status Allreduce(Batch batch, const PendingTable& pending, Part* part);
  // The same on all ranks: it depends on what they have agreed on, and on the view.
  bool RunsDirect(Batch batch) const;
  Status DirectAllreduce(const Request& request, const PendingTable& pending, Part* part);
  // After a failure: what was saved goes back to the callers.
  void RestoreInputs(const Retained& result, const PendingTable& pending) const;
  Status Adasum(const Request& request, const PendingTable& pending, Part* part);
  Status Allgather(const Request& request, const PendingTable& pending, Part* part);
  Status Broadcast(const Request& request, int root, const PendingTable& pending, Part* part);

  Status Reducescatter(const Request& request, const PendingTable& pending, Part* part);
  Status Alltoall(const Request& request, const PendingTable& pending, Part* part);
  // Rows that this rank sends to each rank of the view.
  std::vector<uint64_t> RowsTo(const Operation& operation) const;
  // What it sends, in the order of the view's ranks; in `packed` if it isn't the input itself.
  const std::byte* Packed(const Operation& operation, const std::vector<uint64_t>& rows,
                          std::shared_ptr<Buffer>* packed);

  // Those that take part in an operation: all ranks of the view, or a process set's.
  struct Ranks {
    std::unique_ptr<Communicator> own;  // of a set
    Communicator* host = nullptr;
    std::vector<std::string> workers;  // by rank
  };
  // *on_ becomes those that take part; null: this rank is none of them.
  Status Choose(const Response& response);

  const DirectSizes direct_;
  Communicator* host_ = nullptr;
  bool all_share_memory_ = false;
  Ranks world_;
  std::map<int32_t, Ranks> sets_;  // of this view, by number
  const Ranks* on_ = nullptr;
  BufferPool pool_;
};

}  // namespace ringmaster::engine
