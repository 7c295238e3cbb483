#include "collectives/elastic/ping_facts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::elastic {
namespace {

TEST(PingFactsTest, TheGpusHealthIsSaidWhenItChangesAndToWhoeverListensNext) {
  PingFacts facts;
  const engine::EngineInfo engine;
  EXPECT_FALSE(facts.Fields(engine).contains("gpu")) << "nobody watches one";
  facts.gpu()->Set({.gpu = "0000:17:00.0", .celsius = 60});
  EXPECT_EQ(facts.Fields(engine)["gpu"]["celsius"], 60);
  facts.gpu()->Set({.gpu = "0000:17:00.0", .celsius = 60});
  EXPECT_FALSE(facts.Fields(engine).contains("gpu")) << "nothing has changed";
  facts.gpu()->Set({.gpu = "0000:17:00.0", .celsius = 61});
  EXPECT_EQ(facts.Fields(engine)["gpu"]["celsius"], 61);
  facts.SayGpuAgain();
  EXPECT_EQ(facts.Fields(engine)["gpu"]["celsius"], 61);
}

}  // namespace
}  // namespace ringmaster::elastic
