// What a ping to the sidecar tells of this worker beside the engine's counters: the values that
// its script reports, what it waits for, and the health of its GPU.
//
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collectives/engine/engine_info.h"
#include "collectives/gpu_health/latest_health.h"
#include "common/job/stall.h"
#include "common/sync/mutex.h"

namespace ringmaster::elastic {

class PingFacts {
 public:
  using Clock = std::chrono::steady_clock;

  // The first 64 names are kept, so that a ping stays small whatever the script reports.
  void Report(const std::string& name, double value);
  // Sets what the worker waits for from now on; each stall is written to stderr, too. `workers`: by
  // rank. `came`: if `stalls` is empty, whether that is because what was missing has come.
  void SetStalls(const std::vector<job::Stall>& stalls, bool came,
                 const std::vector<std::string>& workers);
  // Whoever watches this worker's GPU sets its health here.
  const std::shared_ptr<gpu_health::LatestHealth>& gpu() const { return gpu_; }
  // The fields of a ping. The GPU's health is only in one after which it has changed.
  nlohmann::json Fields(const engine::EngineInfo& engine);
  // Another connection, or another sidecar, listens from now on.
  void SayGpuAgain();

 private:
  std::vector<job::Stall> StallsNow() const REQUIRES(mu_);

  const std::shared_ptr<gpu_health::LatestHealth> gpu_ =
      std::make_shared<gpu_health::LatestHealth>();
  sync::Mutex mu_;
  std::map<std::string, double> values_ GUARDED_BY(mu_);
  std::vector<job::Stall> stalls_ GUARDED_BY(mu_);
  Clock::time_point stalls_at_ GUARDED_BY(mu_);  // when `stalls_` was set
  std::uint64_t told_gpu_ GUARDED_BY(mu_) = 0;   // the version of `gpu_` that was in a ping
};

}  // namespace ringmaster::elastic
