#include "collectives/gpu_health/gpu_condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "collectives/gpu_health/nvml_api.h"

namespace ringmaster::gpu_health {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GpuReading Healthy() {
  return {.uncorrected = 0,
          .remap_pending = false,
          .remap_failed = false,
          .throttle = 0,
          .celsius = 60};
}

struct Case {
  std::string name;
  std::function<void(GpuReading&)> change;
  std::string fails_later;  // when it comes while the worker uses the GPU; empty: it goes on
  std::string fails_first;  // when the GPU has it as the worker begins
  std::string warns_first;  // then instead
};

class ReadingTable : public testing::TestWithParam<Case> {};

TEST_P(ReadingTable, SaysWhatMakesAGpuFail) {
  GpuReading changed = Healthy();
  GetParam().change(changed);
  GpuCondition later("0000:17:00.0"), first("0000:17:00.0");
  later.OnReading(Healthy());
  EXPECT_EQ(later.health().failing, "");
  EXPECT_THAT(later.health().warnings, IsEmpty());
  later.OnReading(changed);
  EXPECT_EQ(later.health().failing, GetParam().fails_later);
  first.OnReading(changed);
  first.OnReading(changed);
  EXPECT_EQ(first.health().failing, GetParam().fails_first);
  std::string warnings;
  for (const std::string& warning : first.health().warnings) warnings += warning;
  EXPECT_EQ(warnings, GetParam().warns_first);
}

const std::string kEcc = "an uncorrectable error of its memory (ECC)";
const std::string kLost = "the driver has lost it";
const std::string kReset = "the driver says that it needs a reset";
const std::string kSlow = "the hardware slows it down: ";

INSTANTIATE_TEST_SUITE_P(
    Readings, ReadingTable,
    testing::Values(
        Case{"Nothing", [](GpuReading&) {}, "", "", ""},
        Case{"Lost", [](GpuReading& r) { r.lost = true; }, kLost, kLost, ""},
        Case{"NeedsReset", [](GpuReading& r) { r.needs_reset = true; }, kReset, kReset, ""},
        Case{"Ecc", [](GpuReading& r) { r.uncorrected = 3; }, kEcc, "",
             "3 uncorrectable errors of its memory (ECC) from before this worker"},
        Case{"RemapFailed", [](GpuReading& r) { r.remap_failed = true; },
             "a row of its memory could not be remapped", "",
             "a row of its memory could not be remapped before this worker"},
        Case{"RemapPending", [](GpuReading& r) { r.remap_pending = true; }, "", "",
             "a row of its memory is to be remapped at the next reset"},
        Case{"TooHot", [](GpuReading& r) { r.throttle = kHwThermalSlowdown | kHwSlowdown; }, "", "",
             kSlow + "it is too hot"},
        Case{"PowerBrake", [](GpuReading& r) { r.throttle = kHwPowerBrake; }, "", "",
             kSlow + "the machine's power supply asks for it"},
        Case{"IdleAndPowerCap", [](GpuReading& r) { r.throttle = 0x1 | 0x4 | 0x20; }, "", "", ""},
        Case{"Hot", [](GpuReading& r) { r.celsius = 95; }, "", "", ""}),
    [](const auto& info) { return info.param.name; });

TEST(GpuConditionTest, AFailingXidCountsAndTheFirstReasonStays) {
  GpuCondition gpu("0000:17:00.0");
  gpu.OnReading(Healthy());
  gpu.OnXid(79);
  GpuReading lost;
  lost.lost = true;
  gpu.OnReading(lost);
  EXPECT_EQ(gpu.health().failing, "Xid 79, it has fallen off the bus");
  EXPECT_EQ(gpu.health().xids, (std::map<int, std::uint64_t>{{79, 1}}));
}

TEST(GpuConditionTest, AnXidOfTheProgramIsOnlyCounted) {
  GpuCondition gpu("0000:17:00.0");
  gpu.OnXid(31);
  gpu.OnXid(31);
  gpu.OnXid(63);
  gpu.OnXid(63);
  gpu.OnReading(Healthy());
  EXPECT_EQ(gpu.health().failing, "");
  EXPECT_EQ(gpu.health().xids, (std::map<int, std::uint64_t>{{31, 2}, {63, 2}}));
  EXPECT_THAT(gpu.health().warnings, ElementsAre(HasSubstr("Xid 63")));
}

TEST(GpuConditionTest, ThrottlingAndTheTemperatureAreAsOfNow) {
  GpuCondition gpu("0000:17:00.0");
  GpuReading hot = Healthy();
  hot.throttle = kHwThermalSlowdown;
  hot.celsius = 92;
  gpu.OnReading(hot);
  EXPECT_TRUE(gpu.health().throttled);
  EXPECT_EQ(gpu.health().celsius, 92);
  gpu.OnReading(Healthy());
  EXPECT_FALSE(gpu.health().throttled);
  EXPECT_THAT(gpu.health().warnings, IsEmpty());
  EXPECT_EQ(gpu.health().celsius, 60);
}

TEST(GpuConditionTest, ANumberThatComesLateIsNoNews) {
  GpuCondition gpu("0000:17:00.0");
  gpu.OnReading({});
  GpuReading bad;
  bad.uncorrected = 5;
  bad.remap_failed = true;
  gpu.OnReading(bad);
  EXPECT_EQ(gpu.health().failing, "");
  bad.uncorrected = 6;
  gpu.OnReading(bad);
  EXPECT_EQ(gpu.health().failing, kEcc);
}

}  // namespace
}  // namespace ringmaster::gpu_health
