// One collective that a caller asked for: its buffers, and the result it waits for.
//
// Thread rule: the engine's thread completes it, once; any thread may wait. Request and buffers are
// constant.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "collectives/engine/buffer.h"
#include "collectives/engine/request.h"
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
  Operation(Request request, const void* in, void* out, size_t rows = 0)
      : request(std::move(request)), in(in), out(out), rows(rows) {}

  const Request request;
  const void* const in;
  void* const out;
  const size_t rows;  // of this rank, allgather only

  // Results; valid when done() and the status is OK.
  std::shared_ptr<const Buffer> gathered;
  std::vector<size_t> rows_by_rank;
  StepResult step;

  void Complete(Status status) {
    std::lock_guard lock(mu_);
    if (done_) return;
    status_ = std::move(status);
    done_ = true;
    changed_.notify_all();
  }
  bool done() const {
    std::lock_guard lock(mu_);
    return done_;
  }
  // False: the deadline passed.
  bool WaitUntil(std::chrono::steady_clock::time_point deadline) const {
    std::unique_lock lock(mu_);
    return changed_.wait_until(lock, deadline, [this] { return done_; });
  }
  Status status() const {
    std::lock_guard lock(mu_);
    return status_;
  }

 private:
  mutable std::mutex mu_;
  mutable std::condition_variable changed_;
  bool done_ = false;
  Status status_;
};

}  // namespace ringmaster::engine
