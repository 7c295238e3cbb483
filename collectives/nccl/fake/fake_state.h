// What fake CUDA and fake NCCL share: streams, events, communicators.
//
// Thread rule: guarded by the cluster's mutex.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/nccl/fake/fake_gpu.h"

namespace ringmaster::nccl {

struct FakeStream {
  // Each runs with the lock held, and may wait with it.
  std::deque<std::function<void(std::unique_lock<std::mutex>*)>> tasks;
  bool busy = false;
  bool closing = false;
  std::thread thread;
};

struct FakeEvent {
  uint64_t recorded = 0, reached = 0;
};

enum class CallKind { kAllReduce, kBroadcast, kReduce, kAllGather, kReduceScatter, kSend, kRecv };

struct FakeCall {
  CallKind kind;
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;
  DataType type = DataType::kUint8;
  RedOp op = kSum;
  double factor = 1;  // of a PreMulSum, whose `op` is kSum
  int peer = -1;      // or root
  FakeComm* comm = nullptr;
  void* stream = nullptr;
  std::vector<std::byte> input;  // what `send` held when the kernel ran
};

using FakeCalls = std::vector<FakeCall>;
// Of one launch, by rank.
using FakeLists = std::vector<std::shared_ptr<const FakeCalls>>;

// A communicator as all its ranks see it; here of ranks that are threads of this process.
class FakeRing {
 public:
  FakeRing(std::string name, int ranks) : key(std::move(name)), size(ranks) {}
  virtual ~FakeRing() = default;

  // The rank has come to make it.
  virtual void Arrive(int) { ++arrived_; }
  virtual int arrived() { return arrived_; }
  // What the rank has launched, with its inputs.
  virtual void Give(uint64_t launch, int rank, std::shared_ptr<const FakeCalls> calls);
  // All ranks have given; `all` is everybody's.
  virtual bool Given(uint64_t launch, FakeLists* all);

  const std::string key;
  const int size;

 private:
  int arrived_ = 0;
  std::map<uint64_t, FakeLists> launches_;
};

// ... and as one rank does.
struct FakeComm {
  FakeProcess* process = nullptr;
  std::shared_ptr<FakeRing> ring;
  int rank = 0;
  int polls_left = 2;  // in progress for so many questions more
  bool ready = false;
  std::function<void()> launch;  // was asked for, and happens when it is asked about
  Result error = Result::kSuccess;
  bool aborted = false, revoked = false, stopped = false, freed = false;
  int running = 0;  // kernels
  int deaf = 0;     // of these: those that no abort ends
  uint64_t launches = 0;

  bool ends_kernels() const { return aborted || revoked || stopped; }
};

// What rank `rank` receives by call `at` of its list, given everybody's lists. `bytes`: to be
// written to the call's `recv`. An error: the ranks' calls don't fit each other.
std::optional<std::string> Receive(const FakeLists& all, int rank, size_t at,
                                   std::vector<std::byte>* bytes);

size_t FakeSize(DataType type);
std::shared_ptr<CudaApi> MakeFakeCuda(FakeCluster* cluster, FakeProcess* process);
std::shared_ptr<NcclApi> MakeFakeNccl(FakeCluster* cluster, FakeProcess* process, int version);

}  // namespace ringmaster::nccl
