// The engine: named operations in any order from any thread; agrees with the other ranks on what is
// ready, runs it, and finishes what a death has interrupted in the next view. docs/engine.md tells
// how and why.
//
// Thread rule: one thread of its own owns everything that is marked "loop". Post*, Submit and the
// waits are for any thread. The listener is called on the engine's thread, without locks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "collectives/engine/executor.h"
#include "collectives/engine/negotiator.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/recovery.h"
#include "collectives/engine/state_registry.h"
#include "collectives/engine/user_tasks.h"
#include "collectives/engine/view.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

// Makes the communicator of a view: the real one, or a fake with faults.
class CommunicatorFactory {
 public:
  virtual ~CommunicatorFactory() = default;
  virtual Status Create(const CommunicatorOptions& options, std::unique_ptr<Communicator>* out) = 0;
};

struct RebuildTimes {
  uint64_t epoch = 0;  // 0: none yet
  std::string reason;
  double stop = 0, connect = 0, redo = 0, resume = 0;  // seconds
};

class EngineListener {
 public:
  virtual ~EngineListener() = default;
  virtual void OnStopped(uint64_t epoch) = 0;
  virtual void OnInstalled(uint64_t epoch, double connect_seconds) = 0;
  virtual void OnBoundary(uint64_t epoch, uint64_t step) = 0;
  virtual void OnSuspect(uint64_t epoch, int rank, const std::string& why) = 0;
  // `step`: completed so far; `resumed`: how many will be once the operations that were interrupted
  // are done, so what the survivors go on from.
  virtual void OnRebuilt(const RebuildTimes& times, uint64_t step, uint64_t resumed) = 0;
  virtual void OnFinished(uint64_t epoch) = 0;
  // Was dropped from the view by mistake and has run to the end of its step: wants to be in a view
  // again.
  virtual void OnReadyToEnter() = 0;
};

// Points at which a test may stop a rank, in the order of a round. `detail`: the operation's number
// where there is one.
enum class FaultPoint {
  kBeforeNegotiation,
  kAfterNegotiation,
  kBeforeExecute,
  kAfterExecute,
  kAfterPublish,
  kAtBoundary,
  kBeforeExchange,
  kAfterExchange,
  kAfterHandover,
  kAfterSync
};

class Engine {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    CommunicatorFactory* communicators = nullptr;
    EngineListener* listener = nullptr;
    StateRegistry* state = nullptr;
    bool has_state = true;  // false: a joiner
    size_t fusion_bytes = size_t{64} << 20;
    std::function<void(FaultPoint, uint64_t detail)> on_point;  // tests; empty: none
  };

  explicit Engine(Options options);
  ~Engine();
  // Ends its thread; the listener is not called any more. Again is a no-op.
  void Close();

  // ---- What the sidecar says
  void PostStop(uint64_t epoch);
  void PostView(View view);
  // In no view any more, or not yet: its state counts for nothing until it gets a copy. What it has
  // pending completes here alone, so that its step comes to an end.
  void PostDropped();
  void PostArmed(uint64_t epoch, bool armed);
  // The end of this worker's part: everything pending and everything later fails with `why`.
  void PostEnd(Status why);

  // ---- What the user asks
  Status Submit(const std::shared_ptr<Operation>& operation);
  // Until this worker is in a view that trains, with state. Runs the load callback meanwhile.
  Status AwaitEntered(Clock::time_point deadline);
  Status StepEnd(StepResult* result);
  Status Shutdown(Clock::time_point deadline);

  Membership membership() const;
  void ExpectMembership(const Membership& expected);  // what a joiner answers before its first view
  bool entered() const { return entered_; }
  uint64_t step() const { return step_shown_; }
  // The newest view in which an operation has completed here, handovers not counted: all its ranks
  // hold the state.
  uint64_t ran_epoch() const { return ran_epoch_; }
  bool busy() const { return busy_; }
  bool detached() const { return detached_; }
  RebuildTimes last_rebuild() const;

 private:
  struct Mail {
    std::deque<std::shared_ptr<Operation>> submitted;
    std::optional<uint64_t> stop;
    Clock::time_point stop_at;
    std::optional<View> view;
    Clock::time_point view_at;
    std::map<uint64_t, bool> armed;
    std::optional<Status> end;
    bool dropped = false;
    bool close = false;
  };
  enum class Phase { kNoView, kActive, kBroken };

  // engine.cc: the loop and a round
  void Loop();
  Mail WaitForMail();
  bool HasMail() const;
  void HandleStop(const Mail& mail);
  void HandleArmed(const Mail& mail);
  void HandleSubmitted(Mail* mail);
  void End(const Status& why);
  bool MayRound() const;
  bool WantsRound() const;
  void Round();
  Status Run(Response response);
  void Finish(const Retained& result);
  void TakeStep(bool armed);
  void ReleaseBoundary();
  void Break(const Status& why);
  void CompleteLocally(const std::shared_ptr<Operation>& operation);
  void Forget(const Response& response);
  void Reach(FaultPoint point, uint64_t detail = 0);

  // engine_install.cc: a new view
  void Install(View view, Clock::time_point since);
  Status Connect(const View& view, std::shared_ptr<Communicator>* out);
  Status Recover(RecoveryPlan* plan);
  Status HandOver(const RecoveryPlan::Handover& handover);
  Status SyncState(const RecoveryPlan& plan);
  void Detach();
  void Enter(const RecoveryPlan& plan);

  const Options options_;
  UserTasks user_tasks_;

  mutable std::mutex mu_;
  std::condition_variable wake_;
  Mail mail_;                                   // guarded by mu_
  std::unordered_set<std::string> in_flight_;   // guarded by mu_
  std::optional<Status> ended_;                 // guarded by mu_
  Membership membership_;                       // guarded by mu_
  RebuildTimes last_rebuild_;                   // guarded by mu_
  std::shared_ptr<Communicator> communicator_;  // written by the loop under mu_
  std::stop_source connecting_;                 // guarded by mu_
  uint64_t connecting_epoch_ = 0;               // guarded by mu_; 0: not connecting

  std::atomic<bool> entered_ = false;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> detached_ =
      false;  // dropped by mistake: operations complete here alone until the step ends
  std::atomic<uint64_t> step_shown_ = 0;
  std::atomic<uint64_t> ran_epoch_ = 0;

  // loop
  Phase phase_ = Phase::kNoView;
  View view_;
  uint64_t stopped_epoch_ =
      0;  // views up to this one are never used again, the library has said so
  Negotiator negotiator_;
  PendingTable pending_;
  BufferPool pool_;
  std::deque<Retained> retained_;
  uint64_t next_number_ = 0;
  uint64_t step_ = 0;
  bool has_state_;
  uint64_t armed_epoch_ = 0;             // the view at whose next boundary a planned change happens
  bool synced_ = false;                  // state was given to joiners at this boundary
  std::shared_ptr<Operation> boundary_;  // a step end that is confirmed and waits for the next view
  bool new_submission_ = false;
  Clock::time_point next_round_{};  // not before, unless something new is submitted
  std::chrono::microseconds backoff_{0};
  RebuildTimes times_;
  bool rebuilt_pending_ = false;
  Clock::time_point redo_done_;

  std::thread thread_;  // last: starts when all else is there
};

}  // namespace ringmaster::engine
