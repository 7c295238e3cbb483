#include "operator/inspection/job_conditions.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::inspection {
namespace {

using Json = nlohmann::json;

TEST(JobConditionsTest, OnlyAConditionThatIsTrueIsFound) {
  const Json job = {{"status",
                     {{"conditions",
                       {{{"type", "Failed"}, {"status", "False"}},
                        {{"type", "Succeeded"}, {"status", "True"}, {"reason", "Done"}}}}}}};
  const Json* done = TrueCondition(job, "Succeeded");
  ASSERT_NE(done, nullptr);
  EXPECT_EQ((*done)["reason"], "Done");
  EXPECT_EQ(TrueCondition(job, "Failed"), nullptr);
  EXPECT_EQ(TrueCondition(job, "Running"), nullptr);
  EXPECT_EQ(TrueCondition(Json::object(), "Succeeded"), nullptr);
}

TEST(JobConditionsTest, APodsNumberIsReadOnlyFromAPodOfTheJob) {
  EXPECT_EQ(IndexInName("train-worker-12", "train"), 12);
  for (const char* other : {"train-worker-", "train-worker-1x", "other-worker-1", "train"})
    EXPECT_FALSE(IndexInName(other, "train").has_value()) << other;
}

}  // namespace
}  // namespace ringmaster::inspection
