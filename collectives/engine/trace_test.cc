#include "collectives/engine/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace ringmaster::engine {
namespace {

using ::testing::UnorderedElementsAre;

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() { timeline_.KeepRecent(); }

  Response Ask(std::vector<std::string> names) {
    std::vector<Request> requests;
    for (const std::string& name : names) {
      requests.push_back({name, Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 2, 1, 1});
      pending_.Add(std::make_shared<Operation>(requests.back(), nullptr, nullptr));
    }
    return Response::Of(std::move(requests));
  }
  void Run(Response response, uint64_t number) {
    trace_.OperationBegins(response, pending_);
    response.number = number;
    trace_.OperationEnds(response);
  }
  nlohmann::json Events() {
    std::string text = "[{\"name\":\"none\"}";
    for (const std::string& piece : timeline_.Recent({.span = std::chrono::hours(1)}))
      text += piece;
    return nlohmann::json::parse(text + "]");
  }
  // The operation numbers of the events with the name `what`, by the row that they are in.
  std::multimap<std::string, int64_t> Numbers(const std::string& what) {
    std::map<int, std::string> rows;
    std::multimap<std::string, int64_t> numbers;
    const auto events = Events();
    for (const auto& event : events) {
      if (event["name"] == "thread_name") rows[event["tid"]] = event["args"]["name"];
    }
    for (const auto& event : events) {
      if (event["name"] == what) numbers.emplace(rows[event["tid"]], event["args"].at("number"));
    }
    return numbers;
  }

  timeline::Timeline timeline_;
  PendingTable pending_;
  Trace trace_{&timeline_};
};

TEST_F(TraceTest, TensorsOfOneNumberWereFused) {
  Run(Ask({"a", "b"}), 5);
  Run(Ask({"c"}), 6);
  using Row = std::pair<const std::string, int64_t>;
  EXPECT_THAT(Numbers("ALLREDUCE"),
              UnorderedElementsAre(Row{"a", 5}, Row{"b", 5}, Row{"c", 6}, Row{"operations", 5},
                                   Row{"operations", 6}));
  EXPECT_THAT(Numbers("NEGOTIATE_ALLREDUCE"),
              UnorderedElementsAre(Row{"a", 5}, Row{"b", 5}, Row{"c", 6}, Row{"waits", 5},
                                   Row{"waits", 6}));
}

// Where a phase lies in the picture, in seconds since the rebuild was noticed.
struct Phase {
  double begin = 0, end = 0;
};

TEST_F(TraceTest, ThePhasesOfARebuildFollowEachOtherAndTheStopIsAPartOfTheDecision) {
  using std::chrono::seconds;
  RebuildTimer timer;
  const auto noticed = Trace::Clock::now() - seconds(100);
  timer.Broke(noticed);
  timer.Stopped(noticed + seconds(1), noticed + seconds(3));
  timer.Begin(noticed + seconds(10));
  timer.Connected((uint64_t{1} << 40) + 7, "WorkerLost", seconds(20));
  timer.Redone(noticed + seconds(35), seconds(5), false);
  trace_.Rebuilt(timer.Resumed(noticed + seconds(42)));

  std::map<std::string, Phase> phases;
  double first = 0;
  for (const auto& event : Events()) {
    if (!event.contains("dur")) continue;
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    first = phases.empty() ? begin : std::min(first, begin);
    phases[event["name"]] = {begin, end};
  }
  const std::map<std::string, Phase> expected = {{"decide for view 1.7", {0, 10}},
                                                 {"stop for view 1.7", {1, 3}},
                                                 {"connect for view 1.7", {10, 30}},
                                                 {"redo for view 1.7", {30, 35}},
                                                 {"resume for view 1.7", {35, 42}}};
  ASSERT_EQ(phases.size(), expected.size());
  for (const auto& [name, phase] : expected) {
    ASSERT_TRUE(phases.contains(name)) << name;
    EXPECT_NEAR((phases[name].begin - first) / 1e6, phase.begin, 0.001) << name;
    EXPECT_NEAR((phases[name].end - first) / 1e6, phase.end, 0.001) << name;
  }
}

TEST_F(TraceTest, AStopThatEndsAfterTheNewViewHasComeIsDrawnUntilThen) {
  using std::chrono::seconds;
  RebuildTimer timer;
  const auto asked = Trace::Clock::now() - seconds(100);
  timer.Stopped(asked, asked + seconds(9));
  timer.Begin(asked + seconds(2));
  timer.Redone(asked + seconds(10), seconds(1), false);
  trace_.Rebuilt(timer.Resumed(asked + seconds(11)));
  int stops = 0;
  for (const auto& event : Events()) {
    if (!event["name"].get<std::string>().starts_with("stop")) continue;
    EXPECT_NEAR(event["dur"].get<double>() / 1e6, 2, 0.001);
    ++stops;
  }
  EXPECT_EQ(stops, 1);
}

}  // namespace
}  // namespace ringmaster::engine
