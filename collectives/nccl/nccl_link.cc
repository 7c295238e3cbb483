#include "collectives/nccl/nccl_link.h"

#include <thread>
#include <utility>

#include "collectives/nccl/connect_plan.h"
#include "common/sync/mutex.h"

namespace ringmaster::nccl {

Status StatusOf(NcclApi* api, Result result, Comm comm, const std::string& what) {
  if (result == Result::kSuccess) return {};
  std::string why = "NCCL: " + what + ": " + api->ErrorString(result);
  if (const std::string last = api->LastError(comm); !last.empty()) why += " (" + last + ")";
  const bool wrong_call = result == Result::kInvalidArgument || result == Result::kInvalidUsage;
  return {wrong_call ? RM_ERR_INTERNAL : RM_ERR_EPOCH_MOVED, std::move(why)};
}

Status NcclLink::Init(std::shared_ptr<NcclApi> api, const UniqueId& id, int ranks, int rank,
                      const Patience& patience, std::unique_ptr<NcclLink>* out) {
  NcclApi* const nccl = api.get();
  out->reset(new NcclLink(std::move(api), rank, ranks, LineageOf(id.bytes)));
  Config config;
  const Result result = nccl->CommInitRankConfig(&(*out)->comm_, ranks, id, rank, &config);
  return (*out)->Settle(result, "a communicator of " + std::to_string(ranks) + " ranks", patience);
}

Status NcclLink::Shrink(std::vector<int> excluded, int flags, const Patience& patience,
                        std::unique_ptr<NcclLink>* out) {
  int rank = rank_;
  for (int gone : excluded) rank -= gone < rank_;
  const int size = size_ - static_cast<int>(excluded.size());
  out->reset(new NcclLink(api_, rank, size, LineageOf(lineage_, excluded)));
  Config config;
  const Result result = api_->CommShrink(comm_, excluded.data(), static_cast<int>(excluded.size()),
                                         &(*out)->comm_, &config, flags);
  return (*out)->Settle(result, "shrinking to " + std::to_string(size) + " ranks", patience);
}

Status NcclLink::Settle(Result result, const std::string& what, const Patience& patience) {
  if (result != Result::kSuccess && result != Result::kInProgress) {
    return StatusOf(api_.get(), result, comm_, what);
  }
  return patience.Await("NCCL: " + what, [&]() -> std::optional<Status> {
    Result state = Result::kSuccess;
    if (Result r = api_->CommGetAsyncError(comm_, &state); r != Result::kSuccess) state = r;
    if (state == Result::kInProgress) return std::nullopt;
    return StatusOf(api_.get(), state, comm_, what);
  });
}

std::optional<Status> NcclLink::Trouble() {
  Result state = Result::kSuccess;
  if (Result r = api_->CommGetAsyncError(comm_, &state); r != Result::kSuccess) state = r;
  if (state == Result::kSuccess || state == Result::kInProgress) return std::nullopt;
  return StatusOf(api_.get(), state, comm_, "a collective");
}

void NcclLink::MarkRevoked() {
  if (revoked_) return;
  revoked_ = true;
  revoking_ = api_->CommRevoke(comm_, kRevokeDefault);
}

Status NcclLink::AwaitRevoked(const Patience& patience) {
  return Settle(revoking_, "revoking", patience);
}

Comm NcclLink::Release() { return std::exchange(comm_, nullptr); }

namespace {

// Of the threads that abort; theirs and the waiting thread's.
struct Aborting {
  sync::Mutex mu;
  sync::CondVar changed;
  size_t left GUARDED_BY(mu) = 0;
  Result failure GUARDED_BY(mu) = Result::kSuccess;
};

void AbortOne(NcclApi* api, Comm comm, Aborting* aborting) {
  const Result result = api->CommAbort(comm);
  sync::MutexLock lock(&aborting->mu);
  if (result != Result::kSuccess && result != Result::kInProgress) aborting->failure = result;
  --aborting->left;
  aborting->changed.NotifyAll();
}

}  // namespace

Status AbortAll(const std::shared_ptr<NcclApi>& api, const std::vector<Comm>& comms,
                std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const auto aborting = std::make_shared<Aborting>();
  {
    sync::MutexLock lock(&aborting->mu);
    aborting->left = comms.size();
  }
  for (Comm comm : comms) {
    std::thread([api, comm, aborting] { AbortOne(api.get(), comm, aborting.get()); }).detach();
  }
  sync::MutexLock lock(&aborting->mu);
  while (aborting->left > 0) {
    if (aborting->changed.WaitUntil(&aborting->mu, deadline) || aborting->left == 0) continue;
    return {RM_ERR_TIMEOUT, "NCCL: giving up a communicator was not done after " +
                                std::to_string(limit.count()) + " ms"};
  }
  if (aborting->failure == Result::kSuccess) return {};
  return {RM_ERR_INTERNAL,
          "NCCL: giving up a communicator: " + api->ErrorString(aborting->failure)};
}

}  // namespace ringmaster::nccl
