// The sidecar's metrics; docs/metrics.md names them. One object, handed to the parts that have
// something to count.
//
// Thread rule: any thread (prometheus-cpp locks inside).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/job/gpu_health.h"
#include "common/job/worker_times.h"

namespace ringmaster::health {

class Metrics {
 public:
  Metrics(const std::string& job_namespace, const std::string& job, const std::string& pod);
  ~Metrics();

  void SetEpoch(uint64_t epoch);
  void SetWorldSize(int size);
  void SetStep(uint64_t step);
  void SetCoordinator(bool coordinator);
  void SetHeartbeatsMissed(uint64_t missed);
  void SetHeartbeatsRefused(uint64_t refused);
  void SetStalledTensors(int tensors);
  // Of the worker in this slot. By one thread.
  void SetTimes(int slot, const job::WorkerTimes& times);
  // Of the GPU of the worker in this slot, whose Xids only become more. By one thread.
  void SetGpu(const job::GpuHealth& gpu);
  void SetValue(const std::string& name, double value);  // what the script reports
  void ObserveRebuild(const std::string& phase, const std::string& reason, double seconds);
  void CountRebuild(const std::string& reason);
  void CountWorkerRestart();
  void CountWorkerExit(int exit_code);

  // In Prometheus' text format.
  std::string Text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace ringmaster::health
