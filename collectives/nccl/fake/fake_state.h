// What fake CUDA and fake NCCL share: streams, events, communicators.
//
// Thread rule: guarded by the cluster's mutex.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectives/nccl/fake/fake_gpu.h"

namespace ringmaster::nccl {

struct FakeStream {
  int device = 0;
  // Each task runs with the lock held, and may wait with it.
  std::deque<std::function<void(std::unique_lock<std::mutex>*)>> tasks;
  bool busy = false;
  bool closing = false;
  std::thread thread;
};

struct FakeEvent {
  int device = 0;
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
  double factor = 1;  // of a PreMulSum; its `op` is kSum
  int peer = -1;      // or the root
  FakeComm* comm = nullptr;
  void* stream = nullptr;
  std::vector<std::byte> input;  // what `send` held when the kernel ran
};

using FakeCalls = std::vector<FakeCall>;
// The calls of one launch, by rank.
using FakeLists = std::vector<std::shared_ptr<const FakeCalls>>;

// A communicator as all its ranks share it. In this class the ranks are threads of one process.
class FakeRing {
 public:
  FakeRing(std::string name, int ranks) : key(std::move(name)), size(ranks) {}
  virtual ~FakeRing() = default;

  // The rank takes part in making the communicator.
  virtual void Arrive(int) { ++arrived_; }
  virtual int arrived() { return arrived_; }
  // The rank has launched these calls, with their inputs.
  virtual void Give(uint64_t launch, int rank, std::shared_ptr<const FakeCalls> calls);
  // Whether all ranks have given their calls of this launch; *all are these calls.
  virtual bool Given(uint64_t launch, FakeLists* all);
  // The rank has what the others have given for this launch.
  void Take(uint64_t launch, int rank);
  // The rank's communicator ends: ranks that have not taken what it has given don't get it any
  // more, as on a GPU, where it may be on its way through a thread of the giver's. True: some rank
  // would have.
  bool Withdraw(int rank);

  const std::string key;
  const int size;

 private:
  struct Launch {
    FakeLists given;
    std::set<int> takers;
  };
  int arrived_ = 0;
  std::map<uint64_t, Launch> launches_;  // until all ranks have taken what was given
};

// A communicator as one rank has it.
struct FakeComm {
  FakeProcess* process = nullptr;
  int device = 0;
  std::shared_ptr<FakeRing> ring;
  int rank = 0;
  int polls_left = 2;  // how many more times CommGetAsyncError() says kInProgress
  bool ready = false;
  bool blocking = false;
  // A launch that was asked for; it happens at the next CommGetAsyncError().
  std::function<void()> launch;
  Result error = Result::kSuccess;
  bool aborted = false, revoked = false, stopped = false, freed = false;
  bool shrinking = false;  // a child of it is being made
  bool stuck = false;      // its launch hangs
  int running = 0;         // kernels
  int deaf = 0;            // of these: those that no abort ends
  uint64_t launches = 0;

  bool ends_kernels() const { return aborted || revoked || stopped; }
};

// What rank `rank` receives by call `at` of its list, given the lists of all ranks. *bytes has to
// be written to the call's `recv`. Returns an error if the calls of the ranks don't fit each other.
std::optional<std::string> Receive(const FakeLists& all, int rank, size_t at,
                                   std::vector<std::byte>* bytes);

size_t FakeSize(DataType type);
std::shared_ptr<CudaApi> MakeFakeCuda(FakeCluster* cluster, FakeProcess* process);
std::shared_ptr<NcclApi> MakeFakeNccl(FakeCluster* cluster, FakeProcess* process, int version);

}  // namespace ringmaster::nccl
