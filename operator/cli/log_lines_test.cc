#include "operator/cli/log_lines.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

TEST(LogLinesTest, TheLaunchersErrorsAreShownAndTheRestOfItsAccountIsNot) {
  EXPECT_TRUE(IsLaunchersAccount("ringmaster-launcher: terminating"));
  EXPECT_FALSE(IsLaunchersAccount("ringmaster-launcher: error: no such file"));
  EXPECT_FALSE(IsLaunchersAccount("loss 1"));
}

TEST(LogLinesTest, LinesAreLabelledWhereAPodHasSeveralProcesses) {
  EXPECT_FALSE(LabelsLines(Json()));
  EXPECT_FALSE(LabelsLines({{"spec", {{"slotsPerWorker", 1}}}}));
  EXPECT_TRUE(LabelsLines({{"spec", {{"slotsPerWorker", 2}}}}));
  EXPECT_TRUE(LabelsLines({{"spec", {{"elasticPolicy", {{"standbyPerPod", 1}}}}}}));
}

TEST(LogLinesTest, ALabelledLineIsThatOfItsWorker) {
  EXPECT_EQ(LineOfWorker(3, true, "[3] loss 1"), "[3] loss 1");
  EXPECT_EQ(LineOfWorker(3, true, "[2] loss 1"), std::nullopt);
  EXPECT_EQ(LineOfWorker(3, true, "loss 1"), std::nullopt);
}

TEST(LogLinesTest, ALineWithoutALabelGetsTheNumberOfThePodsOnlyWorker) {
  EXPECT_EQ(LineOfWorker(3, false, "loss 1"), "[3] loss 1");
  EXPECT_EQ(LineOfWorker(3, false, "ringmaster-launcher: terminating"), std::nullopt);
  EXPECT_EQ(LineOfWorker(3, false, "ringmaster-launcher: error: x"),
            "[3] ringmaster-launcher: error: x");
}

TEST(LogLinesTest, TheWorkersThatThereAreAreNamedInRanges) {
  EXPECT_EQ(WorkersText({}, 2), "it has no pods");
  EXPECT_EQ(WorkersText({3, 0, 1}, 2), "it has workers 0-3, 6-7");
  EXPECT_EQ(WorkersText({0, 2, 3, 3}, 1), "it has workers 0, 2-3");
}

}  // namespace
}  // namespace ringmaster::cli
