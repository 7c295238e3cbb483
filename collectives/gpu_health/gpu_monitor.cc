#include "collectives/gpu_health/gpu_monitor.h"

#include <cstdio>
#include <thread>
#include <utility>

#include "collectives/gpu_health/gpu_condition.h"
#include "common/sync/mutex.h"

namespace ringmaster::gpu_health {
namespace {

using Clock = std::chrono::steady_clock;

// Notes the result where it says that the GPU is lost. True: there is a value.
bool Told(NvmlResult result, GpuReading* reading) {
  reading->lost = reading->lost || result == kNvmlGpuIsLost;
  reading->needs_reset = reading->needs_reset || result == kNvmlResetRequired;
  return result == kNvmlSuccess;
}

GpuReading LookAt(NvmlApi* nvml, void* device) {
  GpuReading reading;
  std::uint64_t number = 0;
  if (Told(nvml->TotalEccErrors(device, &number), &reading)) reading.uncorrected = number;
  bool pending = false, failed = false;
  if (Told(nvml->RemappedRows(device, &pending, &failed), &reading)) {
    reading.remap_pending = pending;
    reading.remap_failed = failed;
  }
  if (Told(nvml->CurrentClocksThrottleReasons(device, &number), &reading))
    reading.throttle = number;
  unsigned celsius = 0;
  if (Told(nvml->Temperature(device, &celsius), &reading))
    reading.celsius = static_cast<int>(celsius);
  return reading;
}

}  // namespace

// What the thread works with. It outlives the monitor where the thread hangs.
class GpuMonitor::Watch {
 public:
  Watch(std::shared_ptr<NvmlApi> nvml, std::function<std::string()> bus_id,
        std::shared_ptr<LatestHealth> latest, MonitorTimes times)
      : nvml_(std::move(nvml)),
        bus_id_(std::move(bus_id)),
        latest_(std::move(latest)),
        times_(times) {}

  void Run() {
    if (nvml_->Init() == kNvmlSuccess) WatchGpu(bus_id_());
    sync::MutexLock lock(&mu_);
    ended_ = true;
    changed_.NotifyAll();
  }
  // True: the thread has ended, or does at once.
  bool Stop() {
    const auto deadline = Clock::now() + times_.farewell;
    sync::MutexLock lock(&mu_);
    stopped_ = true;
    changed_.NotifyAll();
    while (!ended_ && changed_.WaitUntil(&mu_, deadline)) {
    }
    return ended_;
  }

 private:
  void WatchGpu(const std::string& bus_id) {
    if (bus_id.empty()) return;
    GpuCondition condition(bus_id);
    void* device = nullptr;
    GpuReading found;
    if (!Told(nvml_->DeviceGetHandleByPciBusId(bus_id, &device), &found)) {
      condition.OnReading(found);
      if (!condition.health().failing.empty()) Publish(condition);
      return;
    }
    const bool hears = nvml_->RegisterXids(device) == kNvmlSuccess;
    for (auto next = Clock::now(); !stopped();) {
      if (Clock::now() >= next) {
        condition.OnReading(LookAt(nvml_.get(), device));
        next = Clock::now() + times_.look;
        Publish(condition);
      }
      if (hears ? Listen(&condition) : Rest()) Publish(condition);
    }
  }

  // True: an Xid came.
  bool Listen(GpuCondition* condition) {
    std::uint64_t xid = 0;
    const NvmlResult result =
        nvml_->EventSetWait(static_cast<unsigned>(times_.listen.count()), &xid);
    if (result == kNvmlTimeout) return false;
    // Any other answer may come at once, again and again.
    if (result != kNvmlSuccess) return Rest();
    condition->OnXid(xid);
    return true;
  }
  // False: no Xid came.
  bool Rest() {
    const auto until = Clock::now() + times_.listen;
    sync::MutexLock lock(&mu_);
    while (!stopped_ && changed_.WaitUntil(&mu_, until)) {
    }
    return false;
  }
  bool stopped() {
    sync::MutexLock lock(&mu_);
    return stopped_;
  }

  void Publish(const GpuCondition& condition) {
    const job::GpuHealth& health = condition.health();
    if (!std::exchange(failing_, !health.failing.empty()) && failing_)
      std::fprintf(stderr, "ringmaster: %s\n", job::Describe(health).c_str());
    latest_->Set(health);
  }

  const std::shared_ptr<NvmlApi> nvml_;
  const std::function<std::string()> bus_id_;
  const std::shared_ptr<LatestHealth> latest_;
  const MonitorTimes times_;
  bool failing_ = false;  // the thread's only
  sync::Mutex mu_;
  sync::CondVar changed_;
  bool stopped_ GUARDED_BY(mu_) = false;
  bool ended_ GUARDED_BY(mu_) = false;
};

GpuMonitor::GpuMonitor(std::shared_ptr<NvmlApi> nvml, std::function<std::string()> bus_id,
                       std::shared_ptr<LatestHealth> latest, MonitorTimes times)
    : watch_(
          std::make_shared<Watch>(std::move(nvml), std::move(bus_id), std::move(latest), times)) {
  std::thread([watch = watch_] { watch->Run(); }).detach();
}

GpuMonitor::~GpuMonitor() { (void)watch_->Stop(); }

}  // namespace ringmaster::gpu_health
