// The engine of this worker and what it needs: the endpoint at which the others reach this process,
// the factory of its communicators and, if there is no sidecar, the only view that there will be.
//
// Thread rule: one of the Start functions, once; then any thread.
#pragma once

#include <chrono>
#include <memory>

#include "collectives/elastic/fixed_world.h"
#include "collectives/elastic/options.h"
#include "collectives/elastic/ping_facts.h"
#include "collectives/engine/engine.h"
#include "collectives/mpi/mpi_world.h"
#include "collectives/process_manager/process_manager.h"
#include "ringmaster/endpoint.h"

namespace ringmaster::elastic {

class EngineHost {
 public:
  using Clock = std::chrono::steady_clock;

  // The arguments outlive this object.
  EngineHost(const WorkerOptions& options, engine::StateRegistry* state, PingFacts* facts);
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;
  ~EngineHost();

  // Starts in a job, without a view: the sidecar will give it one. `listener` hears what the engine
  // says.
  Status StartInJob(engine::EngineListener* listener);
  // Starts in a view of this process alone.
  Status StartAlone();
  // Starts in the view of all processes that an MPI launcher has started. Returns when all are
  // here.
  Status StartInFixedWorld(Clock::time_point deadline);

  // Null before the start, and after Close() and End().
  engine::Engine* engine() const { return engine_.get(); }
  // Null: this process is alone.
  Endpoint* endpoint() const { return endpoint_.get(); }
  // After this the engine does nothing any more.
  void Close() {
    if (engine_) engine_->Close();
  }
  // Destroys the engine: after Close(), and when nobody else uses it.
  void End() { engine_.reset(); }
  // Takes leave of the MPI launcher. Not before the first shutdown: a script that calls MPI itself
  // needs the launcher to begin, and that isn't possible after the leave. Where collectives go by
  // MPI, its end comes first: FinishMpi().
  void LeaveLauncher() {
    if (mpi_ == nullptr) launcher_.reset();
  }
  // At the end of a process that has agreed with the others on the end of the job. See
  // MpiWorld::Finish.
  Status FinishMpi(Clock::time_point deadline) {
    return mpi_ == nullptr ? Status() : mpi_->Finish(deadline);
  }
  // Null: collectives don't go by MPI.
  const mpi::MpiWorld* mpi() const { return mpi_.get(); }

 private:
  void Make(engine::EngineListener* listener);
  Status EnterOnlyView(engine::WorkerView view, Clock::time_point deadline);
  Status BeginMpi(Clock::time_point deadline);
  std::unique_ptr<engine::Backend> MakeHostBackend() const;

  const WorkerOptions& options_;
  engine::StateRegistry* const state_;
  // Null: no MPI launcher has started this process, or it has been left.
  std::unique_ptr<process_manager::ProcessManager> launcher_;
  std::unique_ptr<mpi::MpiWorld> mpi_;  // null: collectives don't go by MPI
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<engine::CommunicatorFactory> communicators_;
  FixedWorldReports fixed_world_reports_;  // where there is no sidecar
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace ringmaster::elastic
