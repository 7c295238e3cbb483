#include "sidecar/app/pod_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

using job::GpuHealth;
using testing::IsEmpty;
using Xids = std::map<int, std::uint64_t>;

GpuHealth Failing() { return {.gpu = "0000:17:00.0", .failing = "Xid 79", .celsius = 60}; }

TEST(PodGpusTest, AGpuThatFailsGoesOnFailingWhateverTheNextProcessSays) {
  PodGpus gpus(2);
  gpus.Take(1, 1, Failing());
  gpus.Take(1, 2, {.gpu = "0000:18:00.0", .failing = "", .celsius = 61});
  const GpuHealth failing{.slot = 1, .gpu = "0000:17:00.0", .failing = "Xid 79"};
  EXPECT_EQ(gpus.Failing(), std::vector{failing});
  EXPECT_EQ(gpus.All().at(0).celsius, 61) << "the rest is as of now";
}

TEST(PodGpusTest, XidsAreCountedOverAllProcessesOfASlot) {
  PodGpus gpus(1);
  gpus.Take(0, 1, {.xids = {{31, 2}}});
  gpus.Take(0, 1, {.xids = {{31, 3}, {13, 1}}});
  gpus.Take(0, 2, {.xids = {{31, 1}}});
  EXPECT_EQ(gpus.All().at(0).xids, (Xids{{13, 1}, {31, 4}}));
  EXPECT_THAT(gpus.Failing(), IsEmpty());
}

TEST(PodGpusTest, AWorkerThatTellsEverNewThingsFillsNoMemory) {
  PodGpus gpus(2);
  gpus.Take(2, 1, Failing());
  gpus.Take(-1, 1, Failing());
  EXPECT_THAT(gpus.All(), IsEmpty());
  for (int number = 1; number < 1'000; ++number) gpus.Take(0, 1, {.xids = {{number, 1}}});
  EXPECT_EQ(gpus.All().at(0).xids.size(), job::kMostXids);
}

}  // namespace
}  // namespace ringmaster::app
