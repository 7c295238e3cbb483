#include "operator/cli/drain_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/labels.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

Json JobWith(const char* type, const char* message) {
  return {
      {"status", {{"conditions", {{{"type", type}, {"status", "True"}, {"message", message}}}}}}};
}

Json PodWith(const char* annotation) {
  return {{"metadata", {{"annotations", {{annotation, "x"}}}}}};
}

TEST(DrainTextTest, APodThatIsMarkedLeaves) {
  const Json marked = PodWith(api::kDrainSinceAnnotation);
  EXPECT_EQ(DrainText("p-1", marked, nullptr), "p-1 leaves after its step");
  EXPECT_EQ(DrainText("p-1", marked, JobWith("NoStepEnds", "no step has ended since noon")),
            "p-1 leaves after its step; no step has ended since noon");
}

TEST(DrainTextTest, APodThatHasEndedOrIsGoneTakesNoStepAnyMore) {
  EXPECT_EQ(DrainText("p-1", nullptr, nullptr), "p-1 is not there any more");
  Json dead = PodWith(api::kDrainAnnotation);
  dead["status"]["phase"] = "Failed";
  EXPECT_EQ(DrainText("p-1", dead, nullptr), "p-1 is not there any more");
  dead["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:05Z";
  EXPECT_EQ(DrainText("p-1", dead, nullptr), "p-1 is not there any more");
  Json left = PodWith(api::kDrainSinceAnnotation);
  left["status"]["phase"] = "Succeeded";
  EXPECT_EQ(DrainText("p-1", left, nullptr), "p-1 leaves after its step") << "as it was asked to";
}

TEST(DrainTextTest, APodThatIsHeldStaysAndItIsSaidWhy) {
  const Json asked = PodWith(api::kDrainAnnotation);
  const Json held = JobWith("DrainHeld", "nobody would be left: p-10, p-2 leave when another has");
  EXPECT_EQ(DrainText("p-2", asked, held),
            "p-2 stays for now: nobody would be left: p-10, p-2 leave when another has");
  EXPECT_EQ(DrainText("p-1", asked, held), std::nullopt) << "another one is";
  EXPECT_EQ(DrainText("p-1", asked, nullptr), std::nullopt);
}

}  // namespace
}  // namespace ringmaster::cli
