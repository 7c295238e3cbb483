#include "collectives/nccl/nccl_link.h"

#include <atomic>
#include <thread>
#include <utility>

#include "collectives/nccl/connect_plan.h"
#include "collectives/nccl/on_device.h"
#include "common/sync/mutex.h"

namespace ringmaster::nccl {

Status StatusOf(NcclApi* api, Result result, Comm comm, const std::string& what) {
  if (result == Result::kSuccess) return {};
  std::string why = "NCCL: " + what + ": " + api->ErrorString(result);
  if (const std::string last = api->LastError(comm); !last.empty()) why += " (" + last + ")";
  const bool wrong_call = result == Result::kInvalidArgument || result == Result::kInvalidUsage;
  return {wrong_call ? RM_ERR_INTERNAL : RM_ERR_EPOCH_MOVED, std::move(why)};
}

namespace {

// What a thread of NCCL's has stored.
Comm Take(Comm* stored) { return std::atomic_ref<Comm>(*stored).exchange(nullptr); }

}  // namespace

Status NcclLink::Init(std::shared_ptr<NcclApi> api, int device, const UniqueId& id, int ranks,
                      int rank, const Patience& patience, std::unique_ptr<NcclLink>* out) {
  NcclApi* const nccl = api.get();
  out->reset(new NcclLink(std::move(api), device, rank, ranks, OriginOf(id.bytes)));
  Config config;
  const Result result = nccl->CommInitRankConfig(&(*out)->comm_, ranks, id, rank, &config);
  return (*out)->Settle(result, "a communicator of " + std::to_string(ranks) + " ranks", patience);
}

Status NcclLink::Shrink(std::vector<int> excluded, int flags, const Patience& patience,
                        std::unique_ptr<NcclLink>* out) {
  int rank = rank_;
  for (int gone : excluded) rank -= gone < rank_;
  const int size = size_ - static_cast<int>(excluded.size());
  out->reset(new NcclLink(api_, device_, rank, size, OriginOf(origin_, excluded)));
  const std::string what = "shrinking to " + std::to_string(size) + " ranks";
  child_ = std::make_shared<Comm>(nullptr);
  Config config;
  const Result result = api_->CommShrink(comm_, excluded.data(), static_cast<int>(excluded.size()),
                                         child_.get(), &config, flags);
  // A thread of NCCL's makes the child and stores it at the end. It is this communicator that is in
  // progress meanwhile.
  if (Status s = Settle(result, what, patience); !s.ok()) return s;
  (*out)->comm_ = Take(child_.get());
  return (*out)->Settle(Result::kSuccess, what, patience);
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

std::optional<GivenUp> NcclLink::Release() {
  if (comm_ == nullptr) return std::nullopt;
  return GivenUp{std::exchange(comm_, nullptr), device_, std::move(child_)};
}

namespace {

bool Failed(Result result) { return result != Result::kSuccess && result != Result::kInProgress; }

// They stay reachable, so that a leak checker doesn't report them.
void HoldForEver(std::shared_ptr<Comm> child) {
  struct Held {
    sync::Mutex mu;
    std::vector<std::shared_ptr<Comm>> all GUARDED_BY(mu);
  };
  static auto& held = *new Held;  // never destroyed: NCCL may still write at exit
  sync::MutexLock lock(&held.mu);
  held.all.push_back(std::move(child));
}

// A communicator and then its child: the abort of the one ends the thread that makes the other.
Result Abort(NcclApi* api, const GivenUp& given_up) {
  const Result result = api->CommAbort(given_up.comm);
  if (given_up.child == nullptr) return result;
  if (Failed(result)) {
    HoldForEver(given_up.child);  // that thread may still run and write to it
    return result;
  }
  const Comm child = Take(given_up.child.get());
  return child == nullptr ? result : api->CommAbort(child);
}

// What the threads that end communicators and the waiting thread share.
struct Ending {
  sync::Mutex mu;
  size_t left GUARDED_BY(mu) = 0;
  bool too_late GUARDED_BY(mu) = false;  // calls that have not begun are not made any more
  Result failure GUARDED_BY(mu) = Result::kSuccess;
};

// NCCL makes the thread's current device the current one again when it has done something on the
// communicator's. On a new thread that would be device 0, which then is used as well.
void EndOne(const Gpu& gpu, const GivenUp& one, Result (*call)(NcclApi*, const GivenUp&),
            Ending* ending) {
  {
    sync::MutexLock lock(&ending->mu);
    if (ending->too_late) return;
  }
  (void)EnterDevice(gpu.cuda.get(), one.device);
  const Result result = call(gpu.nccl.get(), one);
  sync::MutexLock lock(&ending->mu);
  if (Failed(result)) ending->failure = result;
  --ending->left;
}

// Makes the call for each on a thread of its own. Returns what tells how all of them have ended.
Ended StartAll(const Gpu& gpu, const std::vector<GivenUp>& comms, const std::string& what,
               Result (*call)(NcclApi*, const GivenUp&), const std::shared_ptr<Ending>& ending) {
  {
    sync::MutexLock lock(&ending->mu);
    ending->left = comms.size();
  }
  for (const GivenUp& one : comms) {
    std::thread([gpu, one, call, ending] { EndOne(gpu, one, call, ending.get()); }).detach();
  }
  return [nccl = gpu.nccl, what, ending]() -> std::optional<Status> {
    sync::MutexLock lock(&ending->mu);
    if (ending->left > 0) return std::nullopt;
    if (ending->failure == Result::kSuccess) return Status();
    return Status(RM_ERR_INTERNAL, "NCCL: " + what + ": " + nccl->ErrorString(ending->failure));
  };
}

constexpr const char* kGivingUp = "giving up a communicator";

}  // namespace

Status RevokeAll(const Gpu& gpu, const std::vector<NcclLink*>& links, const Patience& patience) {
  std::vector<GivenUp> comms;
  for (NcclLink* link : links) {
    if (link->revoked()) continue;
    link->MarkRevoked();
    comms.push_back({.comm = link->comm(), .device = link->device(), .child = nullptr});
  }
  const auto revoke = [](NcclApi* api, const GivenUp& one) {
    return api->CommRevoke(one.comm, kRevokeDefault);
  };
  const auto ending = std::make_shared<Ending>();
  const Ended revoked = StartAll(gpu, comms, "revoking", revoke, ending);
  if (Status s = patience.Await("NCCL: revoking", revoked); !s.ok()) {
    // What follows is an abort, which frees the communicator.
    sync::MutexLock lock(&ending->mu);
    ending->too_late = true;
    return s;
  }
  for (NcclLink* link : links) {
    if (Status s = link->Settle(Result::kSuccess, "revoking", patience); !s.ok()) return s;
  }
  return {};
}

Ended StartAborts(const Gpu& gpu, const std::vector<GivenUp>& comms) {
  return StartAll(gpu, comms, kGivingUp, Abort, std::make_shared<Ending>());
}

Status AwaitAborts(const Ended& aborts, const Patience& patience) {
  return patience.Await(std::string("NCCL: ") + kGivingUp, aborts);
}

Ended Both(Ended first, Ended second) {
  if (!first) return second;
  return [first = std::move(first), second = std::move(second)] {
    const auto earlier = first();
    return earlier && earlier->ok() ? second() : earlier;
  };
}

Status AbortAll(const Gpu& gpu, const std::vector<GivenUp>& comms, const Patience& patience) {
  return AwaitAborts(StartAborts(gpu, comms), patience);
}

}  // namespace ringmaster::nccl
