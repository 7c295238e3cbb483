// One communicator of NCCL: made, used, given up, each within a limit of time.
//
// Owner: NcclGroup. Thread rule: the engine's thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/nccl/nccl_api.h"
#include "collectives/nccl/patience.h"
#include "ringmaster/status.h"

namespace ringmaster::nccl {

// What an error of NCCL asks for: RM_ERR_EPOCH_MOVED where a peer, a network or a device may have
// failed, so another view may help; RM_ERR_INTERNAL where the call was wrong.
Status StatusOf(NcclApi* api, Result result, Comm comm, const std::string& what);

class NcclLink {
 public:
  // All ranks of the new communicator call it.
  static Status Init(std::shared_ptr<NcclApi> api, const UniqueId& id, int ranks, int rank,
                     const Patience& patience, std::unique_ptr<NcclLink>* out);
  // All ranks of this one but the excluded call it.
  Status Shrink(std::vector<int> excluded, int flags, const Patience& patience,
                std::unique_ptr<NcclLink>* out);
  // A communicator that is still there is leaked. Giving it up (AbortAll) may take long, so the
  // owner has to ask for it.
  ~NcclLink() = default;
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  NcclApi* api() const { return api_.get(); }
  Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t lineage() const { return lineage_; }
  bool revoked() const { return revoked_; }
  uint64_t launched() const { return launched_; }
  void CountLaunch() { ++launched_; }

  // Until what a call that answered `result` has begun is done on the host's side.
  Status Settle(Result result, const std::string& what, const Patience& patience);
  // What has gone wrong since it was asked last; nothing: all is well.
  std::optional<Status> Trouble();
  // Ends what runs on it, here alone. Mark: without waiting for that.
  void MarkRevoked();
  Status AwaitRevoked(const Patience& patience);
  // The communicator, which is the caller's to abort.
  Comm Release();

 private:
  NcclLink(std::shared_ptr<NcclApi> api, int rank, int size, uint64_t lineage)
      : api_(std::move(api)), rank_(rank), size_(size), lineage_(lineage) {}

  const std::shared_ptr<NcclApi> api_;
  const int rank_, size_;
  const uint64_t lineage_;
  Comm comm_ = nullptr;
  bool revoked_ = false;
  uint64_t launched_ = 0;
  Result revoking_ = Result::kSuccess;
};

// Ends and frees these communicators, all at once: freeing one waits for the device, on which a
// kernel of another one may run until that is aborted too. RM_ERR_TIMEOUT: it has taken longer than
// `limit`, and goes on in threads of its own. Another error is NCCL's: what runs on one of them may
// run on.
Status AbortAll(const std::shared_ptr<NcclApi>& api, const std::vector<Comm>& comms,
                std::chrono::milliseconds limit);

}  // namespace ringmaster::nccl
