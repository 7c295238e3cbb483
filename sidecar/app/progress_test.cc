#include "sidecar/app/progress.h"

#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

using std::chrono::seconds;

TEST(ProgressTest, RemembersWhatWorkersThatHaveEndedReported) {
  Progress progress;
  progress.Remember({{.slot = 0, .step = 7, .values = {{"loss", 0.5}, {"samples", 4}}},
                     {.slot = -1, .step = 99}});
  EXPECT_EQ(progress.Step({}), 7u) << "a standby has no steps";
  EXPECT_EQ(progress.Step({{.slot = 0, .step = 9}}), 9u);
  const auto values = progress.Values({{.slot = 0, .values = {{"loss", 0.25}}}});
  EXPECT_EQ(values.at("loss"), 0.25);
  EXPECT_EQ(values.at("samples"), 4);
  progress.RestartFrom(3);
  EXPECT_EQ(progress.Step({}), 3u);
}

TEST(ProgressTest, SamplesPerSecondAreThoseOfTheLastSeconds) {
  Progress progress;
  SteadyTime now(seconds(50));
  const auto sample = [&](double total) {
    progress.Sample({{.slot = 0, .values = {{"samples", total}}}}, now);
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
