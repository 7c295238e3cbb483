#include "collectives/gpu_health/gpu_condition.h"

#include "collectives/gpu_health/nvml_api.h"
#include "collectives/gpu_health/xid.h"

namespace ringmaster::gpu_health {
namespace {

// Why the hardware slows itself down; empty: it doesn't.
std::string WhyThrottled(std::uint64_t reasons) {
  if ((reasons & kHwThermalSlowdown) != 0) return "it is too hot";
  if ((reasons & kHwPowerBrake) != 0) return "the machine's power supply asks for it";
  if ((reasons & kHwSlowdown) != 0) return "it is too hot, or draws too much power";
  return "";
}

}  // namespace

void GpuCondition::OnXid(std::uint64_t number) {
  auto& xids = health_.xids;
  const int key = number <= 9'999 ? static_cast<int>(number) : 9'999;
  if (xids.size() < job::kMostXids || xids.count(key) != 0) ++xids[key];
  const Xid xid = ExplainXid(number);
  if (xid.kind == XidKind::kFailing) Fail(xid.text);
  if (xid.kind == XidKind::kWarning && of_xids_.insert(xid.text).second)
    health_.warnings.push_back(xid.text);
}

void GpuCondition::OnReading(const GpuReading& reading) {
  if (!first_) first_ = reading;
  if (reading.lost) Fail("the driver has lost it");
  if (reading.needs_reset) Fail("the driver says that it needs a reset");
  health_.warnings.assign(of_xids_.begin(), of_xids_.end());
  CheckMemory(reading);
  const std::string slow = WhyThrottled(reading.throttle.value_or(0));
  health_.throttled = !slow.empty();
  if (health_.throttled) health_.warnings.push_back("the hardware slows it down: " + slow);
  health_.celsius = reading.celsius;
}

void GpuCondition::CheckMemory(const GpuReading& reading) {
  const std::uint64_t before = first_->uncorrected.value_or(0);
  const std::uint64_t now = reading.uncorrected.value_or(0);
  // A first number that comes late may count errors of the time before.
  if (!first_->uncorrected)
    first_->uncorrected = reading.uncorrected;
  else if (now > before)
    Fail("an uncorrectable error of its memory (ECC)");
  if (before > 0) {
    health_.warnings.push_back(std::to_string(before) +
                               " uncorrectable errors of its memory (ECC) from before this worker");
  }
  if (reading.remap_failed.value_or(false)) {
    if (first_->remap_failed.value_or(false))
      health_.warnings.push_back("a row of its memory could not be remapped before this worker");
    else if (first_->remap_failed)
      Fail("a row of its memory could not be remapped");
  }
  if (!first_->remap_failed) first_->remap_failed = reading.remap_failed;
  if (reading.remap_pending.value_or(false))
    health_.warnings.push_back("a row of its memory is to be remapped at the next reset");
}

}  // namespace ringmaster::gpu_health
