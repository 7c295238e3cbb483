// One operation that a caller has asked for: its request, its buffers, and its result.
//
// Thread rule: it is completed once, normally by the engine's thread; any thread may wait. Request
// and buffer addresses are constant.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/buffer.h"
#include "collectives/engine/pieces.h"
#include "collectives/engine/request.h"
#include "common/sync/mutex.h"
#include "ringmaster/status.h"

namespace ringmaster::engine {

struct StepResult {
  uint64_t epoch = 0;
  uint64_t step = 0;
  int size = 0;
  bool state_synced = false;
};

class Operation {
 public:
  // How an alltoall's input is split: `rows[i]` rows of it, in this order, go to `workers[i]`.
  struct Splits {
    std::vector<uint64_t> rows;
    std::vector<std::string> workers;
  };

  // The GPU in whose memory a tensor lies (if Request::on_gpu).
  struct OnDevice {
    int device = 0;
    // The CUDA event after which the input is there and `out` may be written; null: at once.
    const void* ready_event = nullptr;
  };

  Operation(Request request, const void* in, void* out, size_t rows = 0, Splits splits = {})
      : Operation(std::move(request), in, out, rows, std::move(splits), OnDevice()) {}
  Operation(Request request, const void* in, void* out, size_t rows, Splits splits,
            OnDevice on_device)
      : request(std::move(request)),
        in(in),
        out(out),
        rows(rows),
        splits(std::move(splits)),
        on_device(on_device) {}
  // The allreduce of a prepared group. `pieces` is not null.
  Operation(Request request, std::shared_ptr<const Pieces> pieces, OnDevice on_device)
      : request(std::move(request)),
        in(nullptr),
        out(nullptr),
        rows(0),
        on_device(on_device),
        pieces(std::move(pieces)) {}

  const Request request;
  const void* const in;
  void* const out;
  const size_t rows;  // rows that this rank gives to an allgather or alltoall
  const Splits splits;
  const OnDevice on_device;
  const std::shared_ptr<const Pieces> pieces;  // null: input and result lie at `in` and `out`
  const std::chrono::steady_clock::time_point asked_at = std::chrono::steady_clock::now();

  // Results; valid when done() and the status is OK.
  // A result whose size the caller can't know, in memory of the library; null for other kinds.
  std::shared_ptr<const Buffer> gathered;
  size_t gathered_rows = 0;
  std::vector<size_t> rows_by_rank;  // alltoall: rows received from each rank
  int last_joined = -1;              // of a join: the rank that joined last
  int32_t process_set = 0;           // of an addition of a set: the set's number
  StepResult step;

  // Only the first call counts.
  void Complete(Status status) {
    sync::MutexLock lock(&mu_);
    if (done_) return;
    status_ = std::move(status);
    done_ = true;
    changed_.NotifyAll();
  }
  bool done() const {
    sync::MutexLock lock(&mu_);
    return done_;
  }
  // False: the deadline passed.
  bool WaitUntil(std::chrono::steady_clock::time_point deadline) const {
    sync::MutexLock lock(&mu_);
    while (!done_) {
      if (!changed_.WaitUntil(&mu_, deadline)) return done_;
    }
    return true;
  }
  Status status() const {
    sync::MutexLock lock(&mu_);
    return status_;
  }

 private:
  mutable sync::Mutex mu_;
  mutable sync::CondVar changed_;
  bool done_ GUARDED_BY(mu_) = false;
  Status status_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::engine
