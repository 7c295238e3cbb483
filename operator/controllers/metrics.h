// What the controllers count while they work; docs/metrics.md names the series. What the caches can
// tell at any time is not counted here.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <memory>
#include <string>

#include "common/sync/mutex.h"
#include "operator/controllers/recovery_meter.h"

namespace prometheus {
class Registry;
}

namespace ringmaster::controllers {

class Metrics {
 public:
  // `registry` holds the series and outlives this object.
  explicit Metrics(prometheus::Registry* registry);
  ~Metrics();

  // One reconcile of one job: its duration, and the CPU time that its thread used.
  void Reconciled(bool ok, double seconds, double cpu_seconds);
  // The world sizes of a job in one view and in the next; 0: no view.
  void Resized(const std::string& ns, const std::string& job, int before, int after);
  void RecordConflict();
  void EventDropped();
  void Rebuilt(const std::string& job_uid, const job::Rebuild& rebuild);
  // The job is gone, so its series are removed.
  void Forget(const std::string& ns, const std::string& job);
  void ForgetRebuilds(const std::string& job_uid);

  // Observes recoveries that are complete. Call it before the registry is collected.
  void Settle();

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
  sync::Mutex mu_;
  RecoveryMeter recoveries_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::controllers
