// One training process in its job: ties the engine to the sidecar and to the user's calls.
//
// Here are the user's calls. What engine and sidecar say to each other goes through SidecarLink.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "collectives/elastic/device_check.h"
#include "collectives/elastic/engine_host.h"
#include "collectives/elastic/options.h"
#include "collectives/elastic/ping_facts.h"
#include "collectives/elastic/rank_timeline.h"
#include "collectives/elastic/sidecar_link.h"
#include "collectives/elastic/step_changes.h"
#include "collectives/engine/engine.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

class Worker {
 public:
  using Clock = std::chrono::steady_clock;

  // A bootstrapping worker: returns when it is in the first view, or is a joiner because the job
  // has begun without it. A joiner: when the sidecar has said so. A standby: when it is promoted.
  // Where an MPI launcher has started it: when all that it has started are here.
  static Status Start(const WorkerOptions& options, engine::StateRegistry* state,
                      Clock::time_point deadline, std::unique_ptr<Worker>* out);
  ~Worker();

  // A joiner's way into a view; a no-op for those in one.
  Status Enter(Clock::time_point deadline);
  // What every collective begins with: a joiner enters.
  Status EnsureEntered();
  Status Submit(const std::shared_ptr<engine::Operation>& operation) {
    return Submit({&operation, 1});
  }
  // All of them at once, or none.
  Status Submit(std::span<const std::shared_ptr<engine::Operation>> operations);
  Status StepEnd(rm_step_info* info);
  // Agreed by all ranks of the view. This worker then rests, if there are others: it stays in the
  // view until the script begins again, or the process ends.
  Status Shutdown(Clock::time_point deadline);
  // There are others, or could be: a shutdown is agreed with them.
  bool AgreesWithOthers() const { return host_.endpoint() != nullptr && info().entered; }
  // Out of the rest, agreed by all ranks. RM_ERR_SHUTDOWN: there is no way back.
  Status Wake(Clock::time_point deadline);
  // The process of a worker that rests is about to end, as it should.
  // RM_ERR_DROPPED: others may have begun again without it.
  Status Finish(Clock::time_point deadline);

  bool joining() const;
  // Of the view, its members, and the process sets.
  const engine::EngineInfo& info() const { return host_.engine()->info(); }
  // Of a joiner: the number of the next process set that its script adds.
  int CountSet() { return ++counted_sets_; }
  // Until the operation is done; false: the deadline passed.
  bool Await(const engine::Operation& operation, Clock::time_point deadline);
  void Report(const std::string& name, double value) { facts_.Report(name, value); }
  // RM_ERR_INVALID: there is one already, or there can be no such file.
  Status StartTimeline(const std::string& path) { return timeline_.Start(path, info()); }

 private:
  Worker(const WorkerOptions& options, engine::StateRegistry* state);
  Status Begin(Clock::time_point deadline);
  Status StartWithSidecar(Clock::time_point deadline);
  Status StartWithoutSidecar(Clock::time_point deadline);
  // The worker is in a view. Its first step counts changes from this one.
  void Entered();

  const WorkerOptions options_;
  DeviceCheck devices_;
  PingFacts facts_;
  EngineHost host_;
  SidecarLink sidecar_;

  std::atomic<int> counted_sets_{0};
  std::once_flag remarked_;
  RankTimeline timeline_;
  StepChanges changes_;
};

}  // namespace ringmaster::elastic
