#include "sidecar/app/step_figures.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::app {
namespace {

using nlohmann::json;

TEST(StepFiguresTest, OfTheValuesNumbersCountAndOnlySoMany) {
  json values = {{"loss", 0.5}, {"name", "x"}};
  for (int i = 0; i < 100; ++i) values["v" + std::to_string(i)] = i;
  StepFigures figures;
  figures.TakePing({{"step", 4}, {"values", values}});
  EXPECT_EQ(figures.step(), 4u);
  EXPECT_EQ(figures.values().size(), 64u);
  EXPECT_EQ(figures.values().count("name"), 0u);
}

TEST(StepFiguresTest, AValueThatAPingDoesNotNameStays) {
  StepFigures figures;
  figures.TakePing({{"step", 4}, {"values", {{"loss", 0.5}, {"samples", 8}}}});
  figures.TakePing({{"step", 5}, {"values", {{"loss", 0.25}}}});
  EXPECT_EQ(figures.values(), (std::map<std::string, double>{{"loss", 0.25}, {"samples", 8}}));
}

TEST(StepFiguresTest, StallsCountInTheViewInWhichTheyWereReported) {
  StepFigures figures;
  figures.TakePing({{"epoch", 7}, {"stalls", job::ToJson({{.tensor = "x", .missing = {1}}})}});
  EXPECT_EQ(figures.StallsIn(7).size(), 1u);
  EXPECT_TRUE(figures.StallsIn(8).empty());
}

}  // namespace
}  // namespace ringmaster::app
