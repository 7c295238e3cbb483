#include "collectives/gpu_health/gpu_monitor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>

#include "common/sync/mutex.h"

namespace ringmaster::gpu_health {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class FakeNvml : public NvmlApi {
 public:
  NvmlResult Init() override {
    ++calls;
    return init;
  }
  NvmlResult DeviceGetHandleByPciBusId(const std::string& bus_id, void** device) override {
    *device = this;
    asked = bus_id;
    return found;
  }
  NvmlResult RegisterXids(void*) override { return registers; }
  NvmlResult EventSetWait(unsigned timeout_ms, std::uint64_t* xid) override {
    const auto until = Clock::now() + milliseconds(timeout_ms);
    sync::MutexLock lock(&mu);
    while (hangs) changed.Wait(&mu);
    while (xids.empty() && changed.WaitUntil(&mu, until)) {
    }
    if (xids.empty()) return kNvmlTimeout;
    *xid = xids.front();
    xids.pop_front();
    return kNvmlSuccess;
  }
  NvmlResult TotalEccErrors(void*, std::uint64_t* count) override {
    *count = errors;
    return kNvmlSuccess;
  }
  NvmlResult RemappedRows(void*, bool*, bool*) override { return kNvmlNotSupported; }
  NvmlResult CurrentClocksThrottleReasons(void*, std::uint64_t* reasons) override {
    *reasons = 0;
    return kNvmlSuccess;
  }
  NvmlResult Temperature(void*, unsigned* celsius) override {
    *celsius = 60;
    return answer;
  }

  void Raise(std::uint64_t xid) {
    sync::MutexLock lock(&mu);
    xids.push_back(xid);
    changed.NotifyAll();
  }
  void Hang(bool on) {
    sync::MutexLock lock(&mu);
    hangs = on;
    changed.NotifyAll();
  }

  NvmlResult init = kNvmlSuccess, found = kNvmlSuccess, registers = kNvmlSuccess;
  std::atomic<NvmlResult> answer = kNvmlSuccess;
  std::atomic<std::uint64_t> errors = 0;
  std::atomic<int> calls = 0;
  std::string asked;
  sync::Mutex mu;
  sync::CondVar changed;
  std::deque<std::uint64_t> xids GUARDED_BY(mu);
  bool hangs GUARDED_BY(mu) = false;
};

class GpuMonitorTest : public testing::Test {
 protected:
  void Start() {
    monitor_ = std::make_unique<GpuMonitor>(
        nvml_, [] { return std::string("0000:17:00.0"); }, latest_,
        MonitorTimes{
            .look = milliseconds(5), .listen = milliseconds(5), .farewell = milliseconds(50)});
  }
  // The first health that `fits`.
  template <typename Fits>
  job::GpuHealth Await(Fits fits) {
    job::GpuHealth health;
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (Clock::now() < deadline) {
      if (auto news = latest_->News(&known_)) health = *news;
      if (known_ != 0 && fits(health)) return health;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "it has not come; the newest is " << job::Describe(health);
    return health;
  }

  std::shared_ptr<FakeNvml> nvml_ = std::make_shared<FakeNvml>();
  std::shared_ptr<LatestHealth> latest_ = std::make_shared<LatestHealth>();
  std::uint64_t known_ = 0;
  std::unique_ptr<GpuMonitor> monitor_;
};

TEST_F(GpuMonitorTest, AnXidIsToldWithTheGpuThatHadIt) {
  Start();
  const job::GpuHealth well = Await([](const auto& health) { return health.celsius == 60; });
  EXPECT_EQ(well.gpu, "0000:17:00.0");
  EXPECT_EQ(well.failing, "");
  nvml_->Raise(31);
  Await([](const auto& health) { return health.xids.count(31) != 0; });
  nvml_->Raise(79);
  const auto fails = Await([](const auto& health) { return !health.failing.empty(); });
  EXPECT_EQ(fails.failing, "Xid 79, it has fallen off the bus");
}

TEST(LatestHealthTest, WhoSendsItIsWokenByNews) {
  LatestHealth latest;
  int woken = 0;
  latest.SetWake([&woken] { ++woken; });
  latest.Set({.celsius = 60});
  latest.Set({.celsius = 60});
  EXPECT_EQ(woken, 1);
  latest.SetWake(nullptr);
  latest.Set({.celsius = 61});
  EXPECT_EQ(woken, 1);
}

TEST_F(GpuMonitorTest, AnErrorOfTheMemoryIsSeenAtTheNextLook) {
  nvml_->registers = kNvmlNotSupported;  // it goes on without Xids
  Start();
  Await([](const auto&) { return true; });
  nvml_->errors = 1;
  EXPECT_EQ(Await([](const auto& health) { return !health.failing.empty(); }).failing,
            "an uncorrectable error of its memory (ECC)");
}

TEST_F(GpuMonitorTest, AGpuThatTheDriverHasLostFails) {
  Start();
  Await([](const auto&) { return true; });
  nvml_->answer = kNvmlGpuIsLost;
  Await([](const auto& health) { return health.failing == "the driver has lost it"; });
}

TEST_F(GpuMonitorTest, AGpuThatIsLostFromTheBeginningFails) {
  nvml_->found = kNvmlGpuIsLost;
  Start();
  Await([](const auto& health) { return health.failing == "the driver has lost it"; });
}

TEST_F(GpuMonitorTest, WhereNvmlCantBeUsedNothingIsTold) {
  nvml_->init = 9;  // the driver is not loaded
  Start();
  monitor_.reset();
  EXPECT_FALSE(latest_->News(&known_));
}

TEST_F(GpuMonitorTest, WithoutABusIdNothingIsWatched) {
  monitor_ = std::make_unique<GpuMonitor>(
      nvml_, [] { return std::string(); }, latest_, MonitorTimes());
  monitor_.reset();
  EXPECT_FALSE(latest_->News(&known_));
  EXPECT_EQ(nvml_->asked, "");
}

TEST_F(GpuMonitorTest, ACallThatHangsDoesNotHoldUpTheEnd) {
  nvml_->Hang(true);
  Start();
  Await([](const auto&) { return true; });  // the first look was before the wait
  const auto began = Clock::now();
  monitor_.reset();
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(10));
  nvml_->Hang(false);
  while (nvml_.use_count() > 1) std::this_thread::yield();  // the thread that was left behind ends
}

}  // namespace
}  // namespace ringmaster::gpu_health
