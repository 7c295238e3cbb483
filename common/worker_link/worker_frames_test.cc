#include "common/worker_link/worker_frames.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace ringmaster::worker_link {
namespace {

using nlohmann::json;

constexpr uint64_t kEpoch = uint64_t{1} << 40 | 7;  // 1099511627783

WorkerHello Library() {
  return {.library = "1.2.3",
          .slot = 1,
          .incarnation = 3,
          .pid = 42,
          .tcp = "10.0.0.1:5",
          .shm = "/m",
          .epoch = kEpoch,
          .given = kEpoch};
}

// Pods of two versions may be in one job, so the bytes of a frame must not change.
TEST(WorkerFramesTest, TheBytesOfAHelloStayAsTheyAre) {
  EXPECT_EQ(
      ToFrame(Library()).dump(),
      R"({"epoch":1099511627783,"given":1099511627783,"incarnation":3,"library":"1.2.3","pid":42,)"
      R"("role":"worker","shm":"/m","slot":1,"standby":false,"t":"hello","tcp":"10.0.0.1:5",)"
      R"("version":1})");
  const WorkerHello stand_in{
      .slot = 1, .incarnation = 3, .tcp = "10.0.0.1:5", .epoch = kEpoch, .given = kEpoch};
  EXPECT_EQ(ToFrame(stand_in).dump(),
            R"({"epoch":1099511627783,"given":1099511627783,"incarnation":3,"pid":0,)"
            R"("role":"worker","shm":"","slot":1,"standby":false,"t":"hello","tcp":"10.0.0.1:5",)"
            R"("version":1})");
}

TEST(WorkerFramesTest, TheBytesOfWhatAWorkerSaysStayAsTheyAre) {
  const std::pair<json, const char*> frames[] = {
      {EnterFrame(true), R"({"t":"enter"})"},
      {EnterFrame(false), R"({"state":false,"t":"enter"})"},
      {StoppedFrame(kEpoch, kEpoch),
       R"({"epoch":1099511627783,"holds":1099511627783,"t":"stopped"})"},
      {StoppedFrame(kEpoch, std::nullopt), R"({"epoch":1099511627783,"t":"stopped"})"},
      {InstalledFrame(kEpoch, 0.25),
       R"({"epoch":1099511627783,"seconds":{"connect":0.25},"t":"installed"})"},
      {InstalledFrame(kEpoch, std::nullopt),
       R"({"epoch":1099511627783,"seconds":{"connect":0},"t":"installed"})"},
      {BoundaryFrame(kEpoch, 9), R"({"epoch":1099511627783,"step":9,"t":"boundary"})"},
      {ToFrame(ViewTrouble{.epoch = kEpoch, .rank = 2, .reason = "reset"}),
       R"({"epoch":1099511627783,"rank":2,"reason":"reset","t":"suspect"})"},
      {ToFrame(ViewTrouble{.epoch = kEpoch, .reason = "exited", .broken = true}),
       R"({"epoch":1099511627783,"rank":-1,"reason":"exited","t":"broken"})"},
      {RebuiltFrame(kEpoch, {{"stop", 0.5}, {"connect", 0.25}, {"redo", 0}, {"resume", 1}}, 9, 8),
       R"({"epoch":1099511627783,"resumed":8,"seconds":{"connect":0.25,"redo":0.0,"resume":1.0,)"
       R"("stop":0.5},"step":9,"t":"rebuilt"})"},
      {RestingFrame(kEpoch), R"({"epoch":1099511627783,"t":"resting"})"},
      {WokenFrame(), R"({"t":"woken"})"},
      {FinishedFrame(kEpoch), R"({"epoch":1099511627783,"t":"finished"})"},
      {TimelinePieceFrame(4, "x", true), R"({"last":true,"request":4,"t":"timeline","text":"x"})"},
      {ByeFrame("shutdown"), R"({"reason":"shutdown","t":"bye"})"},
      {PingFrame(1, PingFields({.epoch = kEpoch, .ran = kEpoch})),
       R"({"busy":false,"epoch":1099511627783,"n":1,"ran":1099511627783,"step":0,"t":"ping",)"
       R"("times":{},"values":{}})"},
  };
  for (const auto& [frame, bytes] : frames) EXPECT_EQ(frame.dump(), bytes);
}

TEST(WorkerFramesTest, TheBytesOfWhatASidecarSaysStayAsTheyAre) {
  Welcome welcome{.job = "j",
                  .pod = "p",
                  .incarnation = 3,
                  .state = "member",
                  .epoch = kEpoch,
                  .place = {.size = 2},
                  .rests = true};
  EXPECT_EQ(ToFrame(welcome).dump(),
            R"({"epoch":1099511627783,"fenceMs":10000,"incarnation":3,"job":"j","localRank":0,)"
            R"("localSize":1,"pingMs":250,"pod":"p","rank":0,"rests":true,"size":2,"slot":0,)"
            R"("state":"member","t":"welcome","version":1})");
  welcome.ring_key = "k";
  EXPECT_EQ(ToFrame(welcome)["ringKey"], "k");
  EXPECT_EQ(PromotedFrame(1, 3, {.rank = 4, .size = 5, .local_rank = 1, .local_size = 2}).dump(),
            R"({"incarnation":3,"localRank":1,"localSize":2,"rank":4,"size":5,"slot":1,)"
            R"("t":"promoted"})");
  EXPECT_EQ(StopFrame(kEpoch).dump(), R"({"epoch":1099511627783,"t":"stop"})");
  EXPECT_EQ(ArmFrame(kEpoch).dump(), R"({"epoch":1099511627783,"t":"arm"})");
  EXPECT_EQ(LeftFrame(kEpoch, "drained").dump(),
            R"({"epoch":1099511627783,"reason":"drained","t":"left"})");
  EXPECT_EQ(ErrorFrame("over").dump(), R"({"message":"over","t":"error"})");
  EXPECT_EQ(PongFrame(7).dump(), R"({"n":7,"t":"pong"})");
}

TEST(WorkerFramesTest, WhatAPingHasToTellOnlySometimesIsAbsentElse) {
  const json frame = PingFields({.holds = kEpoch,
                                 .times = job::WorkerTimes{},
                                 .values = {{"loss", 0.5}},
                                 .stalls = {{.tensor = "x"}}});
  EXPECT_EQ(frame["holds"], kEpoch);
  EXPECT_EQ(frame["times"], job::ToJson(job::WorkerTimes{}));
  EXPECT_EQ(frame["values"]["loss"], 0.5);
  EXPECT_EQ(frame["stalls"].size(), 1u);
}

TEST(WorkerFramesTest, WhatIsSaidIsRead) {
  WorkerHello said = Library();
  said.keeps_timeline = true;
  const WorkerHello hello = ReadWorkerHello(ToFrame(said));
  EXPECT_EQ(ToFrame(hello), ToFrame(said));
  const Welcome welcome = {.job = "j",
                           .pod = "p",
                           .slot = 2,
                           .incarnation = 3,
                           .state = "joining",
                           .epoch = kEpoch,
                           .place = {1, 4, 2, 3},
                           .rests = true,
                           .ping_ms = 20,
                           .fence_ms = 400,
                           .ring_key = "k"};
  EXPECT_EQ(ToFrame(ReadWelcome(ToFrame(welcome))), ToFrame(welcome));
  const ViewTrouble trouble = ReadViewTrouble(
      ToFrame(ViewTrouble{.epoch = kEpoch, .rank = 1, .reason = "r", .broken = true}));
  EXPECT_EQ(trouble.rank, 1);
  EXPECT_EQ(trouble.reason, "r");
  EXPECT_TRUE(trouble.broken);
  const job::Rebuild rebuild = ReadRebuilt(RebuiltFrame(kEpoch, {{"stop", 0.5}}, 9, 8));
  EXPECT_EQ(rebuild.epoch, kEpoch);
  EXPECT_EQ(rebuild.seconds.at("stop"), 0.5);
  EXPECT_EQ(rebuild.steps_resumed, 8u);
  EXPECT_TRUE(TakesState(EnterFrame(true)));
  EXPECT_FALSE(TakesState(EnterFrame(false)));
}

TEST(WorkerFramesTest, AFrameOfAnotherShapeIsAnEmptyOne) {
  const json odd = {{"slot", "x"}, {"standby", 1}, {"tcp", 7}, {"pingMs", "soon"}};
  EXPECT_EQ(ReadWorkerHello(odd).slot, -1);
  EXPECT_EQ(ReadWorkerHello(odd).tcp, "");
  EXPECT_FALSE(ReadWorkerHello(odd).library);
  EXPECT_EQ(ReadWelcome(odd).ping_ms, 250);
  EXPECT_EQ(ReadViewTrouble(json::array()).rank, -1);
}

}  // namespace
}  // namespace ringmaster::worker_link
