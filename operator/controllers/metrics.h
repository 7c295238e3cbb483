// What the controllers count while they work; docs/metrics.md names the series. What can be read
// off the caches at any time is not counted here.
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
  // The series live in `registry`, which outlives this.
  explicit Metrics(prometheus::Registry* registry);
  ~Metrics();

  // One look at one job: how long it took, and how much of that its thread worked.
  void Reconciled(bool ok, double seconds, double cpu_seconds);
  // The world size of a job in one view and in the next; 0: none.
  void Resized(const std::string& ns, const std::string& job, int before, int after);
  void RecordConflict();
  void EventDropped();
  void Rebuilt(const std::string& job_uid, const job::Rebuild& rebuild);
  // The job is gone, and with it its series.
  void Forget(const std::string& ns, const std::string& job);
  void ForgetRebuilds(const std::string& job_uid);

  // Before the registry is collected.
  void Settle();

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
  sync::Mutex mu_;
  RecoveryMeter recoveries_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::controllers
