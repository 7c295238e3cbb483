#include "common/job/rebuild.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::job {
namespace {

using nlohmann::json;

Rebuild Lost() {
  return {
      .epoch = 7,
      .parent = 6,
      .reason = "WorkerLost",
      .planned = true,
      .at_unix_ms = 5,
      .world_size = 3,
      .members = {"a", "b"},
      .left = {"c"},
      .joined = {"b"},
      .seconds =
          {{"detect", 1}, {"decide", 2}, {"stop", 4}, {"connect", 8}, {"redo", 0}, {"resume", 0}},
      .steps_lost = 2,
      .complete = true};
}

TEST(Rebuild, ArrivesAsItWasWritten) { EXPECT_EQ(RebuildFromJson(ToJson(Lost())), Lost()); }

TEST(Rebuild, IsShownAsTheContractSays) {
  EXPECT_EQ(ToJson(Lost()), json::parse(R"({"epoch": 7, "parent": 6, "reason": "WorkerLost",
      "planned": true, "atUnixMs": 5, "worldSize": 3, "members": ["a", "b"], "left": ["c"],
      "joined": ["b"], "seconds": {"detect": 1.0, "decide": 2.0, "stop": 4.0, "connect": 8.0,
      "redo": 0.0, "resume": 0.0}, "stepsLost": 2, "complete": true})"));
}

TEST(Rebuild, ShowsEveryPhase) {
  const json shown = ToJson(Rebuild{.seconds = {{"connect", 0.5}}})["seconds"];
  EXPECT_EQ(shown.size(), 6u);
  EXPECT_EQ(shown["connect"], 0.5);
  EXPECT_EQ(shown["redo"], 0.0);
}

TEST(Rebuild, IsReadFromWhateverAPeerSends) {
  for (const char* text :
       {"null", "[1]", "7", R"({"reason": "PodLost"})", R"({"epoch": "7"})", R"({"epoch": -7})"}) {
    EXPECT_EQ(RebuildFromJson(json::parse(text)), std::nullopt) << text;
  }
  EXPECT_EQ(RebuildFromJson(json::parse(R"({"epoch": 7, "reason": 1, "members": "a", "left": [1],
      "seconds": [2], "stepsLost": "2", "worldSize": null})")),
            Rebuild{.epoch = 7});
  const auto odd = RebuildFromJson(json::parse(
      R"({"epoch": 7, "seconds": {"decide": 2, "redo": "long", "of_a_newer_version": 1}})"));
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->seconds, (PhaseSeconds{{"decide", 2}}));
}

TEST(Rebuild, TheStopRunsInsideTheDecision) {
  EXPECT_DOUBLE_EQ(TotalSeconds(Lost().seconds), 11);
  EXPECT_EQ(TotalSeconds({}), 0);
}

TEST(Rebuild, TheLastOneThroughAPhaseEndsIt) {
  PhaseSeconds longest = {{"decide", 2}, {"connect", 1}};
  KeepLongest({{"decide", 1}, {"connect", 3}, {"redo", 4}}, &longest);
  EXPECT_EQ(longest, (PhaseSeconds{{"decide", 2}, {"connect", 3}, {"redo", 4}}));
}

}  // namespace
}  // namespace ringmaster::job
