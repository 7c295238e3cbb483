// NCCL and CUDA without a GPU: ranks are threads of one process (of several with library/), the
// device's memory is the host's, streams are threads. What blocks on a GPU blocks here: a kernel
// spins until its peers have come or its communicator is aborted or revoked on this rank, a stream
// runs one thing after the other, freeing memory (and so aborting a communicator) waits for the
// device, nonblocking calls are in progress for a while.
//
// Wrong use that a real GPU would answer with a hang, or not at all, is counted: misuse().
//
// Thread rule: any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collectives/nccl/gpu.h"

namespace ringmaster::nccl {

// What becomes of the next launch of a rank.
enum class Fate {
  kRun,
  kHang,     // gives its input, and then never ends by itself: the peers can complete
  kAbsent,   // doesn't even give its input: nobody completes
  kError,    // as absent, and NCCL notices: an asynchronous error
  kRefused,  // the call itself fails
  kDeaf,     // gives its input and never ends, not even when it is aborted: a kernel that hangs
};

class FakeProcess;
struct FakeComm;
class FakeRing;

// What all ranks have in common: who is in which communicator, and what was given to whom.
class FakeCluster {
 public:
  FakeCluster();
  FakeCluster(const FakeCluster&) = delete;
  FakeCluster& operator=(const FakeCluster&) = delete;
  ~FakeCluster();

  std::vector<std::string> misuse();
  // How often communicators were made, by how ("init", "shrink"), counted per rank.
  std::map<std::string, int> made();
  // Until so many kernels run or wait for their peers. False: they don't for long.
  bool AwaitKernels(int kernels);
  // Kernels that nothing has ended do now.
  void EndDeafKernels();
  // What ncclCommAbort answers from now on.
  void AnswerAborts(Result result);

  // ---- Of ranks in several processes. Set before anything runs.
  // Makes what all ranks of a communicator share; empty: in this process's memory.
  std::function<std::shared_ptr<FakeRing>(const std::string& key, int size)> make_ring;
  // Hears of what misuse() and made() count, with mu_ held.
  std::function<void(const std::string& what)> on_event;
  // Before the number of an id.
  std::string id_prefix;

 private:
  friend class FakeProcess;
  friend class FakeCuda;
  friend class FakeNccl;

  void Blame(const std::string& what);     // mu_ is held
  void CountMade(const std::string& how);  // mu_ is held
  // Waits with the lock until it is so. False: never; that is blamed.
  bool AwaitOrBlame(std::unique_lock<std::mutex>* lock, const std::string& what,
                    const std::function<bool()>& done);

  std::mutex mu_;
  std::condition_variable changed_;
  // All guarded by mu_.
  std::vector<std::string> misuse_;
  std::map<std::string, int> made_;
  int ids_ = 0;
  bool deaf_end_ = false;
  Result aborts_answer_ = Result::kSuccess;
  std::map<std::string, std::shared_ptr<FakeRing>> rings_;  // by what all their ranks know
  std::vector<std::unique_ptr<FakeComm>> comms_;            // also freed ones
};

struct FakeEvent;
struct FakeStream;

// One rank's GPU and libraries.
class FakeProcess {
 public:
  explicit FakeProcess(FakeCluster* cluster, int version = 23203, int devices = 1);
  // Ends all that still runs here.
  ~FakeProcess();

  // Both libraries; `nccl` false: only CUDA's.
  Gpu gpu(bool nccl = true) const;

  // Asked at each launch, on the launching thread; empty: all run. Set before anything runs.
  std::function<Fate()> next_fate;
  // Asked when a communicator is made: false: this rank never comes to it.
  std::function<bool()> comes_to_connect;
  // Called on the asking thread when an event that is asked for has not come yet.
  std::function<void()> on_not_ready;

  // A "kernel" of the user on a stream of CUDA's: runs until `done` says so.
  void Enqueue(void* stream, std::function<bool()> done);
  // To be called when what such a `done` reads has changed.
  void Notify();
  size_t bytes_allocated();
  // No more memory is given from now on.
  void RunOutOfMemory();

 private:
  friend class FakeCuda;
  friend class FakeNccl;

  bool IsDevice(const void* at) const;  // mu_ is held
  bool Idle() const;                    // mu_ is held

  FakeCluster* const cluster_;
  const int version_, devices_;
  std::shared_ptr<CudaApi> cuda_;
  std::shared_ptr<NcclApi> nccl_;
  // All guarded by cluster_->mu_.
  bool ended_ = false;
  bool out_of_memory_ = false;
  int aborting_ = 0;                             // calls of ncclCommAbort that have not returned
  std::set<std::unique_ptr<FakeEvent>> events_;  // what is not destroyed ends with the process
  std::set<std::unique_ptr<FakeStream>> streams_;
  std::map<const std::byte*, size_t> memory_;
};

}  // namespace ringmaster::nccl
