// The engine takes named operations in any order from any thread, agrees with the other ranks on
// which of them are ready, and runs those. What a death has interrupted it finishes in the next
// view. docs/collectives.md tells how and why.
//
// This class is what other threads call. It posts to the loop (engine_loop.h), which owns all state
// and runs on the engine's own thread. The only work that is done here, because it must not wait
// for the loop, is to end the calls that still run in a view that is over.
//
// Thread rule: any thread; Close() must not run twice at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "collectives/engine/agreed_request.h"
#include "collectives/engine/engine_info.h"
#include "collectives/engine/engine_loop.h"
#include "collectives/engine/engine_options.h"
#include "collectives/engine/host_communicator.h"
#include "collectives/engine/inbox.h"
#include "collectives/engine/user_tasks.h"

namespace ringmaster::engine {

class Engine {
 public:
  using Clock = std::chrono::steady_clock;
  using Options = EngineOptions;

  explicit Engine(Options options);
  ~Engine();
  // Ends the engine's thread; the listener is not called any more. A second call does nothing.
  void Close();

  // ---- What the sidecar says
  // No view up to `epoch` may be used any more. The listener's OnStopped answers.
  void PostStop(uint64_t epoch);
  // A new view, which the loop connects if it is newer than all views so far. If it doesn't list
  // this worker, the worker was dropped.
  void PostView(WorkerView view) { inbox_.PostView(std::move(view)); }
  // This worker is in no view any more, or not yet, so its state counts for nothing until it gets a
  // copy. If it was in a view, all pending and later operations fail with RM_ERR_DROPPED until it
  // is let in again.
  void PostDropped(const std::string& why);
  // Whether a planned change happens at the next boundary of the view of this epoch.
  void PostArmed(uint64_t epoch, bool armed) { inbox_.PostArmed(epoch, armed); }
  // This worker's part in the job has ended: all pending and later operations fail with `why`.
  void PostEnd(Status why);

  // ---- What the user asks
  // Asks for one operation, or for several: for all of them or for none. RM_ERR_INVALID: a name is
  // in flight already. RM_ERR_DROPPED, RM_ERR_SHUTDOWN or the status given to PostEnd(): this
  // worker takes no operations now.
  Status Submit(const std::shared_ptr<Operation>& operation) { return inbox_.Submit(operation); }
  Status Submit(std::span<const std::shared_ptr<Operation>> operations) {
    return inbox_.Submit(operations);
  }
  // Waits until this worker is in a view that trains, and has the job's state; the state's
  // callbacks run on the calling thread meanwhile. RM_ERR_TIMEOUT: the deadline has passed.
  // Otherwise the reason why this worker's part in the job has ended.
  Status AwaitEntered(Clock::time_point deadline);
  // Ends a step: returns when all ranks have called it and, at the boundary of a planned change,
  // when the next view is ready. The state's callbacks run on the calling thread meanwhile.
  // RM_ERR_INVALID: another thread is in it.
  Status StepEnd(StepResult* result);
  // Returns when all ranks have called it. From then on the engine rests: it stays in its view and
  // goes on to later ones, but takes no operations, and its process sets are gone. RM_ERR_TIMEOUT:
  // some rank has not called it; a later call goes on waiting.
  Status Shutdown(Clock::time_point deadline);
  // Ends the rest; returns when all ranks have called it. RM_ERR_TIMEOUT as Shutdown().
  Status Wake(Clock::time_point deadline);

  // What any thread may read.
  const EngineInfo& info() const { return info_; }
  // What a joiner's rank, size and the like are to be before its first view.
  void ExpectMembership(const Membership& expected) { info_.ExpectMembership(expected); }

  // Lives for as long as a call of the script waits for an operation: that time counts as blocked.
  class BlockedHere {
   public:
    explicit BlockedHere(Engine* engine) : work_(&engine->info_.work) {
      work_->Blocks(Clock::now());
    }
    ~BlockedHere() { work_->Unblocks(Clock::now()); }
    BlockedHere(const BlockedHere&) = delete;
    BlockedHere& operator=(const BlockedHere&) = delete;

   private:
    WorkMeter* const work_;
  };

 private:
  // Aborts what runs in views up to `epoch`, on the host and in the backend.
  void Abort(uint64_t epoch, const std::string& why);

  Inbox inbox_;
  AgreedRequest shutdown_{&inbox_, kShutdownName, Kind::kShutdown};
  AgreedRequest wake_{&inbox_, kWakeName, Kind::kBarrier};
  UserTasks user_tasks_;
  EngineInfo info_;
  HostCommunicator host_;
  EngineLoop loop_;
  std::thread thread_;  // last member: its thread uses all the others
};

}  // namespace ringmaster::engine
