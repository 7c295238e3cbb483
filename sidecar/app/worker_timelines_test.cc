#include "sidecar/app/worker_timelines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sidecar/app/timeline_document.h"

namespace ringmaster::app {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::IsEmpty;

class WorkerTimelinesTest : public testing::Test {
 protected:
  WorkerTimelinesTest() {
    membership::View view;
    view.epoch = membership::MakeEpoch(1, 1);
    view.pods = {{"u0", "p0", 1, "", "", "", "", ""}};
    view.ranks = {{0, 1, 1, "", "", false}, {0, 0, 1, "", "", false}};
    view_.Set(std::make_shared<const membership::View>(view));
    for (int slot : {0, 1, 2}) Worker(slot, 10 + static_cast<uint64_t>(slot));
    options_.pod_name = "p0";
    options_.slots = 3;
    options_.boot_id = "b";
  }

  WorkerProcess& Worker(int slot, uint64_t connection) {
    WorkerProcess& worker = workers_.emplace_back(slot, 1);
    worker.connection.Open(connection, /*says_standby=*/false, /*keeps_timeline=*/true);
    worker.connection.Welcomed(/*as_joiner=*/false);
    return worker;
  }
  std::shared_ptr<TimelineGathering> Ask() {
    sent_.clear();
    return timelines_.Ask({.seconds = 5, .tensors = false}, workers_, view_, now_);
  }
  void Tell(size_t worker, const std::string& text, bool last = true) {
    timelines_.OnPiece(workers_[worker], {{"t", "timeline"},
                                          {"request", sent_.begin()->second["request"]},
                                          {"text", text},
                                          {"last", last}});
  }
  json Document(const TimelineGathering& gathering, const std::deque<job::Rebuild>& rebuilds = {}) {
    return json::parse(TimelineDocument({options_, gathering, rebuilds, true, 5000}));
  }
  static std::string Moment(const std::string& name) {
    return ",\n{\"ph\":\"i\",\"name\":\"" + name + "\",\"ts\":1,\"pid\":0,\"tid\":0}";
  }

  std::map<uint64_t, json> sent_;  // by connection
  WorkerTimelines timelines_{
      [this](uint64_t connection, const json& frame) { sent_[connection] = frame; }};
  PodView view_{"u0"};
  std::vector<WorkerProcess> workers_;
  SteadyTime now_{std::chrono::seconds(1)};
  SidecarOptions options_;
};

TEST_F(WorkerTimelinesTest, WhatTheWorkersTellIsOneDocument) {
  const auto gathering = Ask();
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_[10], json({{"t", "timeline"},
                             {"request", gathering->number()},
                             {"process", 1},
                             {"seconds", 5},
                             {"tensors", false},
                             {"bytes", TimelineAsk::kMostBytes / 3}}));
  EXPECT_EQ(sent_[11]["process"], 0) << "by its rank";
  Tell(0, Moment("a"), /*last=*/false);
  Tell(1, Moment("b"));
  Tell(2, "");
  EXPECT_FALSE(gathering->Done(now_)) << "worker 0 has more to tell";
  Tell(0, Moment("c"));
  EXPECT_TRUE(gathering->Done(now_));

  const json document = Document(*gathering);
  std::map<std::string, int> names;
  for (const json& event : document["traceEvents"]) {
    ++names[event["name"]];
    if (event["name"] == "process_name") ++names[event["args"]["name"]];
  }
  for (const char* name : {"a", "b", "c", "rank 1: p0/0", "rank 0: p0/1", "in no view: p0/2"})
    EXPECT_EQ(names[name], 1) << name;
  const json& about = document["ringmaster"];
  EXPECT_EQ(about["machine"], "b");
  EXPECT_EQ(about["coordinator"], true);
  EXPECT_EQ(about["workers"].size(), 3u);
  EXPECT_EQ(about["workers"][0],
            json({{"slot", 0}, {"incarnation", 1}, {"rank", 1}, {"process", 1}}));
  EXPECT_THAT(about["missing"], IsEmpty());
}

TEST_F(WorkerTimelinesTest, WhoDoesNotTellIsNamedAndSkipped) {
  workers_[1].connection.Open(11, false, /*keeps_timeline=*/false);
  workers_[1].connection.Welcomed(/*as_joiner=*/false);
  Worker(3, 0).connection.Close();
  WorkerProcess& standby = Worker(-1, 14);
  (void)standby;
  const auto gathering = Ask();
  EXPECT_EQ(sent_.size(), 2u);
  Tell(0, Moment("a"));
  EXPECT_FALSE(gathering->Done(now_ + WorkerTimelines::kPatience - milliseconds(1)));
  EXPECT_TRUE(gathering->Done(now_ + WorkerTimelines::kPatience));
  Tell(2, Moment("too late"));
  const json document = Document(*gathering);
  EXPECT_EQ(document["ringmaster"]["workers"].size(), 1u);
  std::vector<std::string> why;
  for (const json& missing : document["ringmaster"]["missing"])
    why.push_back(std::to_string(missing["slot"].get<int>()) + " " +
                  missing["why"].get<std::string>());
  EXPECT_THAT(why, testing::ElementsAre("1 it keeps no timeline", "2 it did not answer in time",
                                        "3 it is not connected"));
  EXPECT_EQ(document.dump().find("too late"), std::string::npos);
}

TEST_F(WorkerTimelinesTest, WhoTellsTooMuchOrClosesIsMissing) {
  const auto gathering = Ask();
  Tell(0, std::string(TimelineAsk::kMostBytes / 3, ' '), false);
  Tell(0, "x");
  timelines_.OnClosed(11);
  timelines_.OnClosed(99);
  timelines_.OnPiece(workers_[2], {{"request", 77}, {"text", "of another request"}});
  EXPECT_FALSE(gathering->Done(now_));
  Tell(2, "");
  EXPECT_TRUE(gathering->Done(now_));
  const json about = Document(*gathering)["ringmaster"];
  ASSERT_EQ(about["missing"].size(), 2u);
  EXPECT_EQ(about["missing"][0]["why"], "it told more than it was asked for");
  EXPECT_EQ(about["missing"][1]["why"], "its connection closed");
  EXPECT_EQ(gathering->workers()[0].text, "") << "it keeps memory that nobody needs";
}

// Nobody asks the workers faster by hanging up before they have answered.
TEST_F(WorkerTimelinesTest, OnlySoManyAreUnderWayUntilTheirTimeIsOverAndTheirAskersLetGo) {
  std::vector<std::shared_ptr<TimelineGathering>> askers;
  for (size_t i = 0; i < WorkerTimelines::kMostAtOnce; ++i) askers.push_back(Ask());
  EXPECT_EQ(Ask(), nullptr);
  askers.pop_back();
  EXPECT_EQ(Ask(), nullptr) << "its workers still work for it";
  now_ += WorkerTimelines::kPatience;
  EXPECT_NE(Ask(), nullptr);
  EXPECT_EQ(Ask(), nullptr) << "nobody waits for that one, and its workers work for it";
  timelines_.Forget(askers.front()->number());
  EXPECT_NE(Ask(), nullptr);
}

TEST_F(WorkerTimelinesTest, PhasesOfTheLastRebuildsAreInTheDocument) {
  workers_.clear();
  job::Rebuild old{.epoch = 6, .at_unix_ms = 1000, .seconds = {{"decide", 0.1}}};
  job::Rebuild rebuild{.epoch = 7, .reason = "WorkerLost", .at_unix_ms = 6000, .world_size = 3};
  rebuild.seconds = {{"detect", 0.5}, {"decide", 0.1}, {"stop", 0.05}, {"redo", 0.2}};
  const json document = Document(*Ask(), {old, rebuild});
  std::vector<std::string> phases;
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] == "X")
      phases.push_back(event["name"].get<std::string>() + " " +
                       std::to_string(event["ts"].get<int64_t>() / 1000) + " " +
                       std::to_string(event["dur"].get<int64_t>() / 1000));
  }
  EXPECT_THAT(phases, testing::ElementsAre("detect 5500 500", "decide 6000 100", "redo 6100 200"));
}

}  // namespace
}  // namespace ringmaster::app
