#include "operator/cli/step_count.h"

#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

inspection::SidecarStatus Status(std::uint64_t lineage, std::uint64_t step) {
  inspection::SidecarStatus status;
  status.epoch = lineage << 40 | 1;
  status.step = step;
  return status;
}

TEST(StepCountTest, NeverFallsWithinALineage) {
  StepCount count;
  count.Observe(Status(1, 8));
  count.Observe(Status(1, 7));
  EXPECT_EQ(count.step(), 8u);
}

TEST(StepCountTest, AWorkerMayBeAheadOfItsSidecar) {
  StepCount count;
  inspection::SidecarStatus status = Status(1, 8);
  status.workers = {{.step = 9}, {.step = 3}};
  count.Observe(status);
  EXPECT_EQ(count.step(), 9u);
}

TEST(StepCountTest, ALaterLineageCountsAnewAndTheEarlierOneIsNotHeardAnyMore) {
  StepCount count;
  count.Observe(Status(1, 70));
  count.Observe(Status(2, 3));
  EXPECT_EQ(count.step(), 3u);
  count.Observe(Status(1, 71));
  EXPECT_EQ(count.step(), 3u);
}

}  // namespace
}  // namespace ringmaster::cli
