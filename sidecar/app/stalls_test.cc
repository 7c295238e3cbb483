#include "sidecar/app/stalls.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::app {
namespace {

// Two pods of two workers each.
membership::View TwoPods() {
  membership::View view;
  view.epoch = 7;
  for (uint32_t pod : {0, 1}) {
    view.pods.push_back({.uid = "u" + std::to_string(pod), .name = "p" + std::to_string(pod)});
    for (uint32_t slot : {0, 1}) view.ranks.push_back({.pod = pod, .slot = slot});
  }
  return view;
}

WorkerProcess Teller(Epoch epoch, std::vector<int> missing) {
  WorkerProcess worker(0, 1);
  worker.connection.Open(2, /*says_standby=*/false, /*keeps_timeline=*/false);
  const std::vector<job::Stall> stalls = {
      {.tensor = "x", .tensors = 3, .asked = 2, .missing = std::move(missing)}};
  worker.figures.TakePing({{"epoch", epoch}, {"stalls", job::ToJson(stalls)}});
  return worker;
}

TEST(StallsTest, MissingRanksHaveTheNamesThatPeopleKnow) {
  const membership::View view = TwoPods();
  const auto stalls = StallsIn(&view, {Teller(7, {1, 2})}, 2);
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].pods, (std::vector<std::string>{"p0/1", "p1/0"}));
  EXPECT_EQ(StallsIn(&view, {Teller(7, {2})}, 1)[0].pods, std::vector<std::string>{"p1"});
  EXPECT_EQ(CountTensors(stalls), 3);
}

TEST(StallsTest, WhatWasSaidOfAnotherViewOrByOneThatIsGoneCountsForNothing) {
  const membership::View view = TwoPods();
  EXPECT_TRUE(StallsIn(&view, {Teller(6, {1})}, 1).empty());
  EXPECT_TRUE(StallsIn(nullptr, {Teller(7, {1})}, 1).empty());
  WorkerProcess gone = Teller(7, {1});
  gone.connection.Close();
  EXPECT_TRUE(StallsIn(&view, {gone}, 1).empty());
}

TEST(StallsTest, AWorkerMaySayAnything) {
  const membership::View view = TwoPods();
  const auto stalls = StallsIn(&view, std::vector<WorkerProcess>(20, Teller(7, {-5, 99})), 1);
  EXPECT_EQ(stalls.size(), job::kMostStalls);
  EXPECT_EQ(stalls[0].pods, (std::vector<std::string>{"", ""}));
}

}  // namespace
}  // namespace ringmaster::app
