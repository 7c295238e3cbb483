#include "operator/page/job_history.h"

#include <gtest/gtest.h>

namespace ringmaster::page {
namespace {

using inspection::Inspection;
using inspection::SidecarStatus;

constexpr uint64_t kView = (uint64_t{1} << 40) + 3;

Inspection Look(uint64_t step, job::WorkerTimes times) {
  Inspection look;
  look.job = {{"metadata", {{"name", "digits"}, {"namespace", "team"}, {"uid", "u"}}},
              {"spec", {{"worker", {{"replicas", 2}}}}},
              {"status", {{"state", "Running"}}}};
  look.pods = {{{"metadata", {{"name", "p0"}}}, {"status", {{"phase", "Running"}}}}};
  SidecarStatus status;
  status.coordinator = true;
  status.epoch = kView;
  status.step = step;
  status.ranks.resize(2);
  status.values = {{"loss", 0.5}};
  status.workers = {{.slot = 0, .incarnation = 1, .rank = 0, .step = step, .times = times},
                    {.slot = 1, .incarnation = 1, .rank = 1, .step = step, .times = times}};
  look.answers["p0"] = status;
  return look;
}

TEST(JobHistoryTest, ASampleTellsWhatHappenedSinceTheOneBefore) {
  JobHistory history({});
  history.Add(Look(10, {.seconds = 100, .blocked = 100}), 1000);
  history.Add(Look(14, {.seconds = 102, .blocked = 100.5}), 3000);
  EXPECT_EQ(history.newest(), (nlohmann::json{{"t", 3000},
                                              {"workers", 2},
                                              {"step", 14},
                                              {"stepSeconds", 0.5},
                                              {"samplesPerSecond", 0.0},
                                              {"values", {{"loss", 0.5}}},
                                              {"computes", {0.75, 0.75}},
                                              {"paces", {0.5, 0.5}},
                                              {"untold", nlohmann::json::array()}}));
}

TEST(JobHistoryTest, WithoutAnAnswerNothingIsKnownAndTheJobStaysToldOf) {
  JobHistory history({});
  Inspection look = Look(1, {});
  look.answers.clear();
  history.Add(look, 1000);
  for (const char* figure : {"workers", "step", "stepSeconds", "samplesPerSecond"})
    EXPECT_EQ(history.newest()[figure], nullptr) << figure << ": a 0 would be a claim";
  EXPECT_EQ(history.newest()["values"], nlohmann::json::object());
  EXPECT_EQ(history.Now()["view"], "");
  EXPECT_EQ(history.Now()["state"], "Running");
}

// Rank r in the pod "p<r>", of a view of `size` ranks.
Inspection LookAt(const std::vector<int>& ranks, std::size_t size, double blocked) {
  const SidecarStatus told = Look(10, {.seconds = 100, .blocked = blocked}).answers["p0"];
  Inspection look;
  for (const int rank : ranks) {
    SidecarStatus& status = look.answers["p" + std::to_string(rank)] = told;
    status.ranks.resize(size);
    status.workers = {told.workers[0]};
    status.workers[0].rank = rank;
  }
  return look;
}

TEST(JobHistoryTest, ARankThatDoesNotAnswerLeavesAGapAndNoOtherTakesItsPlace) {
  JobHistory history({});
  history.Add(LookAt({0, 2}, 4, 25), 1000);
  EXPECT_EQ(history.newest()["computes"], nlohmann::json({0.75, nullptr, 0.75, nullptr}));
  EXPECT_EQ(history.newest()["paces"].size(), 4u);
  EXPECT_EQ(history.newest()["untold"], nlohmann::json({1, 3}));
}

TEST(JobHistoryTest, ARankBeyondWhatIsKeptTakesNoPlaceOfAnother) {
  JobHistory history({.ranks = 2});
  history.Add(LookAt({1, 7}, 8, 25), 1000);
  EXPECT_EQ(history.newest()["computes"], nlohmann::json({nullptr, 0.75}));
  EXPECT_EQ(history.newest()["untold"], nlohmann::json::array({0}));
}

TEST(JobHistoryTest, TheChangesStayWhenTheJobsSidecarsHaveGone) {
  JobHistory history({});
  Inspection look = Look(1, {});
  look.answers["p0"].rebuilds = {{.epoch = kView, .reason = "PodLost"}};
  history.Add(look, 1000);
  look.answers.clear();
  history.Add(look, 2000);
  ASSERT_EQ(history.Now()["changes"].size(), 1u);
  EXPECT_EQ(history.Now()["changes"][0]["reason"], "PodLost");
}

TEST(JobHistoryTest, TheChangesComeFromTheNewestViewTheLatestFirst) {
  JobHistory history({});
  Inspection look = Look(1, {});
  SidecarStatus old = look.answers["p0"];
  old.epoch = kView - 1;
  old.rebuilds = {{.epoch = kView - 1, .reason = "Bootstrap"}};
  look.answers["p0"].rebuilds = {{.epoch = kView - 1, .reason = "Bootstrap"},
                                 {.epoch = kView,
                                  .reason = "WorkerLost",
                                  .at_unix_ms = 77,
                                  .world_size = 1,
                                  .left = {"p1"},
                                  .seconds = {{job::kDetect, 0.5}, {job::kConnect, 0.25}},
                                  .steps_lost = 1,
                                  .complete = true}};
  look.answers["p1"] = old;
  history.Add(look, 1000);
  const auto changes = history.Now()["changes"];
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0]["view"], "1.3");
  EXPECT_EQ(changes[0]["left"], nlohmann::json({"p1"}));
  EXPECT_EQ(changes[0]["total"], 0.75);
  EXPECT_EQ(changes[0]["stepsLost"], 1);
  EXPECT_EQ(changes[1]["reason"], "Bootstrap");
}

// After a restart from the checkpoint no sidecar is left that has seen what was lost.
TEST(JobHistoryTest, WhatWasLostInAllIsTheStatusOfTheJobsNotTheSumOfTheListedChanges) {
  JobHistory history({});
  Inspection look = Look(1, {});
  history.Add(look, 1000);
  EXPECT_EQ(history.Now()["stepsLost"], 0);
  look.job["status"]["stepsLost"] = 40;
  look.job["status"]["restartsFromCheckpoint"] = 1;
  history.Add(look, 2000);
  EXPECT_EQ(history.Now()["stepsLost"], 40);
  EXPECT_EQ(history.Now()["restartsFromCheckpoint"], 1);
}

TEST(JobHistoryTest, KeepsTheNewestSamplesAndTheFirstRanks) {
  JobHistory history({.samples = 2, .ranks = 1});
  for (int i = 1; i <= 3; ++i) history.Add(Look(1, {}), i);
  const auto samples = history.Samples();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0]["t"], 2);
  EXPECT_EQ(samples[1]["computes"].size(), 1u);
  EXPECT_EQ(history.Now()["ranks"].size(), 2u);
}

TEST(JobHistoryTest, WhatASidecarHasKeptComesBeforeTheFirstLook) {
  JobHistory history({});
  const auto past =
      nlohmann::json::parse(R"({"periodSeconds": 2, "values": ["loss", "lr"], "samples": [
      [1000, 0, 0, null, null], [3000, 2, 4, 0.5, null], [5000, 2, 4, 0.5, 0.1], ["junk"], 7]})");
  history.SetPast(past);
  history.Add(Look(10, {}), 7000);
  const auto samples = history.Samples();
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(history.past(), 3u);
  EXPECT_EQ(samples[0]["values"], nlohmann::json::object());
  EXPECT_EQ(samples[1], (nlohmann::json{{"t", 3000},
                                        {"workers", 2},
                                        {"step", 4},
                                        {"stepSeconds", 0.5},
                                        {"samplesPerSecond", 0.0},
                                        {"values", {{"loss", 0.5}}},
                                        {"computes", nlohmann::json::array()},
                                        {"paces", nlohmann::json::array()},
                                        {"untold", nlohmann::json::array()}}));
  EXPECT_EQ(samples[2]["stepSeconds"], nullptr) << "no step was completed";
  EXPECT_EQ(samples[3]["t"], 7000);
}

TEST(JobHistoryTest, OfAPastWithVeryManyValuesAndRanksOnlySoMuchIsShown) {
  JobHistory history({.listed = 1});
  nlohmann::json past = {{"values", nlohmann::json::array()}, {"samples", {{1000, 2, 4}}}};
  for (int i = 0; i < 10'000; ++i) {
    past["values"].push_back(std::to_string(i) + std::string(1000, 'x'));
    past["samples"][0].push_back(0.5);
  }
  history.SetPast(past);
  history.Add(Look(10, {}), 7000);
  const auto samples = history.Samples();
  EXPECT_EQ(samples[0]["values"].size(), 8u);
  EXPECT_EQ(samples[0]["values"].begin().key().size(), 64u);
  EXPECT_EQ(history.Now()["ranks"].size(), 1u);
}

TEST(JobHistoryTest, OfALongPastSomeIsShownFromItsBeginning) {
  JobHistory history({.past = 10});
  auto past = nlohmann::json::parse(R"({"values": [], "samples": []})");
  for (int i = 0; i < 105; ++i) past["samples"].push_back({i * 1000, 2, i});
  history.SetPast(past);
  EXPECT_LE(history.past(), 11u);
  EXPECT_GE(history.past(), 9u);
  EXPECT_EQ(history.Samples()[0]["t"], 0);
  EXPECT_EQ(history.Samples()[1]["stepSeconds"], 1.0);
}

TEST(JobHistoryTest, AHistoryThatIsNoneIsLeftOut) {
  JobHistory history({});
  for (const char* text :
       {"null", "[]", "{}", R"({"samples": 3})", R"({"samples": [[1, "x", 2]]})"}) {
    history.SetPast(nlohmann::json::parse(text));
    EXPECT_EQ(history.past(), 0u) << text;
  }
}

}  // namespace
}  // namespace ringmaster::page
