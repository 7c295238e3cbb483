// A world that a process manager has started (mpirun, srun): its ranks are there from the start,
// none joins, and none takes another's place.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "collectives/elastic/options.h"
#include "collectives/elastic/ping_facts.h"
#include "collectives/engine/engine.h"
#include "collectives/process_manager/process_manager.h"
#include "ringmaster/endpoint.h"

namespace ringmaster::elastic {

// Makes the endpoint of this process, and the only view that there will be. Returns when all
// processes have called it. RM_ERR_TIMEOUT: one of them has not.
Status FoundWorld(process_manager::ProcessManager* manager, const WorkerOptions& options,
                  std::chrono::steady_clock::time_point deadline,
                  std::unique_ptr<Endpoint>* endpoint, engine::WorkerView* view);

// Ends this worker's part in the job when its view breaks, because nobody makes another view.
//
// Thread rule: the engine's thread.
class FixedWorldReports : public engine::EngineListener {
 public:
  explicit FixedWorldReports(PingFacts* facts) : facts_(facts) {}
  // Called before the engine's first view.
  void Attach(engine::Engine* engine) { engine_ = engine; }

  void OnStopped(uint64_t) override {}
  void OnInstalled(uint64_t, double) override {}
  void OnBoundary(uint64_t, uint64_t) override {}
  void OnSuspect(uint64_t, int rank, const std::string& why) override;
  void OnBroken(uint64_t, int rank, const std::string& why) override;
  void OnRebuilt(const engine::RebuildTimes&, uint64_t, uint64_t) override {}
  void OnAbandoned(uint64_t) override {}
  void OnShutDown(uint64_t) override {}
  void OnStalls(const std::vector<job::Stall>& stalls, bool came) override;

 private:
  void End(const std::string& what);

  PingFacts* const facts_;
  engine::Engine* engine_ = nullptr;
};

}  // namespace ringmaster::elastic
