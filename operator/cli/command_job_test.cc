#include "operator/cli/command_job.h"

#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

nlohmann::json Job(int slots, int replicas, int min, int max, const std::string& image) {
  nlohmann::json container = {{"image", image}, {"command", {"python3", "train.py", "a b"}}};
  nlohmann::json pod = {{"spec", {{"containers", nlohmann::json::array({container})}}}};
  return {{"spec",
           {{"slotsPerWorker", slots},
            {"elasticPolicy", {{"minReplicas", min}, {"maxReplicas", max}}},
            {"worker", {{"replicas", replicas}, {"template", pod}}}}}};
}

TEST(CommandJobTest, WhoScalesAJobOfFixedSizeIsToldWhatToType) {
  EXPECT_EQ(ScaleAdvice(Job(2, 1, 1, 1, kImageOfCommand), 3),
            "`run -np 2` alone makes a job of fixed size; one that can be scaled so far is started "
            "by `ringmaster run -np 2 --max-np 3 python3 train.py 'a b'`");
  EXPECT_EQ(ScaleAdvice(Job(4, 0, 1, 1, kImageOfCommand), 2),
            "`run -np 4` alone makes a job of fixed size; one that can be scaled so far is started "
            "by `ringmaster run -np 4 --max-np 4 python3 train.py 'a b'`")
      << "suspended, and each pod of the other has one worker";
}

TEST(CommandJobTest, WhoScalesAJobFurtherThanItsOptionsIsToldThem) {
  EXPECT_EQ(ScaleAdvice(Job(1, 3, 2, 4, kImageOfCommand), 6),
            "this job was started with --max-np 4; one that can be scaled so far is started by "
            "`ringmaster run -np 3 --min-np 2 --max-np 6 python3 train.py 'a b'`");
}

TEST(CommandJobTest, ThereIsNoAdviceWhereAManifestSaysItOrTheJobMayBeScaled) {
  EXPECT_EQ(ScaleAdvice(Job(1, 3, 2, 4, kImageOfCommand), 4), "");
  EXPECT_EQ(ScaleAdvice(Job(2, 1, 1, 1, "registry/mine:1"), 3), "");
  EXPECT_EQ(ScaleAdvice({}, 3), "");
}

}  // namespace
}  // namespace ringmaster::cli
