#include "collectives/mpi/mpi_world.h"

#include <sched.h>

#include <condition_variable>
#include <thread>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"

namespace ringmaster::mpi {
namespace {

using Clock = MpiWorld::Clock;

// MPI makes progress only while it is asked, so at first it is asked again at once. A wait of this
// length is one for a peer that is late.
constexpr std::chrono::seconds kBusy{1};
constexpr std::chrono::microseconds kPause{50};

void Rest(Clock::duration waited) {
  if (waited < kBusy) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(kPause);
  }
}

int64_t Millis(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

// A call of MPI that blocks, on a thread of its own. It may outlast the one who waits for it.
class BlockingCall {
 public:
  explicit BlockingCall(std::function<Code(Comm*)> call) : state_(std::make_shared<State>()) {
    std::thread([state = state_, call = std::move(call)] {
      Comm made = nullptr;
      const Code code = call(&made);
      sync::MutexLock lock(&state->mu);
      state->code = code;
      state->made = made;
      state->done = true;
      state->ended.NotifyAll();
    }).detach();
  }
  // False: it has not ended by then.
  bool Await(Clock::time_point until, Code* code, Comm* made) {
    sync::MutexLock lock(&state_->mu);
    while (!state_->done) {
      if (!state_->ended.WaitUntil(&state_->mu, until) && !state_->done) return false;
    }
    *code = state_->code;
    *made = state_->made;
    return true;
  }

 private:
  struct State {
    sync::Mutex mu;
    sync::CondVar ended;
    bool done GUARDED_BY(mu) = false;
    Code code GUARDED_BY(mu) = 0;
    Comm made GUARDED_BY(mu) = nullptr;
  };
  std::shared_ptr<State> state_;
};

struct Kept {
  sync::Mutex mu;
  std::vector<std::shared_ptr<void>> memory GUARDED_BY(mu);
};

}  // namespace

void KeepForEver(std::shared_ptr<void> memory) {
  static Kept* const kept = new Kept;
  sync::MutexLock lock(&kept->mu);
  kept->memory.push_back(std::move(memory));
}

Status MpiWorld::Begin(int rank, int size) {
  const std::string name = mpi_->loaded();
  if (mpi_->Finished()) return {RM_ERR_UNAVAILABLE, "the script has finalised MPI before init()"};
  if (const Code code = mpi_->Begin(&started_, &threads_); code != 0) {
    return {RM_ERR_UNAVAILABLE, name + " can't be initialised: " + mpi_->Explain(code)};
  }
  if (!started_ && threads_ != RM_MPI_PARALLEL_THREADS) {
    return {RM_ERR_UNAVAILABLE,
            "the script has initialised MPI for fewer threads than collectives by MPI need: "
            "initialise it with MPI_Init_thread and MPI_THREAD_MULTIPLE, or call init() first"};
  }
  if (threads_ == RM_MPI_ONE_THREAD) {
    return {RM_ERR_UNAVAILABLE, name +
                                    " allows calls from one thread alone, and collectives run "
                                    "on a thread of the library"};
  }
  int mpi_rank = -1, mpi_size = 0;
  if (const Code code = mpi_->Place(&mpi_rank, &mpi_size); code != 0)
    return {RM_ERR_UNAVAILABLE, name + " does not say its rank: " + mpi_->Explain(code)};
  if (mpi_rank != rank || mpi_size != size) {
    return {RM_ERR_UNAVAILABLE, name + " calls this process rank " + std::to_string(mpi_rank) +
                                    " of " + std::to_string(mpi_size) + ", and its launcher rank " +
                                    std::to_string(rank) + " of " + std::to_string(size) +
                                    ": they don't belong together"};
  }
  return {};
}

Status MpiWorld::Connect(Clock::time_point deadline) {
  Request request = nullptr;
  if (const Code code = mpi_->DupWorld(&all_, &request); code != 0)
    return Failed(nullptr, "MPI_Comm_idup", code);
  return AwaitUntil(nullptr, "MPI_Comm_idup", request, deadline);
}

Status MpiWorld::Finish(Clock::time_point deadline) {
  if (all_ == nullptr || !started_ || stuck() || mpi_->Finished()) return {};
  // Once all have come here, nobody waits for anybody in MPI_Finalize.
  Request request = nullptr;
  if (const Code code = mpi_->Barrier(all_, &request); code != 0)
    return Failed(nullptr, "MPI_Ibarrier", code);
  if (Status s = AwaitUntil(nullptr, "MPI_Ibarrier before MPI_Finalize", request, deadline);
      !s.ok())
    return s;
  mpi_->FreeComm(std::exchange(all_, nullptr));
  const Code code = mpi_->Finish();
  return code == 0 ? Status() : Status(RM_ERR_INTERNAL, "MPI_Finalize: " + mpi_->Explain(code));
}

Status MpiWorld::CheckUsable() const {
  if (stuck()) return {RM_ERR_INTERNAL, "MPI can't be used any more: " + stuck_};
  if (mpi_->Finished()) {
    return {RM_ERR_INTERNAL,
            "the script has finalised MPI, by which its collectives were to go: call MPI_Finalize "
            "after shutdown()"};
  }
  return {};
}

Status MpiWorld::Await(Communicator* host, const std::string& what, Code begun, Request request) {
  if (begun != 0) return Failed(host, what, begun);
  return AwaitUntil(host, what, request, Clock::now() + limits_.collective);
}

Status MpiWorld::AwaitUntil(Communicator* host, const std::string& what, Request request,
                            Clock::time_point deadline) {
  const auto begin = Clock::now();
  auto next_check = begin + limits_.check;
  for (;;) {
    bool done = false;
    const Code code = mpi_->Test(request, &done);
    if (code != 0) return Failed(host, what, code);
    if (done) return {};
    const auto now = Clock::now();
    if (host != nullptr && now >= next_check) {
      if (Status s = host->CheckPeers(); !s.ok()) return GiveUp(std::move(s));
      next_check = now + limits_.check;
    }
    if (now >= deadline) {
      return GiveUp({host == nullptr ? RM_ERR_TIMEOUT : RM_ERR_INTERNAL,
                     what + " was not done after " + std::to_string(Millis(now - begin)) + " ms"});
    }
    Rest(now - begin);
  }
}

Status MpiWorld::GiveUp(Status why) {
  if (stuck_.empty()) stuck_ = why.message().empty() ? "it was given up" : why.message();
  return why;
}

// What MPI says when a peer has died is seldom that it has died.
Status MpiWorld::Failed(Communicator* host, const std::string& what, Code code) {
  const std::string why = what + ": " + mpi_->loaded() + " says " + mpi_->Explain(code);
  const auto until = Clock::now() + limits_.explain;
  while (host != nullptr) {
    if (Status s = host->CheckPeers(); !s.ok()) return GiveUp(std::move(s));
    if (Clock::now() >= until) break;
    std::this_thread::sleep_for(limits_.check);
  }
  return GiveUp({RM_ERR_INTERNAL, why});
}

// MPI makes such a communicator in a call that blocks.
Status MpiWorld::Group(Communicator* host, std::span<const int> ranks, Comm* out) {
  constexpr char kWhat[] = "MPI_Comm_create_group";
  constexpr int kTag = 0;
  if (Status s = CheckUsable(); !s.ok()) return s;
  BlockingCall call([mpi = mpi_, all = all_, copy = std::vector<int>(ranks.begin(), ranks.end())](
                        Comm* made) { return mpi->Group(all, copy, kTag, made); });
  const auto deadline = Clock::now() + limits_.connect;
  Code code = 0;
  while (!call.Await(Clock::now() + limits_.check, &code, out)) {
    if (Status s = host->CheckPeers(); !s.ok()) return GiveUp(std::move(s));
    if (Clock::now() >= deadline) {
      return GiveUp({RM_ERR_INTERNAL, std::string(kWhat) + " was not done after " +
                                          std::to_string(limits_.connect.count()) + " ms"});
    }
  }
  return code == 0 ? Status() : Failed(host, kWhat, code);
}

void MpiWorld::Free(Comm comm) {
  if (comm != nullptr && !stuck() && !mpi_->Finished()) mpi_->FreeComm(comm);
}

}  // namespace ringmaster::mpi
