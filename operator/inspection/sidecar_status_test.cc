#include "operator/inspection/sidecar_status.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::inspection {
namespace {

using Json = nlohmann::json;

TEST(SidecarStatusTest, AnswersOfAnotherShapeDoNotThrow) {
  EXPECT_EQ(ShortText("a\x1b]0;title\x07\x7f"), "a?]0;title??") << "a terminal would obey";
  EXPECT_EQ(ShortText("\xc2\x9b"
                      "31m \xc3\xa9"),
            "??31m \xc3\xa9");
  EXPECT_FALSE(ParseSidecarStatus(Json::array()).has_value());
  EXPECT_FALSE(ParseSidecarStatus("text").has_value());
  Json odd = {{"pod", {{"name", 7}}},
              {"workers", "none"},
              {"view", {{"ranks", {{{"pod", 9}}}}}},
              {"rebuilds", {1, "two"}},
              {"progress", Json::array()}};
  auto status = ParseSidecarStatus(odd);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->ranks.at(0).pod, "");
}

TEST(SidecarStatusTest, NoTextOfAPodControlsTheTerminal) {
  const std::string evil = "\x1b]0;title\x07" + std::string(300, 'x');
  const Json answer = {
      {"pod", {{"name", "p"}}},
      {"stalls", {{{"tensor", evil}, {"asked", 1}, {"missing", {1}}, {"pods", {evil}}}}},
      {"gpus", {{{"gpu", evil}, {"failing", evil}, {"warnings", {evil}}}}},
      {"rebuilds", {{{"epoch", 7}, {"reason", evil}, {"members", {evil}}, {"left", {evil}}}}}};
  const auto status = ParseSidecarStatus(answer);
  ASSERT_TRUE(status.has_value());
  const job::Stall& stall = status->stalls.at(0);
  const job::GpuHealth& gpu = status->gpus.at(0);
  const job::Rebuild& rebuild = status->rebuilds.at(0);
  for (const std::string& text :
       {stall.tensor, stall.pods.at(0), gpu.gpu, gpu.failing, gpu.warnings.at(0), rebuild.reason,
        rebuild.members.at(0), rebuild.left.at(0)}) {
    EXPECT_TRUE(text.starts_with("?]0;title?x")) << text;
    EXPECT_LE(text.size(), 253u);
  }
}

TEST(SidecarStatusTest, OfAnAnswerThatIsTooMuchOnlySoMuchIsKept) {
  const std::string long_text(100'000, 'x');
  Json much = {{"pod", {{"name", long_text}}}, {"state", long_text}};
  for (const char* list : {"workers", "exits", "missingSlots", "brokenLinks"})
    much[list] = Json(20'000, 1);
  for (const char* list : {"pods", "ranks"}) much["view"][list] = Json(20'000, 1);
  for (int i = 0; i < 1001; ++i) much["rebuilds"].push_back({{"epoch", i}});
  for (int i = 0; i < 1000; ++i) much["progress"]["values"][long_text + std::to_string(i)] = i;
  for (int i = 0; i < 1000; ++i) much["progress"]["values"][std::to_string(i)] = i;
  const auto status = ParseSidecarStatus(much);
  ASSERT_TRUE(status.has_value());
  for (const std::string& text : {status->pod, status->state}) EXPECT_EQ(text.size(), 253u);
  EXPECT_EQ(status->workers.size(), 1024u);
  EXPECT_EQ(status->exits.size(), 1024u);
  EXPECT_EQ(status->missing_slots.size(), 1024u);
  EXPECT_EQ(status->broken_links.size(), 1024u);
  EXPECT_EQ(status->pods.size(), 10'000u);
  EXPECT_EQ(status->ranks.size(), 10'000u);
  EXPECT_EQ(status->values.size(), 64u);
  for (const auto& [name, value] : status->values) EXPECT_LE(name.size(), 64u);
  EXPECT_EQ(status->rebuilds.size(), 1000u);
  EXPECT_EQ(status->rebuilds.back().epoch, 1000u) << "the newest";
}

}  // namespace
}  // namespace ringmaster::inspection
