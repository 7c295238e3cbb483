#include "sidecar/health/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>

namespace ringmaster::health {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

// From a rebuild on one machine to one that waits for a lost node.
const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
// A script that reports names without end must not eat the memory.
constexpr size_t kMaxValues = 64;

}  // namespace

struct Metrics::Families {
  explicit Families(const prometheus::Labels& labels)
      : epoch(BuildGauge()
                  .Name("ringmaster_sidecar_epoch")
                  .Help("Epoch of the installed view")
                  .Labels(labels)
                  .Register(registry)
                  .Add({})),
        world_size(BuildGauge()
                       .Name("ringmaster_sidecar_world_size")
                       .Help("Ranks in the installed view")
                       .Labels(labels)
                       .Register(registry)
                       .Add({})),
        step(BuildGauge()
                 .Name("ringmaster_sidecar_step")
                 .Help("Completed steps")
                 .Labels(labels)
                 .Register(registry)
                 .Add({})),
        coordinator(BuildGauge()
                        .Name("ringmaster_sidecar_coordinator")
                        .Help("1 while this sidecar coordinates the view")
                        .Labels(labels)
                        .Register(registry)
                        .Add({})),
        missed(BuildGauge()
                   .Name("ringmaster_sidecar_heartbeats_missed")
                   .Help("Heartbeats without an answer in time since the start")
                   .Labels(labels)
                   .Register(registry)
                   .Add({})),
        refused(BuildGauge()
                    .Name("ringmaster_sidecar_heartbeats_refused")
                    .Help("Heartbeat connections closed for want of a proof since the start")
                    .Labels(labels)
                    .Register(registry)
                    .Add({})),
        stalled(
            BuildGauge()
                .Name("ringmaster_sidecar_stalled_tensors")
                .Help("Tensors that have waited for long for ranks that have not asked for them")
                .Labels(labels)
                .Register(registry)
                .Add({})),
        worker_seconds(BuildCounter()
                           .Name("ringmaster_sidecar_worker_seconds_total")
                           .Help("Time of a worker in the job's views")
                           .Labels(labels)
                           .Register(registry)),
        worker_state_seconds(
            BuildCounter()
                .Name("ringmaster_sidecar_worker_collective_seconds_total")
                .Help("Of this, in which the script stood still for collectives (blocked), a "
                      "collective waited for other ranks (waiting), one ran (running)")
                .Labels(labels)
                .Register(registry)),
        worker_bytes(BuildCounter()
                         .Name("ringmaster_sidecar_worker_collective_bytes_total")
                         .Help("Bytes of tensors in collectives that have run")
                         .Labels(labels)
                         .Register(registry)),
        gpu_healthy(BuildGauge()
                        .Name("ringmaster_gpu_healthy")
                        .Help("0 once the GPU of the worker in this slot fails, else 1")
                        .Labels(labels)
                        .Register(registry)),
        gpu_throttled(BuildGauge()
                          .Name("ringmaster_gpu_throttled")
                          .Help("1 while the hardware slows the GPU down to protect it")
                          .Labels(labels)
                          .Register(registry)),
        gpu_celsius(BuildGauge()
                        .Name("ringmaster_gpu_temperature_celsius")
                        .Help("Temperature of the GPU of the worker in this slot")
                        .Labels(labels)
                        .Register(registry)),
        gpu_xids(BuildCounter()
                     .Name("ringmaster_gpu_xids_total")
                     .Help("Errors of NVIDIA's driver on the GPU of this slot, by number")
                     .Labels(labels)
                     .Register(registry)),
        values(BuildGauge()
                   .Name("ringmaster_sidecar_reported_value")
                   .Help("What the training script reports, by name")
                   .Labels(labels)
                   .Register(registry)),
        rebuild_seconds(BuildHistogram()
                            .Name("ringmaster_sidecar_rebuild_seconds")
                            .Help("Duration of rebuilds by phase and reason")
                            .Labels(labels)
                            .Register(registry)),
        rebuilds(BuildCounter()
                     .Name("ringmaster_sidecar_rebuilds_total")
                     .Help("Views installed after the first, by reason")
                     .Labels(labels)
                     .Register(registry)),
        restarts(BuildCounter()
                     .Name("ringmaster_sidecar_worker_restarts_total")
                     .Help("Workers restarted in place")
                     .Labels(labels)
                     .Register(registry)
                     .Add({})),
        exits(BuildCounter()
                  .Name("ringmaster_sidecar_worker_exits_total")
                  .Help("Worker processes ended, by exit code")
                  .Labels(labels)
                  .Register(registry)) {}

  prometheus::Registry registry;
  prometheus::Gauge &epoch, &world_size, &step, &coordinator, &missed, &refused, &stalled;
  prometheus::Family<prometheus::Counter>&worker_seconds, &worker_state_seconds, &worker_bytes;
  prometheus::Family<prometheus::Gauge>&gpu_healthy, &gpu_throttled, &gpu_celsius;
  prometheus::Family<prometheus::Counter>& gpu_xids;
  prometheus::Family<prometheus::Gauge>& values;
  prometheus::Family<prometheus::Histogram>& rebuild_seconds;
  prometheus::Family<prometheus::Counter>& rebuilds;
  prometheus::Counter& restarts;
  prometheus::Family<prometheus::Counter>& exits;
  size_t value_names = 0;
  struct Slot {
    prometheus::Counter &seconds, &blocked, &waiting, &running, &bytes;
    job::WorkerTimes counted;  // the newest
  };
  std::map<int, Slot> slots;

  Slot& SlotOf(int number) {
    const auto known = slots.find(number);
    if (known != slots.end()) return known->second;
    const std::string text = std::to_string(number);
    const auto state = [&](const char* name) -> prometheus::Counter& {
      return worker_state_seconds.Add({{"slot", text}, {"state", name}});
    };
    const Slot made{worker_seconds.Add({{"slot", text}}),
                    state("blocked"),
                    state("waiting"),
                    state("running"),
                    worker_bytes.Add({{"slot", text}}),
                    {}};
    return slots.emplace(number, made).first->second;
  }
};

Metrics::Metrics(const std::string& job_namespace, const std::string& job, const std::string& pod)
    : families_(std::make_unique<Families>(
          prometheus::Labels{{"namespace", job_namespace}, {"job_name", job}, {"pod", pod}})) {}
Metrics::~Metrics() = default;

void Metrics::SetEpoch(uint64_t epoch) { families_->epoch.Set(static_cast<double>(epoch)); }
void Metrics::SetWorldSize(int size) { families_->world_size.Set(size); }
void Metrics::SetStep(uint64_t step) { families_->step.Set(static_cast<double>(step)); }
void Metrics::SetCoordinator(bool coordinator) { families_->coordinator.Set(coordinator ? 1 : 0); }
void Metrics::SetHeartbeatsMissed(uint64_t missed) {
  families_->missed.Set(static_cast<double>(missed));
}

void Metrics::SetHeartbeatsRefused(uint64_t refused) {
  families_->refused.Set(static_cast<double>(refused));
}

void Metrics::SetStalledTensors(int tensors) { families_->stalled.Set(tensors); }

void Metrics::SetTimes(int slot, const job::WorkerTimes& times) {
  Families::Slot& known = families_->SlotOf(slot);
  const job::WorkerTimes added = job::Between(known.counted, times);
  known.counted = times;
  known.seconds.Increment(added.seconds);
  known.blocked.Increment(added.blocked);
  known.waiting.Increment(added.waiting);
  known.running.Increment(added.running);
  known.bytes.Increment(static_cast<double>(added.bytes));
}

void Metrics::SetGpu(const job::GpuHealth& gpu) {
  const std::string slot = std::to_string(gpu.slot);
  families_->gpu_healthy.Add({{"slot", slot}}).Set(gpu.failing.empty() ? 1 : 0);
  families_->gpu_throttled.Add({{"slot", slot}}).Set(gpu.throttled ? 1 : 0);
  if (gpu.celsius) families_->gpu_celsius.Add({{"slot", slot}}).Set(*gpu.celsius);
  for (const auto& [number, count] : gpu.xids) {
    auto& counter = families_->gpu_xids.Add({{"slot", slot}, {"xid", std::to_string(number)}});
    const double added = static_cast<double>(count) - counter.Value();
    if (added > 0) counter.Increment(added);
  }
}

void Metrics::SetValue(const std::string& name, double value) {
  prometheus::Labels labels{{"name", name}};
  if (!families_->values.Has(labels) && ++families_->value_names > kMaxValues) return;
  families_->values.Add(labels).Set(value);
}

void Metrics::ObserveRebuild(const std::string& phase, const std::string& reason, double seconds) {
  families_->rebuild_seconds.Add({{"phase", phase}, {"reason", reason}}, kSeconds).Observe(seconds);
}
void Metrics::CountRebuild(const std::string& reason) {
  families_->rebuilds.Add({{"reason", reason}}).Increment();
}
void Metrics::CountWorkerRestart() { families_->restarts.Increment(); }
void Metrics::CountWorkerExit(int exit_code) {
  families_->exits.Add({{"exit_code", std::to_string(exit_code)}}).Increment();
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace ringmaster::health
