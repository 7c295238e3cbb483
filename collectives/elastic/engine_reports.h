// Passes on what a worker's engine reports to the sidecar. What a sidecar that starts again must be
// told again also goes to the registration and the rest status.
//
// Thread rule: the engine's thread.
#pragma once

#include <string>
#include <vector>

#include "collectives/elastic/ping_facts.h"
#include "collectives/elastic/rest_status.h"
#include "collectives/elastic/sidecar_frames.h"
#include "collectives/elastic/worker_registration.h"
#include "collectives/engine/engine.h"

namespace ringmaster::elastic {

class EngineReports : public engine::EngineListener {
 public:
  EngineReports(WorkerRegistration* registration, RestStatus* rest, SidecarFrames* frames,
                PingFacts* facts)
      : registration_(registration), rest_(rest), frames_(frames), facts_(facts) {}
  // Called before the engine's first view.
  void Attach(const engine::Engine* engine) { engine_ = engine; }

  void OnStopped(uint64_t epoch) override;
  void OnInstalled(uint64_t epoch, double connect_seconds) override;
  void OnBoundary(uint64_t epoch, uint64_t step) override;
  void OnSuspect(uint64_t epoch, int rank, const std::string& why) override;
  void OnBroken(uint64_t epoch, int rank, const std::string& why) override;
  void OnRebuilt(const engine::RebuildTimes& times, uint64_t step, uint64_t resumed) override;
  void OnAbandoned(uint64_t epoch) override;
  void OnShutDown(uint64_t epoch) override;
  void OnStalls(const std::vector<job::Stall>& stalls, bool came) override;

 private:
  void Tell(const WorkerRegistration::Trouble& trouble);

  WorkerRegistration* const registration_;
  RestStatus* const rest_;
  SidecarFrames* const frames_;
  PingFacts* const facts_;
  const engine::Engine* engine_ = nullptr;
};

}  // namespace ringmaster::elastic
