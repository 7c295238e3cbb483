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

#include "collectives/engine/engine_info.h"
#include "collectives/engine/engine_loop.h"
#include "collectives/engine/engine_options.h"
#include "collectives/engine/host_communicator.h"
#include "collectives/engine/inbox.h"
#include "collectives/engine/user_tasks.h"
#include "common/sync/mutex.h"

namespace ringmaster::engine {

class Engine {
 public:
  using Clock = std::chrono::steady_clock;
  using Options = EngineOptions;

  explicit Engine(Options options);
  ~Engine();
  // Ends its thread; the listener is not called any more. Again is a no-op.
  void Close();

  // ---- What the sidecar says
  void PostStop(uint64_t epoch);
  void PostView(View view) { inbox_.PostView(std::move(view)); }
  // In no view any more, or not yet: its state counts for nothing until it gets a copy. If it was
  // in one, everything pending and everything later fails with RM_ERR_DROPPED until it is let in
  // again.
  void PostDropped(const std::string& why);
  void PostArmed(uint64_t epoch, bool armed) { inbox_.PostArmed(epoch, armed); }
  // The end of this worker's part: everything pending and everything later fails with `why`.
  void PostEnd(Status why);

  // ---- What the user asks
  Status Submit(const std::shared_ptr<Operation>& operation) { return inbox_.Submit(operation); }
  // All of them at once, or none.
  Status Submit(std::span<const std::shared_ptr<Operation>> operations) {
    return inbox_.Submit(operations);
  }
  // Until this worker is in a view that trains, with state. Runs the load callback meanwhile.
  Status AwaitEntered(Clock::time_point deadline);
  Status StepEnd(StepResult* result);
  Status Shutdown(Clock::time_point deadline);

  Membership membership() const { return info_.membership(); }
  // The worker that has this rank now, -1: this one itself; empty if there is none. What a
  // request's root is.
  std::string WorkerAt(int rank) const { return info_.WorkerAt(rank); }
  std::vector<std::string> workers() const { return info_.workers(); }  // by rank
  bool MembersOf(int32_t process_set, std::vector<std::string>* members,
                 std::vector<int>* ranks) const {
    return info_.MembersOf(process_set, members, ranks);
  }
  // What a joiner answers before its first view.
  void ExpectMembership(const Membership& expected) { info_.ExpectMembership(expected); }
  bool entered() const { return info_.entered; }
  uint64_t step() const { return info_.step; }
  // The newest view in which an operation has completed here, handovers not counted: all its ranks
  // hold the state.
  uint64_t ran_epoch() const { return info_.ran_epoch; }
  bool busy() const { return info_.busy; }
  // Was in a view that goes on without it, and has not been let in again.
  bool dropped() const { return info_.dropped; }
  RebuildTimes last_rebuild() const { return info_.last_rebuild(); }
  job::WorkerTimes times() const { return info_.work.At(Clock::now()); }
  // Stands around a call in which the script stands still until something is done.
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
  // What runs in views up to `epoch`, on the host and in the backend.
  void Abort(uint64_t epoch, const std::string& why);
  Status AskForShutdown(std::shared_ptr<Operation>* operation);

  sync::Mutex shutdown_mu_;
  std::shared_ptr<Operation> shutdown_ GUARDED_BY(shutdown_mu_);  // null: never asked for

  Inbox inbox_;
  UserTasks user_tasks_;
  EngineInfo info_;
  HostCommunicator host_;
  EngineLoop loop_;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace ringmaster::engine
