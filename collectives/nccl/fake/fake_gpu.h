// NCCL and CUDA without a GPU: ranks are threads of one process (or of several, with library/), the
// device's memory is the host's, and streams are threads. What blocks on a GPU blocks here: a
// kernel spins until its peers have come or its communicator is aborted or revoked on this rank, a
// stream runs one thing after the other, freeing memory (and so aborting a communicator) waits for
// the device, and nonblocking calls are in progress for a while. A thread's current device is 0
// until it sets another; memory, streams, events and communicators belong to the one on which they
// are made.
//
// Wrong use that a real GPU would answer with a hang, or not at all, is counted (misuse()).
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

// What happens to the next launch of a rank.
enum class Fate {
  kRun,
  kHang,     // gives its input, and then never ends by itself: the peers can complete
  kAbsent,   // doesn't even give its input: nobody completes
  kError,    // as kAbsent, and NCCL notices: an asynchronous error
  kRefused,  // the call itself fails
  kDeaf,     // gives its input and never ends, not even by an abort: a kernel that hangs
  kBroken,   // gives its input and ends without a result, and then NCCL notices
  kStuck,    // the thread that launches hangs until an abort
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
  // How often communicators were made, by kind ("init", "shrink"); each rank counts.
  std::map<std::string, int> made();
  // How many allreduces had results at addresses that are no multiple of 16: they are right, and
  // slow.
  int unaligned_results();
  // How often a communicator was aborted while a peer had not yet got all that this rank gave.
  int withdrawn();
  // Waits until so many kernels run or wait for their peers. False: that took too long.
  bool AwaitKernels(int kernels);
  // Ends the kernels that even an abort has not ended (kDeaf).
  void EndDeafKernels();
  // From now on ncclCommAbort returns this.
  void AnswerAborts(Result result);

  // Blocking communicators, which can't be given up, are no misuse. Set before anything runs.
  bool blocking_allowed = false;

  // ---- For ranks in several processes. Set before anything runs.
  std::function<std::shared_ptr<FakeRing>(const std::string& key, int size)> make_ring;
  // Called for each thing that misuse() and made() count, with mu_ held.
  std::function<void(const std::string& what)> on_event;
  // A prefix of all ids, before their number.
  std::string id_prefix;

 private:
  friend class FakeProcess;
  friend class FakeCuda;
  friend class FakeNccl;

  void Blame(const std::string& what);     // mu_ is held
  void CountMade(const std::string& how);  // mu_ is held
  // Waits with the lock until `done`. False: that took too long, and is counted as misuse of
  // `what`.
  bool AwaitOrBlame(std::unique_lock<std::mutex>* lock, const std::string& what,
                    const std::function<bool()>& done);

  std::mutex mu_;
  std::condition_variable changed_;
  // All guarded by mu_.
  std::vector<std::string> misuse_;
  std::map<std::string, int> made_;
  int ids_ = 0;
  int unaligned_results_ = 0;
  int withdrawn_ = 0;
  bool deaf_end_ = false;
  Result aborts_answer_ = Result::kSuccess;
  std::map<std::string, std::shared_ptr<FakeRing>> rings_;  // by a key that all their ranks know
  std::vector<std::unique_ptr<FakeComm>> comms_;            // freed ones, too
};

struct FakeEvent;
struct FakeStream;

// One rank's GPU and libraries.
class FakeProcess {
 public:
  explicit FakeProcess(FakeCluster* cluster, int version = 23203, int devices = 1);
  // Ends everything that still runs on this GPU.
  ~FakeProcess();

  // Both libraries; with `nccl` false only CUDA's.
  Gpu gpu(bool nccl = true) const;

  // Asked at each launch, on the launching thread; empty: every launch is kRun. Set before anything
  // runs.
  std::function<Fate()> next_fate;
  // Asked when a communicator is made; false: this rank never comes to it.
  std::function<bool()> comes_to_connect;
  // Called on the asking thread when EventQuery() finds that the event has not come yet.
  std::function<void()> on_not_ready;

  // Kernels of collectives don't end before it returns true; as may_copy.
  std::function<bool()> may_end_kernels;
  // Copies wait until it returns true, and ask again at each Notify(); empty: none waits. Set
  // before anything runs.
  std::function<bool()> may_copy;

  // A "kernel" of the user on a stream of CUDA's, which runs until `done` returns true.
  void Enqueue(void* stream, std::function<bool()> done);
  // To be called when something has changed that such a `done` reads.
  void Notify();
  size_t bytes_allocated();
  // The devices that something was done on: on each of them a process has memory of its own.
  std::set<int> used_devices();
  // Communicators that were made and not aborted.
  int communicators();
  // NCCL notices an error on all communicators that there are.
  void FailCommunicators();
  // From now on ncclCommRevoke waits until its communicator is aborted.
  void HangRevokes();
  int hung_revokes();
  // A thread of the user's captures a graph in CUDA's usual mode, from now on.
  void Capture();
  // From now on no more memory can be allocated.
  void RunOutOfMemory();

 private:
  friend class FakeCuda;
  friend class FakeNccl;

  // All with mu_ held.
  // The device of this memory; no value: it is the host's.
  std::optional<int> DeviceOf(const void* at) const;
  bool Idle() const;
  // The calling thread uses its current device, which is returned.
  int UseCurrent();
  // The calling thread makes a call that spoils another thread's capture. True: it has.
  bool SpoilsCapture(const char* call);

  FakeCluster* const cluster_;
  const int version_, devices_;
  std::shared_ptr<CudaApi> cuda_;
  std::shared_ptr<NcclApi> nccl_;
  // All guarded by cluster_->mu_.
  bool ended_ = false;
  bool out_of_memory_ = false;
  bool capturing_ = false;
  bool revokes_hang_ = false;
  int hung_revokes_ = 0;
  int ending_ = 0;  // calls of ncclCommAbort and ncclCommRevoke that have not returned
  // What is not destroyed ends with the process. A destroyed one lives until it has come, as
  // CUDA's.
  std::map<const void*, std::shared_ptr<FakeEvent>> events_;
  std::set<std::unique_ptr<FakeStream>> streams_;
  struct Block {
    size_t bytes;
    int device;
  };
  std::map<const std::byte*, Block> memory_;
  std::set<int> used_devices_;
  std::vector<std::thread> launchers_;  // NCCL's threads that make communicators
};

}  // namespace ringmaster::nccl
