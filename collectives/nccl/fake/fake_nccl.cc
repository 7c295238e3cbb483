#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>

#include "collectives/element/element.h"
#include "collectives/nccl/fake/fake_state.h"

namespace ringmaster::nccl {

void FakeRing::Give(uint64_t launch, int rank, std::shared_ptr<const FakeCalls> calls) {
  FakeLists& lists = launches_[launch].given;
  lists.resize(static_cast<size_t>(size));
  lists[static_cast<size_t>(rank)] = std::move(calls);
}

bool FakeRing::Given(uint64_t launch, FakeLists* all) {
  const auto found = launches_.find(launch);
  if (found == launches_.end()) return false;
  *all = found->second.given;
  return std::all_of(all->begin(), all->end(), [](const auto& list) { return list != nullptr; });
}

void FakeRing::Take(uint64_t launch, int rank) {
  const auto found = launches_.find(launch);
  if (found == launches_.end()) return;
  found->second.takers.insert(rank);
  if (found->second.takers.size() == static_cast<size_t>(size)) launches_.erase(found);
}

bool FakeRing::Withdraw(int rank) {
  bool missed = false;
  for (auto& [launch, of] : launches_) {
    FakeLists all;
    missed = missed || Given(launch, &all);
    of.given[static_cast<size_t>(rank)] = nullptr;
  }
  return missed;
}

namespace {

// What the calling thread has begun with ncclGroupStart.
thread_local bool grouped = false;
thread_local std::vector<FakeCall> grouped_calls;

}  // namespace

class FakeNccl : public NcclApi {
 public:
  FakeNccl(FakeCluster* cluster, FakeProcess* process, int version)
      : cluster_(cluster), process_(process), version_(version) {}

  int version() const override { return version_; }

  Result GetUniqueId(UniqueId* id) override {
    std::lock_guard lock(cluster_->mu_);
    *id = {};
    const std::string key = "id " + cluster_->id_prefix + std::to_string(++cluster_->ids_);
    std::copy(key.begin(), key.end(), id->bytes);
    return Result::kSuccess;
  }

  Result CommInitRankConfig(Comm* comm, int ranks, const UniqueId& id, int rank,
                            Config* config) override {
    const bool known = config->size == sizeof(Config) && config->magic == Config().magic;
    if (!known || rank < 0 || rank >= ranks) return Result::kInvalidArgument;
    std::unique_lock lock(cluster_->mu_);
    const bool blocking = config->blocking != 0;
    if (blocking && !cluster_->blocking_allowed) cluster_->Blame("a blocking communicator");
    cluster_->CountMade("init");
    *comm = Join(id.bytes, ranks, rank, process_->UseCurrent(), &lock);
    if (blocking) return AwaitPeers(static_cast<FakeComm*>(*comm), &lock);
    return Result::kInProgress;
  }

  Result CommShrink(Comm parent, int* exclude, int excluded, Comm* comm, Config* config,
                    int flags) override {
    std::unique_lock lock(cluster_->mu_);
    FakeComm* const from = Valid(parent, "ncclCommShrink");
    if (from == nullptr || version_ < kFirstShrink || config->blocking != 0 || excluded <= 0) {
      return Result::kInvalidArgument;
    }
    const std::vector<int> gone(exclude, exclude + excluded);
    if (!from->ready || std::find(gone.begin(), gone.end(), from->rank) != gone.end()) {
      return Result::kInvalidUsage;
    }
    if (from->error != Result::kSuccess) return from->error;
    if (flags == kShrinkAbort) from->stopped = true;
    if (from->running > 0 && !from->ends_kernels()) {
      cluster_->Blame("ncclCommShrink of a communicator that still runs");
      return Result::kInvalidUsage;
    }
    cluster_->changed_.notify_all();
    std::string key = from->ring->key + " without";
    int rank = from->rank;
    for (int g : gone) {
      key += " " + std::to_string(g);
      rank -= g < from->rank;
    }
    cluster_->CountMade("shrink");
    if (flags == kShrinkAbort) cluster_->CountMade("shrink with abort");
    FakeComm* const child = Join(key + (flags == kShrinkAbort ? " abort" : ""),
                                 from->ring->size - excluded, rank, from->device, &lock);
    // The child is stored by a thread of NCCL's when it is made. Until then the parent is in
    // progress.
    *comm = nullptr;
    from->shrinking = true;
    process_->launchers_.emplace_back([this, from, child, comm] { Store(from, child, comm); });
    return Result::kSuccess;
  }

  Result CommRevoke(Comm comm, int flags) override {
    std::unique_lock lock(cluster_->mu_);
    FakeComm* const of = Valid(comm, "ncclCommRevoke");
    if (of == nullptr || version_ < 22800 || flags != kRevokeDefault || of->revoked) {
      return Result::kInvalidArgument;
    }
    of->revoked = true;
    process_->hung_revokes_ += process_->revokes_hang_;
    cluster_->changed_.notify_all();
    ++process_->ending_;
    // It joins the thread that launches.
    (void)cluster_->AwaitOrBlame(&lock, "ncclCommRevoke", [&] {
      return of->aborted || process_->ended_ || (!of->stuck && !process_->revokes_hang_);
    });
    --process_->ending_;
    of->launch = {};
    cluster_->changed_.notify_all();
    return Result::kInProgress;
  }

  // Frees the communicator, and so waits for everything that the device does.
  Result CommAbort(Comm comm) override {
    std::unique_lock lock(cluster_->mu_);
    FakeComm* const of = Valid(comm, "ncclCommAbort");
    if (of == nullptr) return Result::kInvalidArgument;
    (void)process_->UseCurrent();  // it is saved and made the current one again
    (void)process_->SpoilsCapture("cudaFree");
    of->aborted = true;
    of->launch = {};
    cluster_->withdrawn_ += of->ring->Withdraw(of->rank);
    cluster_->changed_.notify_all();
    ++process_->ending_;
    const auto rests = [&] {
      return of->running == 0 && !of->shrinking && (process_->ended_ || OthersEnd(of));
    };
    if (of->deaf > 0) cluster_->changed_.wait(lock, rests);  // as long as the kernel hangs
    (void)cluster_->AwaitOrBlame(&lock, "ncclCommAbort", rests);
    of->freed = true;
    --process_->ending_;
    cluster_->changed_.notify_all();
    return cluster_->aborts_answer_;
  }

  Result CommGetAsyncError(Comm comm, Result* error) override {
    std::lock_guard lock(cluster_->mu_);
    FakeComm* const of = Valid(comm, "ncclCommGetAsyncError");
    if (of == nullptr) return Result::kInvalidArgument;
    *error = State(of);
    return Result::kSuccess;
  }
  std::string LastError(Comm comm) override {
    std::lock_guard lock(cluster_->mu_);
    const auto* of = static_cast<FakeComm*>(comm);
    return of == nullptr || of->error == Result::kSuccess ? "" : "a peer has closed a connection";
  }
  std::string ErrorString(Result result) override {
    return "fake result " + std::to_string(static_cast<int>(result));
  }

  Result GroupStart() override {
    if (grouped) Blame("a group in a group");
    grouped = true;
    return Result::kSuccess;
  }
  Result GroupEnd() override {
    std::vector<FakeCall> calls;
    calls.swap(grouped_calls);
    grouped = false;
    return calls.empty() ? Result::kSuccess : Launch(std::move(calls));
  }

  Result RedOpCreatePreMulSum(RedOp* op, void* scalar, DataType type, Comm) override {
    double factor = 0;
    float narrow = 0;
    switch (type) {
      case DataType::kFloat64:
        std::memcpy(&factor, scalar, sizeof(factor));
        break;
      case DataType::kFloat32:
        std::memcpy(&narrow, scalar, sizeof(narrow));
        factor = narrow;
        break;
      case DataType::kFloat16:
      case DataType::kBfloat16:
        element::Widen(scalar, &narrow, 1, type == DataType::kFloat16 ? RM_FLOAT16 : RM_BFLOAT16,
                       1.0f);
        factor = narrow;
        break;
      default:
        return Result::kInvalidArgument;
    }
    *op = next_op_++;
    factors_[*op] = factor;
    return Result::kSuccess;
  }
  Result RedOpDestroy(RedOp op, Comm) override {
    if (factors_.erase(op) == 0) Blame("ncclRedOpDestroy of what isn't there");
    return Result::kSuccess;
  }

  Result AllReduce(const void* send, void* recv, size_t count, DataType type, RedOp op, Comm comm,
                   Stream stream) override {
    return Add({CallKind::kAllReduce, send, recv, count, type, op, 1, -1}, comm, stream);
  }
  Result Broadcast(const void* send, void* recv, size_t count, DataType type, int root, Comm comm,
                   Stream stream) override {
    return Add({CallKind::kBroadcast, send, recv, count, type, kSum, 1, root}, comm, stream);
  }
  Result Reduce(const void* send, void* recv, size_t count, DataType type, RedOp op, int root,
                Comm comm, Stream stream) override {
    return Add({CallKind::kReduce, send, recv, count, type, op, 1, root}, comm, stream);
  }
  Result AllGather(const void* send, void* recv, size_t send_count, DataType type, Comm comm,
                   Stream stream) override {
    return Add({CallKind::kAllGather, send, recv, send_count, type, kSum, 1, -1}, comm, stream);
  }
  Result ReduceScatter(const void* send, void* recv, size_t recv_count, DataType type, RedOp op,
                       Comm comm, Stream stream) override {
    return Add({CallKind::kReduceScatter, send, recv, recv_count, type, op, 1, -1}, comm, stream);
  }
  Result Send(const void* send, size_t count, DataType type, int peer, Comm comm,
              Stream stream) override {
    return Add({CallKind::kSend, send, nullptr, count, type, kSum, 1, peer}, comm, stream);
  }
  Result Recv(void* recv, size_t count, DataType type, int peer, Comm comm,
              Stream stream) override {
    return Add({CallKind::kRecv, nullptr, recv, count, type, kSum, 1, peer}, comm, stream);
  }

 private:
  void Blame(const std::string& what) {
    std::lock_guard lock(cluster_->mu_);
    cluster_->Blame(what);
  }

  FakeComm* Valid(Comm comm, const char* call) {
    auto* const of = static_cast<FakeComm*>(comm);
    const bool known = std::any_of(cluster_->comms_.begin(), cluster_->comms_.end(),
                                   [&](const auto& one) { return one.get() == of; });
    if (known && !of->freed && of->process == process_) return of;
    cluster_->Blame(std::string(call) + " of a communicator that isn't there");
    return nullptr;
  }

  // Whether the device has nothing to do any more.
  bool OthersEnd(const FakeComm*) const { return process_->Idle(); }

  FakeComm* Join(const std::string& key, int size, int rank, int device,
                 std::unique_lock<std::mutex>* lock) {
    auto& ring = cluster_->rings_[key];
    if (ring == nullptr) {
      ring = cluster_->make_ring ? cluster_->make_ring(key, size)
                                 : std::make_shared<FakeRing>(key, size);
    }
    auto comm = std::make_unique<FakeComm>();
    comm->process = process_;
    comm->device = device;
    comm->ring = ring;
    comm->rank = rank;
    FakeComm* const made = comm.get();
    cluster_->comms_.push_back(std::move(comm));
    bool comes = true;
    if (process_->comes_to_connect) {
      lock->unlock();
      comes = process_->comes_to_connect();
      lock->lock();
    }
    if (comes) ring->Arrive(rank);
    if (ring->arrived() > ring->size) cluster_->Blame("more ranks than a communicator has");
    cluster_->changed_.notify_all();
    return made;
  }

  Result AwaitPeers(FakeComm* of, std::unique_lock<std::mutex>* lock) {
    of->blocking = of->ready = true;
    const bool came = cluster_->AwaitOrBlame(lock, "ncclCommInitRankConfig",
                                             [&] { return of->ring->arrived() >= of->ring->size; });
    return came ? Result::kSuccess : Result::kRemoteError;
  }

  // What NCCL's thread does that makes a child: if the parent is aborted meanwhile, the child is
  // stored all the same, and has failed.
  void Store(FakeComm* parent, FakeComm* child, Comm* at) {
    std::unique_lock lock(cluster_->mu_);
    cluster_->changed_.wait(lock, [&] {
      child->ready = child->ring->arrived() >= child->ring->size;
      return child->ready || parent->aborted || process_->ended_;
    });
    if (!child->ready) child->error = Result::kInternalError;
    child->polls_left = 0;
    if (!process_->ended_) std::atomic_ref<Comm>(*at).store(child);
    parent->shrinking = false;
    cluster_->changed_.notify_all();
  }

  Result State(FakeComm* of) {
    if (of->error != Result::kSuccess) return of->error;
    if (of->shrinking || of->stuck) return Result::kInProgress;
    if (of->revoked) return of->running > 0 ? Result::kInProgress : Result::kSuccess;
    if (!of->ready && of->ring->arrived() < of->ring->size) return Result::kInProgress;
    if (of->polls_left > 0) {
      --of->polls_left;
      return Result::kInProgress;
    }
    of->ready = true;
    if (of->launch) {
      of->launch();
      of->launch = {};
    }
    return Result::kSuccess;
  }

  Result Add(FakeCall call, Comm comm, Stream stream) {
    if (const auto factor = factors_.find(call.op); factor != factors_.end()) {
      call.op = kSum;
      call.factor = factor->second;
    }
    call.comm = static_cast<FakeComm*>(comm);
    call.stream = stream;
    if (grouped) {
      grouped_calls.push_back(std::move(call));
      return Result::kSuccess;
    }
    std::vector<FakeCall> calls;
    calls.push_back(std::move(call));
    return Launch(std::move(calls));
  }

  Result Launch(std::vector<FakeCall> calls) {
    const Fate fate = process_->next_fate ? process_->next_fate() : Fate::kRun;
    std::lock_guard lock(cluster_->mu_);
    FakeComm* const of = Valid(calls.front().comm, "a collective");
    if (of == nullptr) return Result::kInvalidArgument;
    if (!of->ready || of->ends_kernels() || of->launch) {
      cluster_->Blame("a collective on a communicator that is not ready");
      return Result::kInvalidUsage;
    }
    if (of->error != Result::kSuccess) return of->error;
    if (fate == Fate::kRefused) return Result::kSystemError;
    if (fate == Fate::kStuck) {
      of->stuck = true;
      return Result::kInProgress;
    }
    auto* const stream = static_cast<FakeStream*>(calls.front().stream);
    if (stream->device != of->device) {
      cluster_->Blame("a collective on a stream of another device");
      return Result::kUnhandledCudaError;
    }
    const uint64_t number = of->launches++;
    const auto list = std::make_shared<FakeCalls>(std::move(calls));
    of->polls_left = 1;
    of->launch = [this, of, stream, number, list, fate] {
      ++of->running;
      of->deaf += fate == Fate::kDeaf;
      stream->tasks.push_back([this, of, number, list, fate](std::unique_lock<std::mutex>* held) {
        Kernel(of, number, list, fate, held);
        --of->running;
        of->deaf -= fate == Fate::kDeaf;
        cluster_->changed_.notify_all();
      });
      cluster_->changed_.notify_all();
    };
    if (!of->blocking) return Result::kInProgress;
    std::exchange(of->launch, {})();
    return Result::kSuccess;
  }

  void Kernel(FakeComm* of, uint64_t number, const std::shared_ptr<FakeCalls>& list, Fate fate,
              std::unique_lock<std::mutex>* lock) {
    if (fate != Fate::kAbsent && fate != Fate::kError) {
      for (FakeCall& call : *list) TakeInput(of, &call);
      of->ring->Give(number, of->rank, list);
      cluster_->changed_.notify_all();
    }
    if (fate == Fate::kError) of->error = Result::kRemoteError;
    FakeLists all;
    bool complete = false;
    cluster_->changed_.wait(*lock, [&] {
      if (fate == Fate::kDeaf) return cluster_->deaf_end_ || process_->ended_;
      if (fate == Fate::kBroken) return true;
      const bool may_end = !process_->may_end_kernels || process_->may_end_kernels();
      complete = fate == Fate::kRun && may_end && of->ring->Given(number, &all);
      return complete || of->ends_kernels() || process_->ended_;
    });
    if (fate == Fate::kBroken) of->error = Result::kRemoteError;
    if (complete) of->ring->Take(number, of->rank);
    for (size_t i = 0; i < list->size(); ++i) {
      const FakeCall& call = (*list)[i];
      CheckMemory(*of, call);
      std::vector<std::byte> bytes;
      if (complete) {
        if (const auto wrong = Receive(all, of->rank, i, &bytes)) cluster_->Blame(*wrong);
      } else if (call.recv != nullptr) {  // the value is undefined: nobody may use it
        bytes.assign(call.count * FakeSize(call.type), std::byte{0xAB});
      }
      if (!bytes.empty()) std::memcpy(call.recv, bytes.data(), bytes.size());
    }
  }

  void CheckMemory(const FakeComm& of, const FakeCall& call) {
    const bool aligned = reinterpret_cast<uintptr_t>(call.recv) % 16 == 0;
    if (call.kind == CallKind::kAllReduce && !aligned) ++cluster_->unaligned_results_;
    for (const void* at : {call.send, static_cast<const void*>(call.recv)}) {
      if (at == nullptr || call.count == 0) continue;
      const auto device = process_->DeviceOf(at);
      if (!device) cluster_->Blame("a kernel uses the host's memory");
      if (device && *device != of.device) cluster_->Blame("a kernel uses another device's memory");
    }
  }

  void TakeInput(FakeComm* of, FakeCall* call) {
    if (call->send == nullptr) return;
    const size_t blocks =
        call->kind == CallKind::kReduceScatter ? static_cast<size_t>(of->ring->size) : 1;
    const auto* from = static_cast<const std::byte*>(call->send);
    const size_t bytes = blocks * call->count * FakeSize(call->type);
    call->input.assign(from, from + bytes);
  }

  FakeCluster* const cluster_;
  FakeProcess* const process_;
  const int version_;
  // Used by the launching thread alone.
  RedOp next_op_ = 5;
  std::map<RedOp, double> factors_;
};

std::shared_ptr<NcclApi> MakeFakeNccl(FakeCluster* cluster, FakeProcess* process, int version) {
  return std::make_shared<FakeNccl>(cluster, process, version);
}

}  // namespace ringmaster::nccl
