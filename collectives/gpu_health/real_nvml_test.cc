#include "collectives/gpu_health/real_nvml.h"

#include <gtest/gtest.h>

namespace ringmaster::gpu_health {
namespace {

TEST(RealNvmlTest, WhereThereIsNoLibraryItIsNamed) {
  std::shared_ptr<NvmlApi> nvml;
  const Status status = LoadNvmlFrom("libno-such-nvml.so.1", &nvml);
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_NE(status.message().find("libno-such-nvml.so.1"), std::string::npos) << status.message();
  EXPECT_EQ(nvml, nullptr);
}

TEST(RealNvmlTest, ALibraryThatIsAnotherOneIsRefused) {
  std::shared_ptr<NvmlApi> nvml;
  const Status status = LoadNvmlFrom("libc.so.6", &nvml);
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_NE(status.message().find("has no nvmlInit_v2"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace ringmaster::gpu_health
