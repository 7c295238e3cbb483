#include "sidecar/app/progress.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::app {
namespace {

using nlohmann::json;
using std::chrono::seconds;

WorkerProcess At(int slot, uint64_t step, const json& values = json::object()) {
  WorkerProcess worker(slot, 1);
  worker.figures.TakePing({{"step", step}, {"values", values}});
  return worker;
}

TEST(ProgressTest, RemembersWhatWorkersThatHaveEndedReported) {
  Progress progress;
  progress.Remember({At(0, 7, {{"loss", 0.5}, {"samples", 4}}), At(-1, 99)});
  EXPECT_EQ(progress.Step({}), 7u) << "a standby has no steps";
  EXPECT_EQ(progress.Step({At(0, 9)}), 9u);
  const auto values = progress.Values({At(0, 0, {{"loss", 0.25}})});
  EXPECT_EQ(values.at("loss"), 0.25);
  EXPECT_EQ(values.at("samples"), 4);
  progress.RestartFrom(3);
  EXPECT_EQ(progress.Step({}), 3u);
}

TEST(ProgressTest, SamplesPerSecondAreThoseOfTheLastSeconds) {
  Progress progress;
  SteadyTime now(seconds(50));
  const auto sample = [&](double total) {
    progress.Sample({At(0, 0, {{"samples", total}})}, now);
    now += seconds(1);
  };
  sample(0);
  EXPECT_EQ(progress.SamplesPerSecond(), 0);
  sample(10);
  EXPECT_DOUBLE_EQ(progress.SamplesPerSecond(), 10);
  for (int i = 1; i <= 10; ++i) sample(10 + 30 * i);
  EXPECT_DOUBLE_EQ(progress.SamplesPerSecond(), 30);
  sample(5);
  EXPECT_EQ(progress.SamplesPerSecond(), 0) << "a worker began anew";
}

}  // namespace
}  // namespace ringmaster::app
