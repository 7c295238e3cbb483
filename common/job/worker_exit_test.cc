#include "common/job/worker_exit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::job {
namespace {

using nlohmann::json;

WorkerExit Killed() {
  return {.slot = 1,
          .exit_code = 137,
          .restarting = true,
          .by_us = true,
          .incarnation = 3,
          .signal = 9,
          .at_us = 5000};
}

TEST(WorkerExit, ArrivesFromAFrameAsItWasWritten) {
  EXPECT_EQ(WorkerExitFromJson(FrameJson(Killed())), Killed());
  const WorkerExit standby = {.exit_code = 1, .standby = true};
  EXPECT_EQ(WorkerExitFromJson(FrameJson(standby)), standby);
  EXPECT_FALSE(FrameJson(standby).contains("atUs")) << "a time that nobody took is not said";
}

TEST(WorkerExit, IsShownInStatusAsTheContractSays) {
  const json shown =
      json::parse(R"({"slot": 1, "incarnation": 3, "exitCode": 137, "signal": 9, "byUs": true})");
  EXPECT_EQ(StatusJson(Killed()), shown);
  const WorkerExit read = WorkerExitFromJson(shown);
  EXPECT_EQ(StatusJson(read), shown);
  EXPECT_FALSE(read.restarting || read.standby);
}

TEST(WorkerExit, IsReadFromWhateverAPeerSends) {
  EXPECT_EQ(WorkerExitFromJson(json()), WorkerExit());
  EXPECT_EQ(WorkerExitFromJson(json::array({1})), WorkerExit());
  const json odd = {{"slot", "one"},   {"incarnation", -3}, {"exitCode", json::array()},
                    {"signal", false}, {"standby", 1},      {"atUs", -5}};
  EXPECT_EQ(WorkerExitFromJson(odd), WorkerExit());
  EXPECT_EQ(WorkerExitFromJson({{"standby", true}, {"slot", 2}}).slot, -1)
      << "a standby has no slot, whatever it says";
}

}  // namespace
}  // namespace ringmaster::job
