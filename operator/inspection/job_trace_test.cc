#include "operator/inspection/job_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::inspection {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A pod with one worker, as its sidecar reports it.
class Pod {
 public:
  Pod(const std::string& name, int rank, const std::string& machine) {
    document_ = {{"ringmaster",
                  {{"pod", {{"name", name}}},
                   {"machine", machine},
                   {"coordinator", rank == 0},
                   {"workers", {{{"slot", 0}, {"rank", rank}, {"process", rank}}}},
                   {"missing", Json::array()}}},
                 {"traceEvents", Json::array()}};
    process_ = rank;
    Named("process_name", 1'000'000, 0, "changes, as the sidecar of " + name + " saw them");
    Event(1'000'000, 0, "detect", 4, 1, {});
    Event(1'000'000, 0, "decide", 5, 10, {{"reason", "PodLost"}});
    Named("thread_name", rank, 2, "waits");
    Named("thread_name", rank, 3, "operations");
    Named("thread_name", rank, 10, "grad");
  }
  // Times are by the pod's clock.
  Pod& Operation(int number, double asked, double begin, double end, const char* name = "ALLREDUCE",
                 int set = 0) {
    Event(process_, 2, std::string("NEGOTIATE_") + name, asked, begin - asked,
          {{"number", number}, {"process_set", set}});
    Event(process_, 3, name, begin, end - begin,
          {{"number", number}, {"bytes", 4}, {"process_set", set}});
    return *this;
  }
  Pod& Event(int process, int row, const std::string& name, double at, double took, Json args) {
    document_["traceEvents"].push_back({{"ph", took > 0 ? "X" : "i"},
                                        {"name", name},
                                        {"pid", process},
                                        {"tid", row},
                                        {"ts", at},
                                        {"dur", took},
                                        {"args", std::move(args)}});
    return *this;
  }
  void Named(const char* what, int process, int row, const std::string& name) {
    document_["traceEvents"].push_back(
        {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", row}, {"args", {{"name", name}}}});
  }
  PodTrace Read() const {
    auto trace = ParsePodTrace(document_);
    EXPECT_TRUE(trace);
    return trace.value_or(PodTrace{});
  }
  Json document_;
  int process_ = 0;
};

const TraceEvent* Find(const PodTrace& pod, const std::string& name) {
  for (const TraceEvent& event : pod.events)
    if (event.name == name) return &event;
  return nullptr;
}

TEST(JobTraceTest, ClocksOfTwoMachinesAreComparedByTheOperationsOfBoth) {
  // The second clock is 1000 us ahead. Each rank begins and ends an operation at a different time.
  Pod first("p0", 0, "a"), second("p1", 1, "b"), third("p2", 2, "b");
  first.Operation(1, 100, 200, 240).Operation(2, 300, 400, 430);
  second.Operation(1, 1100, 1210, 1250).Operation(2, 1300, 1405, 1432);
  third.Operation(1, 1100, 1200, 1240);
  const JobTrace trace = LayTogether({second.Read(), first.Read(), third.Read()});
  ASSERT_EQ(trace.clocks.size(), 1u) << "two machines";
  EXPECT_EQ(trace.clocks[0].pod, "p1");
  EXPECT_TRUE(trace.clocks[0].compared);
  EXPECT_NEAR(trace.clocks[0].ahead_us, 1000, 20);
  EXPECT_LE(trace.clocks[0].uncertain_us, 30);
  EXPECT_GE(trace.clocks[0].uncertain_us, std::abs(trace.clocks[0].ahead_us - 1000));
  EXPECT_EQ(trace.pods[0].pod, "p0") << "the coordinator's clock is that of all";
  EXPECT_EQ(Find(trace.pods[0], "ALLREDUCE")->at_us, 200);
  EXPECT_NEAR(Find(trace.pods[1], "ALLREDUCE")->at_us, 210, 20);
  EXPECT_NEAR(Find(trace.pods[2], "ALLREDUCE")->at_us, 200, 20);
}

TEST(JobTraceTest, WhatBindsNoTwoRanksTellsNothingOfTheirClocks) {
  Pod first("p0", 0, "a"), second("p1", 1, "b");
  first.Operation(1, 1, 2, 3, "BROADCAST")
      .Operation(2, 1, 2, 3, "ALLREDUCE", 7)
      .Operation(3, 1, 2, 3);
  second.Operation(1, 1, 2, 3, "BROADCAST")
      .Operation(2, 1, 2, 3, "ALLREDUCE", 7)
      .Operation(4, 1, 2, 3);
  const JobTrace trace = LayTogether({first.Read(), second.Read()});
  ASSERT_EQ(trace.clocks.size(), 1u);
  EXPECT_FALSE(trace.clocks[0].compared);
  EXPECT_EQ(Find(trace.pods[1], "ALLREDUCE")->at_us, 2) << "taken as it is";
  EXPECT_THAT(TimelineNotes(trace), HasSubstr("clock of p1"));
}

// The fourth rank reports nothing, and may be the late one; a joiner has no rank yet.
TEST(JobTraceTest, WhereNotAllRanksTellNobodyIsCalledLate) {
  for (const int ranks : {2, 3}) {
    Pod pods[] = {{"p0", 0, "m"}, {"p1", 1, "m"}, {"joins", -1, "m"}};
    pods[0].Named("thread_name", 0, 4, "views");
    pods[0].Event(0, 4, "view", 1, 0, {{"size", ranks}});
    pods[0].Operation(0, 0, 50'000, 51'000);
    pods[1].Operation(0, 40'000, 50'000, 51'000);
    const JobTrace trace = LayTogether({pods[0].Read(), pods[1].Read(), pods[2].Read()});
    EXPECT_EQ(trace.late.size(), ranks == 2 ? 1u : 0u) << ranks;
  }
}

TEST(JobTraceTest, TheRankThatTheOthersWaitedForIsNamed) {
  Pod pods[] = {{"p0", 0, "m"}, {"p1", 1, "m"}, {"p2", 2, "m"}};
  for (int i = 0; i < 10; ++i) {
    const double at = i * 100'000;
    pods[0].Operation(i, at, at + 50'000, at + 51'000);
    pods[1].Operation(i, at + 10'000, at + 50'000, at + 51'000);
    // In two of ten operations it is as early as rank 1, up to noise.
    pods[2].Operation(i, at + (i < 2 ? 10'050 : 49'900), at + 50'000, at + 51'000);
  }
  const JobTrace trace = LayTogether({pods[0].Read(), pods[1].Read(), pods[2].Read()});
  EXPECT_EQ(trace.operations, 10);
  ASSERT_EQ(trace.late.size(), 1u);
  EXPECT_EQ(trace.late[0].rank, 2);
  EXPECT_EQ(trace.late[0].worker, "p2");
  EXPECT_EQ(trace.late[0].last, 8);
  EXPECT_NEAR(trace.late[0].waited_us, 8 * 39'900, 1);
  EXPECT_EQ(TimelineNotes(trace),
            "Rank 2 (p2) was the last in 8 of 10 operations: the others waited 0.319 s for it.\n");
}

TEST(JobTraceTest, AnOperationThatARankDoesNotTellOfIsNotEvaluated) {
  Pod first("p0", 0, "m"), second("p1", 1, "m");
  first.Operation(1, 0, 50'000, 51'000);
  EXPECT_EQ(LayTogether({first.Read(), second.Read()}).operations, 0);
}

TEST(JobTraceTest, TheFileHasAProcessForEachRankAndTheCoordinatorsChanges) {
  Pod first("p0", 0, "m"), second("p1", 1, "m");
  first.Operation(1, 100, 200, 240).Event(0, 10, "ALLREDUCE", 200, 40, {{"bytes", 4}});
  second.Operation(1, 100, 200, 240).Event(1, 10, "ba\xff", 7, 0, {});
  const Json file = Json::parse(ChromeText(LayTogether({second.Read(), first.Read()})));
  std::vector<std::string> processes;
  int detections = 0, decisions = 0, moments = 0;
  for (const Json& event : file["traceEvents"]) {
    if (event["name"] == "process_name")
      processes.push_back(std::to_string(event["pid"].get<int>()) + " " +
                          event["args"]["name"].get<std::string>());
    if (event["name"] == "decide") {
      ++decisions;
      EXPECT_EQ(event["args"]["note"], "PodLost");
    }
    detections += event["name"] == "detect" ? 1 : 0;
    moments += event["ph"] == "i" ? 1 : 0;
    if (event["ph"] == "X") {
      EXPECT_GT(event["dur"], 0);
    }
  }
  EXPECT_THAT(processes, ElementsAre("0 changes, as the sidecar of p0 saw them", "1 rank 0: p0",
                                     "2 rank 1: p1"));
  EXPECT_EQ(decisions, 1) << "of the coordinator alone";
  EXPECT_EQ(detections, 2) << "which only the pod knows whose worker died";
  EXPECT_EQ(moments, 1);
}

TEST(JobTraceTest, EventsOfAProcessThatManyWorkersClaimAreInTheFileOnce) {
  Pod pod("p0", 0, "m");
  pod.Event(0, 10, "ALLREDUCE", 200, 40, {{"bytes", 4}});
  for (int slot = 1; slot < 100; ++slot)
    pod.document_["ringmaster"]["workers"].push_back({{"slot", slot}, {"rank", slot}});
  const Json file = Json::parse(ChromeText(LayTogether({pod.Read()})));
  int processes = 0, operations = 0;
  for (const Json& event : file["traceEvents"]) {
    processes += event["name"] == "process_name" ? 1 : 0;
    operations += event["name"] == "ALLREDUCE" ? 1 : 0;
  }
  EXPECT_EQ(processes, 101) << "of each worker, and the sidecar's own";
  EXPECT_EQ(operations, 1) << "else a small answer makes a file of any length";
}

TEST(JobTraceTest, ANumberThatDoesNotFitIsAbsent) {
  const auto trace = ParsePodTrace(Json::parse(R"({
      "ringmaster": {"workers": [{"rank": 4294967296, "slot": -4294967295, "process": 1e300}]},
      "traceEvents": [{"ph": "i", "pid": 4294967297,
                       "args": {"bytes": 18446744073709551615, "number": 7}}]})"));
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->workers.size(), 1u);
  EXPECT_EQ(trace->workers[0].rank, -1);
  EXPECT_EQ(trace->workers[0].slot, 0);
  EXPECT_EQ(trace->workers[0].process, 0);
  ASSERT_EQ(trace->events.size(), 1u);
  EXPECT_EQ(trace->events[0].process, 0);
  EXPECT_FALSE(trace->events[0].Number("bytes"));
  EXPECT_EQ(trace->events[0].Number("number"), 7);
}

TEST(JobTraceTest, WhatIsNoTimelineIsNoneAndNonsenseInOneIsLeftOut) {
  EXPECT_FALSE(ParsePodTrace(nullptr));
  EXPECT_FALSE(ParsePodTrace(Json::parse("[]")));
  const auto trace = ParsePodTrace(Json::parse(R"({
      "ringmaster": {"pod": 7, "workers": "x", "missing": [{"slot": "a"}]},
      "traceEvents": [1, {"ph": "X", "ts": -5, "dur": 1e300, "args": 3}, {"ph": "Q"},
                      {"ph": "M", "name": "thread_name", "args": []}]})"));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->pod, "");
  EXPECT_TRUE(trace->workers.empty());
  ASSERT_EQ(trace->events.size(), 1u);
  EXPECT_EQ(trace->events[0].at_us, 0);
  EXPECT_EQ(trace->events[0].took_us, 0);
  EXPECT_EQ(ChromeText(LayTogether({})), "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n\n]}\n");
}

}  // namespace
}  // namespace ringmaster::inspection
