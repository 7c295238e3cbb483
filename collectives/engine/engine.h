// The engine: named operations in any order from any thread; agrees with the other ranks on what is
// ready, runs it, and finishes what a death has interrupted in the next view. docs/collectives.md
// tells how and why.
//
// This is its face to other threads: it posts to the loop (engine_loop.h), which owns all state and
// runs on a thread of the engine's. What must not wait for the loop is done here: ending what a
// view that is over still does.
//
// Thread rule: any thread; Close() once at a time.
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
  void PostStop(uint64_t epoch);
  void PostView(View view) { inbox_.PostView(std::move(view)); }
  // This worker is in no view any more, or not yet, so its state counts for nothing until it gets a
  // copy. If it was in a view, all pending and later operations fail with RM_ERR_DROPPED until it
  // is let in again.
  void PostDropped(const std::string& why);
  void PostArmed(uint64_t epoch, bool armed) { inbox_.PostArmed(epoch, armed); }
  // This worker's part in the job has ended: all pending and later operations fail with `why`.
  void PostEnd(Status why);

  // ---- What the user asks
  Status Submit(const std::shared_ptr<Operation>& operation) { return inbox_.Submit(operation); }
  // All of them at once, or none.
  Status Submit(std::span<const std::shared_ptr<Operation>> operations) {
    return inbox_.Submit(operations);
  }
  // Waits until this worker is in a view that trains, and has the job's state. Runs the load
  // callback meanwhile.
  Status AwaitEntered(Clock::time_point deadline);
  Status StepEnd(StepResult* result);
  // Returns when all ranks have agreed. From then on the engine rests: it stays in its view and
  // follows to later ones, but takes no operations, and its process sets are gone.
  Status Shutdown(Clock::time_point deadline);
  // Returns when all ranks have agreed. The engine takes operations again.
  Status Wake(Clock::time_point deadline);

  // What any thread may read.
  const EngineInfo& info() const { return info_; }
  // What a joiner answers before its first view.
  void ExpectMembership(const Membership& expected) { info_.ExpectMembership(expected); }

  // Put it around a call in which the script waits until an operation is done: the time counts as
  // blocked.
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
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace ringmaster::engine
