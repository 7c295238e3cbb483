#include "operator/controllers/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>

#include "common/membership/view.h"

namespace ringmaster::controllers {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

// Covers a rebuild on one machine as well as one that waits for a lost node.
const Buckets& RecoveryBuckets() {
  static const Buckets kBuckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                   0.5,   1,      2.5,   5,    10,    30,   60,  300};
  return kBuckets;
}
// Covers a reconcile that finds nothing to do as well as one that creates a thousand pods.
const Buckets& ReconcileBuckets() {
  static const Buckets kBuckets = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                   0.25,   0.5,   1,      2.5,   5,    10,    30,   60};
  return kBuckets;
}

std::int64_t UnixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct Metrics::Families {
  explicit Families(prometheus::Registry* registry)
      : reconcile(BuildHistogram()
                      .Name("ringmaster_operator_reconcile_seconds")
                      .Help("Duration of one look at one job, by result")
                      .Register(*registry)),
        cpu(BuildCounter()
                .Name("ringmaster_operator_reconcile_cpu_seconds_total")
                .Help("Time that threads have worked in looks at jobs")
                .Register(*registry)
                .Add({})),
        recovery(BuildHistogram()
                     .Name("ringmaster_operator_recovery_seconds")
                     .Help("Duration of recoveries by phase and cause")
                     .Register(*registry)),
        resizes(BuildCounter()
                    .Name("ringmaster_job_resizes_total")
                    .Help("Changes of the world size between two views")
                    .Register(*registry)),
        conflicts(BuildCounter()
                      .Name("ringmaster_operator_record_conflicts_total")
                      .Help("Writes of a job's record that another write came before")
                      .Register(*registry)
                      .Add({})),
        events_dropped(BuildCounter()
                           .Name("ringmaster_operator_events_dropped_total")
                           .Help("Events that came faster than they could be written")
                           .Register(*registry)
                           .Add({})),
        ok(reconcile.Add({{"result", "ok"}}, ReconcileBuckets())),
        retry(reconcile.Add({{"result", "retry"}}, ReconcileBuckets())) {
    // A series that came into being with its first count would have no rate then, and no alert
    // would see the first recovery of each cause.
    for (int reason = 0; reason <= static_cast<int>(membership::Reason::kLinkBroken); ++reason) {
      const std::string cause(membership::ReasonText(static_cast<membership::Reason>(reason)));
      for (const char* phase : job::kPhases) Recovery(phase, cause);
      Recovery(kTotal, cause);
    }
  }

  Histogram& Recovery(const std::string& phase, const std::string& cause) {
    return recovery.Add({{"phase", phase}, {"cause", cause}}, RecoveryBuckets());
  }

  prometheus::Family<Histogram>& reconcile;
  Counter& cpu;
  prometheus::Family<Histogram>& recovery;
  prometheus::Family<Counter>& resizes;
  Counter& conflicts;
  Counter& events_dropped;
  Histogram &ok, &retry;
  // By namespace and job, so that a job's series can be removed.
  std::map<std::pair<std::string, std::string>, std::map<std::string, Counter*>> resizes_of;
};

Metrics::Metrics(prometheus::Registry* registry)
    : families_(std::make_unique<Families>(registry)), recoveries_(UnixMs()) {}
Metrics::~Metrics() = default;

void Metrics::Reconciled(bool ok, double seconds, double cpu_seconds) {
  families_->cpu.Increment(cpu_seconds);
  (ok ? families_->ok : families_->retry).Observe(seconds);
}

void Metrics::EventDropped() { families_->events_dropped.Increment(); }

void Metrics::Resized(const std::string& ns, const std::string& job, int before, int after) {
  if (before == 0 || after == 0 || before == after) return;
  const sync::MutexLock lock(&mu_);
  auto& of_job = families_->resizes_of[{ns, job}];
  for (const char* direction : {"up", "down"}) {
    if (of_job.count(direction) != 0) continue;
    of_job[direction] =
        &families_->resizes.Add({{"namespace", ns}, {"job_name", job}, {"direction", direction}});
  }
  of_job[after > before ? "up" : "down"]->Increment();
}

void Metrics::RecordConflict() { families_->conflicts.Increment(); }

void Metrics::Rebuilt(const std::string& job_uid, const job::Rebuild& rebuild) {
  const sync::MutexLock lock(&mu_);
  recoveries_.Report(job_uid, rebuild, RecoveryMeter::Clock::now());
}

void Metrics::Forget(const std::string& ns, const std::string& job) {
  const sync::MutexLock lock(&mu_);
  const auto at = families_->resizes_of.find({ns, job});
  if (at == families_->resizes_of.end()) return;
  for (const auto& [direction, counter] : at->second) families_->resizes.Remove(counter);
  families_->resizes_of.erase(at);
}

void Metrics::ForgetRebuilds(const std::string& job_uid) {
  const sync::MutexLock lock(&mu_);
  recoveries_.Forget(job_uid);
}

void Metrics::Settle() {
  const sync::MutexLock lock(&mu_);
  for (const auto& recovery : recoveries_.TakeSettled(RecoveryMeter::Clock::now())) {
    for (const auto& [phase, seconds] : recovery.seconds) {
      families_->Recovery(phase, recovery.cause).Observe(seconds);
    }
  }
}

}  // namespace ringmaster::controllers
