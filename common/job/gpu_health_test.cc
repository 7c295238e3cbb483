#include "common/job/gpu_health.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::job {
namespace {

using Json = nlohmann::json;

GpuHealth Hot() {
  return {.slot = 1,
          .gpu = "0000:17:00.0",
          .failing = "",
          .warnings = {"the hardware slows it down: too hot", "Xid 63"},
          .throttled = true,
          .celsius = 91,
          .xids = {{31, 2}, {63, 1}}};
}

TEST(GpuHealthTest, ItComesBackAsItWasSent) {
  EXPECT_EQ(GpuHealthFromJson(Json::parse(ToJson(Hot()).dump())), Hot());
  EXPECT_EQ(GpuHealthFromJson(Json::parse(ToJson(GpuHealth()).dump())), GpuHealth());
  EXPECT_EQ(GpusFromJson(Json::parse(ToJson(std::vector{Hot()}).dump())), std::vector{Hot()});
}

TEST(GpuHealthTest, ItIsDescribedInOneLine) {
  GpuHealth health = Hot();
  EXPECT_EQ(Describe(health),
            "GPU 0000:17:00.0 of worker 1: the hardware slows it down: too hot; Xid 63");
  health.failing = "Xid 79, it has fallen off the bus";
  EXPECT_EQ(Describe(health),
            "GPU 0000:17:00.0 of worker 1 fails: Xid 79, it has fallen off the bus");
  EXPECT_EQ(Describe({.slot = 0, .gpu = "0000:17:00.0"}), "");
}

TEST(GpuHealthTest, WhatAStrangerSaysIsBounded) {
  Json xids = Json::object();
  for (int number = 1; number < 200; ++number) xids[std::to_string(number)] = 1;
  const Json strange = {{"slot", 1u << 31},
                        {"gpu", std::string(10'000, 'x')},
                        {"failing", "\x1b[2J" + std::string(10'000, 'y')},
                        {"warnings", std::vector<std::string>(100, std::string(1'000, 'z'))},
                        {"celsius", 1'000'000'000'000},
                        {"xids", xids}};
  const GpuHealth health = GpuHealthFromJson(strange);
  EXPECT_EQ(health.slot, -1);
  EXPECT_EQ(health.gpu.size(), 200u);
  EXPECT_EQ(health.failing.size(), 200u);
  EXPECT_EQ(health.failing.substr(0, 4), "?[2J");
  ASSERT_EQ(health.warnings.size(), 8u);
  EXPECT_EQ(health.warnings[0].size(), 200u);
  EXPECT_EQ(health.celsius, 10'000);
  EXPECT_EQ(health.xids.size(), kMostXids);
  EXPECT_EQ(GpusFromJson(Json(1'000, strange)).size(), kMostGpus);
}

TEST(GpuHealthTest, FieldsOfAnotherTypeCountAsEmpty) {
  for (const Json& strange :
       {Json(), Json(7), Json::array({1}),
        Json{{"gpu", 7},
             {"failing", {1}},
             {"warnings", "a"},
             {"throttled", 3},
             {"celsius", "x"},
             {"xids", {1}},
             {"slot", -5}},
        Json{{"xids", {{"79x", 1}, {"-1", 1}, {"0", 1}, {"79", -1}, {"80", "y"}}}}}) {
    EXPECT_EQ(GpuHealthFromJson(strange), GpuHealth()) << strange;
  }
  EXPECT_TRUE(GpusFromJson({{"gpu", "x"}}).empty());
  EXPECT_TRUE(GpusFromJson({1, "x", nullptr}).empty());
}

}  // namespace
}  // namespace ringmaster::job
