// One communicator of NCCL. It is made, used and given up with a limit of time for each step.
//
// Owner: NcclGroup. Thread rule: the engine's thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/nccl/gpu.h"
#include "collectives/nccl/nccl_api.h"
#include "collectives/nccl/patience.h"
#include "ringmaster/status.h"

namespace ringmaster::nccl {

// Turns a result of NCCL's into a Status: RM_ERR_EPOCH_MOVED if a peer, a network or a device may
// have failed, so that another view may help; RM_ERR_INTERNAL if the call was wrong.
Status StatusOf(NcclApi* api, Result result, Comm comm, const std::string& what);

// A communicator that was given up and is to be aborted.
struct GivenUp {
  Comm comm = nullptr;
  int device = 0;  // on which it was made
  // Where NCCL stores a communicator that is shrunk from this one, at any time until this one's
  // abort has returned. What it stores is aborted, too. Null: nothing was begun.
  std::shared_ptr<Comm> child;
};

class NcclLink {
 public:
  // All ranks of the new communicator call it. `device` is the calling thread's.
  static Status Init(std::shared_ptr<NcclApi> api, int device, const UniqueId& id, int ranks,
                     int rank, const Patience& patience, std::unique_ptr<NcclLink>* out);
  // All ranks of this communicator but the excluded call it. This communicator is then given up,
  // whether that has succeeded or not.
  Status Shrink(std::vector<int> excluded, int flags, const Patience& patience,
                std::unique_ptr<NcclLink>* out);
  // A communicator that was not released is leaked. To give it up (AbortAll) may take long, so the
  // owner has to ask for it.
  ~NcclLink() = default;
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  NcclApi* api() const { return api_.get(); }
  Comm comm() const { return comm_; }
  int device() const { return device_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t origin() const { return origin_; }
  bool revoked() const { return revoked_; }
  uint64_t launched() const { return launched_; }
  void CountLaunch() { ++launched_; }

  // Waits until what a call has begun that returned `result` is done on the host's side.
  Status Settle(Result result, const std::string& what, const Patience& patience);
  // The error that NCCL has noticed on this communicator; no value: none.
  std::optional<Status> Trouble();
  // RevokeAll() was called for it.
  void MarkRevoked() { revoked_ = true; }
  // Returns the communicator, if there is one, which the caller then has to abort.
  std::optional<GivenUp> Release();

 private:
  NcclLink(std::shared_ptr<NcclApi> api, int device, int rank, int size, uint64_t origin)
      : api_(std::move(api)), device_(device), rank_(rank), size_(size), origin_(origin) {}

  const std::shared_ptr<NcclApi> api_;
  const int device_, rank_, size_;
  const uint64_t origin_;
  Comm comm_ = nullptr;
  std::shared_ptr<Comm> child_;
  bool revoked_ = false;
  uint64_t launched_ = 0;
};

// Ends what runs on these communicators on this rank alone, all at once, on threads of its own:
// NCCL waits for a thread that launches something. An error: something may still run.
Status RevokeAll(const Gpu& gpu, const std::vector<NcclLink*>& links, const Patience& patience);

// How something that goes on in other threads has ended; no value: it goes on.
using Ended = std::function<std::optional<Status>()>;
// Begins to end and to free these communicators, all at once: freeing one waits for the device, on
// which a kernel of another one may run until that is aborted too.
Ended StartAborts(const Gpu& gpu, const std::vector<GivenUp>& comms);
// RM_ERR_TIMEOUT, RM_ERR_EPOCH_MOVED: the patience has ended first, and the aborts go on. Another
// error is NCCL's: a kernel of one of them may still run.
Status AwaitAborts(const Ended& aborts, const Patience& patience);
// Ends when both have ended, with the first error. `first` may be empty.
Ended Both(Ended first, Ended second);
// Starts and awaits them.
Status AbortAll(const Gpu& gpu, const std::vector<GivenUp>& comms, const Patience& patience);

}  // namespace ringmaster::nccl
