#include "operator/page/timeline_lanes.h"

#include <gtest/gtest.h>

namespace ringmaster::page {
namespace {

using nlohmann::json;

constexpr double kNow = 1.7e15;  // us since 1970

// A pod with one worker that has done an operation a second, each of which took 100 ms after a wait
// of 200 ms; the last ended `now`.
inspection::PodTrace Pod(int rank, int operations = 5) {
  inspection::PodTrace pod;
  pod.pod = "p" + std::to_string(rank);
  pod.coordinator = rank == 0;
  pod.machine = "m";
  pod.workers = {{rank, 0, rank}};
  pod.rows = {{{rank, 0}, "steps"},
              {{rank, 2}, "waits"},
              {{rank, 3}, "operations"},
              {{rank, 4}, "views"},
              {{rank, 10}, "grad"}};
  for (int i = 0; i < operations; ++i) {
    const double end = kNow - 1e6 * i;
    pod.events.push_back({"NEGOTIATE_ALLREDUCE", rank, 2, end - 300e3, 200e3, {{"number", i}}, ""});
    pod.events.push_back({"ALLREDUCE",
                          rank,
                          3,
                          end - 100e3,
                          100e3,
                          {{"number", i}, {"tensors", 3}, {"bytes", 12}},
                          ""});
    pod.events.push_back({"ALLREDUCE", rank, 10, end - 100e3, 100e3, {}, ""});
    pod.events.push_back({"step", rank, 0, end - 900e3, 900e3, {}, ""});
  }
  return pod;
}

TEST(TimelineLanesTest, EachRankHasALaneOfTheLastSeconds) {
  inspection::PodTrace first = Pod(0), second = Pod(1);
  first.names = {{0, "rank 0"}, {9, "changes"}};
  first.events.push_back({"decide", 9, 0, kNow - 2e6, 5e3, {}, "PodLost"});
  first.events.push_back({"decide", 9, 0, kNow - 60e6, 5e3, {}, "long ago"});
  first.events.push_back({"redo for view 1.2", 0, 4, kNow - 1.9e6, 2e3, {}, ""});
  first.events.push_back({"view 1.2 (PodLost)", 0, 4, kNow - 1.9e6, 0, {}, ""});
  const json lanes =
      LanesOf(inspection::LayTogether({second, first}), {"p2: it is away"}, {.seconds = 3});
  EXPECT_EQ(lanes["ms"], 3000);
  ASSERT_EQ(lanes["lanes"].size(), 2u);
  const json& lane = lanes["lanes"][0];
  EXPECT_EQ(lane["rank"], 0);
  EXPECT_EQ(lane["worker"], "p0");
  ASSERT_EQ(lane["runs"].size(), 4u) << "the oldest of them ends as it begins";
  EXPECT_EQ(lane["runs"][3], (json{2900.0, 100.0, "ALLREDUCE, 3 tensors, 12 bytes"}));
  EXPECT_EQ(lane["waits"].size(), 3u);
  EXPECT_EQ(lane["waits"][2], (json{2700.0, 200.0, "NEGOTIATE_ALLREDUCE"}));
  EXPECT_EQ(lane["changes"], (json{{1100.0, 2.0, "redo for view 1.2"}}));
  EXPECT_EQ(lane["steps"].size(), 4u);
  EXPECT_EQ(lanes["changes"], (json{{1000.0, 5.0, "decide", "PodLost"}}));
  EXPECT_EQ(lanes["missing"], json{"p2: it is away"});
  EXPECT_EQ(lanes["hidden"], 0);
}

TEST(TimelineLanesTest, WhereNothingComparesTheClocksOfMachinesEachEndsWithItsOwn) {
  inspection::PodTrace first = Pod(0), second = Pod(1);
  second.machine = "another";
  for (inspection::TraceEvent& event : second.events) {
    event.at_us += 3600e6;
    event.numbers = {};  // so that no operation is known to be the same
  }
  const json lanes = LanesOf(inspection::LayTogether({first, second}), {}, {.seconds = 3});
  EXPECT_EQ(lanes["ms"], 3000);
  ASSERT_EQ(lanes["lanes"].size(), 2u);
  for (const json& lane : lanes["lanes"]) {
    ASSERT_EQ(lane["runs"].size(), 4u) << lane["worker"];
    EXPECT_EQ(lane["runs"][3][0], 2900.0) << lane["worker"];
  }
  EXPECT_EQ(lanes.value("uncompared", json()), json({"p1"}));
}

TEST(TimelineLanesTest, TheClockOfAMachineThatHasToldNothingIsNoMatter) {
  inspection::PodTrace first = Pod(0), second = Pod(1, 0);
  second.machine = "another";
  const json lanes = LanesOf(inspection::LayTogether({first, second}), {}, {.seconds = 3});
  EXPECT_EQ(lanes.value("uncompared", json()), json::array());
  EXPECT_EQ(lanes["lanes"][0]["runs"].size(), 4u);
}

TEST(TimelineLanesTest, ClocksThatOperationsCompareAreOneTime) {
  inspection::PodTrace first = Pod(0), second = Pod(1);
  second.machine = "another";
  for (inspection::TraceEvent& event : second.events) event.at_us += 3600e6;
  const json lanes = LanesOf(inspection::LayTogether({first, second}), {}, {.seconds = 3});
  EXPECT_EQ(lanes.value("uncompared", json()), json::array());
  EXPECT_EQ(lanes["lanes"][0]["runs"].size(), lanes["lanes"][1]["runs"].size());
}

TEST(TimelineLanesTest, OfVeryManyRanksAndOperationsOnlySomeAreShown) {
  std::vector<inspection::PodTrace> pods;
  for (int rank = 0; rank < 8; ++rank) pods.push_back(Pod(rank, 50));
  const json lanes =
      LanesOf(inspection::LayTogether(pods), {}, {.seconds = 60, .lanes = 5, .bars = 100});
  EXPECT_EQ(lanes["lanes"].size(), 5u);
  EXPECT_EQ(lanes["hidden"], 3);
  EXPECT_EQ(lanes["lanes"][4]["rank"], 4);
  EXPECT_EQ(lanes["lanes"][4]["runs"].size(), 10u);
  EXPECT_EQ(lanes["lanes"][4]["runs"][9][0].get<double>() + 100, lanes["ms"].get<double>())
      << "the newest";
}

TEST(TimelineLanesTest, WithoutRanksThereAreNoLanes) {
  const json lanes = LanesOf(inspection::LayTogether({}), {"p0: it is away"}, {});
  EXPECT_TRUE(lanes["lanes"].empty());
  EXPECT_EQ(lanes["missing"].size(), 1u);
}

}  // namespace
}  // namespace ringmaster::page
