// MPI in this process: its beginning and end, the communicator of all ranks that is ours alone, and
// the waits for what was begun.
//
// What MPI has begun can't be ended, only given up: if a wait fails, MPI may still read and write
// the memory. From then on the world is stuck: nothing more is begun, MPI is not finalised, and
// memory that MPI may write is kept for ever (KeepForEver).
//
// Owner: elastic's EngineHost. Thread rule: Begin(), Connect() and Finish() on threads of the user
// while the engine's thread makes no calls; Await() and begun calls on the engine's. The rest is
// constant after Connect().
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "collectives/mpi/mpi_api.h"
#include "ringmaster/communicator.h"
#include "ringmaster/status.h"

namespace ringmaster::mpi {

struct MpiLimits {
  std::chrono::milliseconds collective{600'000};  // one call of MPI
  std::chrono::milliseconds connect{60'000};      // making a communicator of some ranks
  std::chrono::milliseconds check{10};            // how often a wait looks for dead peers
  // After an error of MPI: for how long the host's communicator may take to name a dead peer.
  std::chrono::milliseconds explain{2'000};
  size_t bytes = size_t{1} << 30;  // what one call of MPI moves at most
};

class MpiWorld {
 public:
  using Clock = std::chrono::steady_clock;

  MpiWorld(std::unique_ptr<MpiApi> mpi, MpiLimits limits) : mpi_(std::move(mpi)), limits_(limits) {}

  // Initialises MPI unless the script has. All ranks call it. RM_ERR_UNAVAILABLE: MPI allows no
  // calls from the engine's thread, or numbers the ranks in another way than the launcher.
  Status Begin(int rank, int size);
  // After Begin() on all ranks: makes the communicator that is ours alone. RM_ERR_TIMEOUT: the
  // others have not come by the deadline.
  Status Connect(Clock::time_point deadline);
  // Finalises MPI if Begin() has initialised it. To be called where all ranks have agreed to end.
  // Does nothing where the script has finalised MPI, or something was given up. RM_ERR_TIMEOUT:
  // the others have not come, so MPI is not finalised.
  Status Finish(Clock::time_point deadline);

  MpiApi* mpi() const { return mpi_.get(); }
  const MpiLimits& limits() const { return limits_; }
  Comm all() const { return all_; }
  // Whether the script may call MPI while we do.
  bool parallel() const { return threads_ == RM_MPI_PARALLEL_THREADS; }

  // RM_ERR_INTERNAL: nothing can be begun any more: something was given up, or the script has
  // finalised MPI.
  Status CheckUsable() const;
  // Waits for what was begun with this code. `host`: a communicator of the same ranks or more,
  // which is asked whether the peers live. RM_ERR_EPOCH_MOVED: they do not. RM_ERR_INTERNAL: MPI
  // says an error, or the limit has passed.
  Status Await(Communicator* host, const std::string& what, Code begun, Request request);
  // Makes a communicator of these ranks of all; each of them calls it at the same place.
  Status Group(Communicator* host, std::span<const int> ranks, Comm* out);
  void Free(Comm comm);
  bool stuck() const { return !stuck_.empty(); }

 private:
  Status AwaitUntil(Communicator* host, const std::string& what, Request request,
                    Clock::time_point deadline);
  Status GiveUp(Status why);
  Status Failed(Communicator* host, const std::string& what, Code code);

  // Shared with a call that blocks, which may outlast this.
  const std::shared_ptr<MpiApi> mpi_;
  const MpiLimits limits_;
  bool started_ = false;  // by us
  Threads threads_ = RM_MPI_ONE_THREAD;
  Comm all_ = nullptr;
  std::string stuck_;  // why nothing can be begun any more; empty: it can
};

// Keeps memory that MPI may still write to, until the process ends.
void KeepForEver(std::shared_ptr<void> memory);

}  // namespace ringmaster::mpi
