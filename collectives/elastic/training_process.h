// One training process in its job: ties the engine to the sidecar and to the user's calls.
//
// This class has the user's calls. What engine and sidecar say to each other goes through
// SidecarLink.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "collectives/elastic/device_check.h"
#include "collectives/elastic/engine_host.h"
#include "collectives/elastic/gpu_watch.h"
#include "collectives/elastic/options.h"
#include "collectives/elastic/ping_facts.h"
#include "collectives/elastic/rank_timeline.h"
#include "collectives/elastic/sidecar_link.h"
#include "collectives/elastic/step_changes.h"
#include "collectives/engine/engine.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

class TrainingProcess {
 public:
  using Clock = std::chrono::steady_clock;
  // Until when a call waits. None: its caller names no time. Under a sidecar the call then waits
  // for as long as the job goes on, because a step, an evaluation or the job's own limit may be of
  // any length; the sidecar ends the wait, or its silence does. Where there is no sidecar nobody
  // would, so WorkerOptions::patience does.
  using Limit = std::optional<Clock::time_point>;

  // Starts this worker. Returns when a bootstrapping worker is in the first view, or is a joiner
  // because the job has begun without it; when the sidecar has said that the worker is a joiner;
  // when a standby is promoted; or when all processes that an MPI launcher has started are here.
  static Status Start(const WorkerOptions& options, engine::StateRegistry* state, Limit limit,
                      std::unique_ptr<TrainingProcess>* out);
  ~TrainingProcess();

  // Lets a joiner into a view; does nothing for a worker that is in one.
  Status Enter(Limit limit);
  // Called first by every collective: lets a joiner enter.
  Status EnsureEntered();
  Status Submit(const std::shared_ptr<engine::Operation>& operation) {
    return Submit({&operation, 1});
  }
  // Submits all of them at once, or none.
  Status Submit(std::span<const std::shared_ptr<engine::Operation>> operations);
  Status StepEnd(rm_step_info* info);
  // All ranks have joined. Steps may have ended here without a call, so the next step's changes
  // count from the last of them, as they do on the ranks that called.
  void Joined() { changes_.Begin(info().step_ranks()); }
  // All ranks of the view agree on the shutdown. This worker then rests, if there are others: it
  // stays in the view until the script begins again or the process ends.
  Status Shutdown(Limit limit);
  // Whether there are other ranks, or could be, with which a shutdown has to be agreed on.
  bool AgreesWithOthers() const { return host_.endpoint() != nullptr && info().entered; }
  // Ends the rest: all ranks agree to begin again. RM_ERR_SHUTDOWN: the job is over, and there is
  // no way back.
  Status Wake(Limit limit);
  // The process of a worker that rests is about to end with success. RM_ERR_DROPPED: others may
  // have begun again without it.
  Status Finish(Clock::time_point deadline);

  bool joining() const;
  // Null: collectives don't go by MPI.
  const mpi::MpiWorld* mpi() const { return host_.mpi(); }
  // What is known of the view, its members and the process sets.
  const engine::EngineInfo& info() const { return host_.engine()->info(); }
  // For a joiner: the number of the next process set that its script adds.
  int CountSet() { return ++counted_sets_; }
  // Waits until the operation is done. False: the deadline passed.
  bool Await(const engine::Operation& operation, Clock::time_point deadline);
  void Report(const std::string& name, double value) { facts_.Report(name, value); }
  // RM_ERR_INVALID: a timeline is being written already, or there can be no such file.
  Status StartTimeline(const std::string& path) { return timeline_.Start(path, info()); }

 private:
  TrainingProcess(const WorkerOptions& options, engine::StateRegistry* state);
  Clock::time_point DeadlineOf(Limit limit) const;
  Status Begin(Limit limit);
  Status StartWithSidecar(Limit limit);
  Status StartWithoutSidecar(Clock::time_point deadline);
  // The worker is in a view. Its first step counts changes from this one.
  void Entered();

  const WorkerOptions options_;
  DeviceCheck devices_;
  PingFacts facts_;
  GpuWatch gpu_;
  EngineHost host_;
  SidecarLink sidecar_;

  std::atomic<int> counted_sets_{0};
  std::once_flag remarked_;
  RankTimeline timeline_;
  StepChanges changes_;
};

}  // namespace ringmaster::elastic
