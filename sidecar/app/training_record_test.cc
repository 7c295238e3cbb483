#include "sidecar/app/training_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ringmaster::app {
namespace {

using nlohmann::json;
using std::chrono::seconds;

// Offers a sample each second, as the sidecar does.
void Train(TrainingRecord* record, int from, int to) {
  for (int second = from; second < to; ++second) {
    const SteadyTime now{seconds(second)};
    if (record->IsDue(now))
      record->Add(now, second * 1000LL, 4, static_cast<uint64_t>(second), {{"loss", 0.5}});
  }
}

TEST(TrainingRecordTest, TellsWhatWasAndWhatHadNotBeenReportedYet) {
  TrainingRecord record;
  EXPECT_EQ(record.since_unix_ms(), 0);
  record.Add(SteadyTime{seconds(1)}, 1000, 0, 0, {});
  record.Add(SteadyTime{seconds(2)}, 2000, 4, 7, {{"loss", 0.5}, {"nan", std::nan("")}});
  EXPECT_EQ(record.since_unix_ms(), 1000);
  EXPECT_EQ(record.ToJson(),
            json({{"periodSeconds", 1},
                  {"values", {"loss", "nan"}},
                  {"samples", {{1000, 0, 0, nullptr, nullptr}, {2000, 4, 7, 0.5, nullptr}}}}));
}

TEST(TrainingRecordTest, IsTakenOncePerPeriodHoweverOftenItIsOffered) {
  TrainingRecord record;
  Train(&record, 10, 11);
  EXPECT_FALSE(record.IsDue(SteadyTime{std::chrono::milliseconds(10'900)}));
  EXPECT_TRUE(record.IsDue(SteadyTime{seconds(11)}));
}

TEST(TrainingRecordTest, ARunOfAWeekKeepsItsBeginningAndStaysSmall) {
  TrainingRecord record;
  constexpr int kWeek = 7 * 24 * 3600;
  Train(&record, 1, kWeek);
  const json history = record.ToJson();
  const auto& samples = history["samples"];
  EXPECT_LE(samples.size(), TrainingRecord::kMostSamples);
  EXPECT_GE(samples.size(), TrainingRecord::kMostSamples / 2 - 1);
  EXPECT_EQ(samples.front()[0], 1000) << "the first look";
  const int64_t period = history["periodSeconds"].get<int64_t>();
  EXPECT_GE(samples.back()[0].get<int64_t>(), (kWeek - 2 * period) * 1000);
  EXPECT_LT(history.dump().size(), 300'000u);
  for (std::size_t i = 1; i < samples.size(); ++i)
    ASSERT_LE(samples[i][0].get<int64_t>() - samples[i - 1][0].get<int64_t>(), 2 * period * 1000);
}

TEST(TrainingRecordTest, OfManyValuesTheFirstAreKept) {
  TrainingRecord record;
  std::map<std::string, double> values;
  for (int i = 0; i < 20; ++i) values["v" + std::to_string(10 + i)] = i;
  record.Add(SteadyTime{}, 1, 1, 1, values);
  const json history = record.ToJson();
  EXPECT_EQ(history["values"].size(), TrainingRecord::kMostValues);
  EXPECT_EQ(history["samples"][0].size(), 3 + TrainingRecord::kMostValues);
}

// Another pod sends it, and that may be a hostile one.
TEST(TrainingRecordTest, WhatAnotherPodSaysOfItsPeriodAndItsNamesHarmsNobody) {
  TrainingRecord record;
  json page = {{"periodSeconds", 7 * 24 * 3600},
               {"values", {std::string(199, 'v') + "\u00e9"}},
               {"samples", json::array()}};
  for (int i = 0; i < 3000; ++i) page["samples"].push_back({1001 + i, 1, 1});
  EXPECT_EQ(record.Prepend(page, 1'000'000), 3000u);
  for (int i = 0; i < 40; ++i) record.Prepend(page, 1'000'000 - i);
  page["samples"] = json::array({json::array({7, 1, 1})});
  EXPECT_EQ(record.Prepend(page, 1'000'000), 1u);
  EXPECT_NO_THROW(record.ToJson().dump());
}

}  // namespace
}  // namespace ringmaster::app
