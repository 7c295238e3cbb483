#include "collectives/elastic/device_check.h"

#include <gmock/gmock.h>

#include "collectives/nccl/fake/fake_gpu.h"

namespace ringmaster::elastic {
namespace {

using testing::HasSubstr;

std::shared_ptr<engine::Operation> On(int device, bool on_gpu = true) {
  engine::Request request{"x", engine::Kind::kAllreduce};
  request.on_gpu = on_gpu;
  return std::make_shared<engine::Operation>(std::move(request), nullptr, nullptr, 0,
                                             engine::Operation::Splits(),
                                             engine::Operation::OnDevice{.device = device});
}

Status Check(DeviceCheck* check, const std::shared_ptr<engine::Operation>& operation) {
  return check->Check({&operation, 1});
}

class DeviceCheckTest : public testing::Test {
 protected:
  DeviceCheckTest() : process(&cluster), gpu(process.gpu()) { gpu.devices = 2; }
  DeviceCheck With(BackendChoice backend) {
    return DeviceCheck(backend, [this] { return gpu; });
  }

  nccl::FakeCluster cluster;
  nccl::FakeProcess process;
  nccl::Gpu gpu;
};

TEST_F(DeviceCheckTest, AWorkerUsesOneOfItsGpus) {
  DeviceCheck check = With(BackendChoice::kAuto);
  EXPECT_TRUE(Check(&check, On(1)).ok());
  EXPECT_TRUE(Check(&check, On(1)).ok());
  const Status other = Check(&check, On(0));
  EXPECT_EQ(other.code(), RM_ERR_INVALID);
  EXPECT_THAT(other.message(), HasSubstr("'x': device is 1, and of earlier tensors 2"));
  EXPECT_THAT(Check(&check, On(2)).message(), HasSubstr("device is 3, allowed is 0 to 2"));
}

TEST_F(DeviceCheckTest, WithoutAGpuTheReasonIsTold) {
  gpu = {};
  gpu.no_cuda = "no GPU can be used: no CUDA-capable device is detected";
  DeviceCheck check = With(BackendChoice::kAuto);
  EXPECT_EQ(Check(&check, On(0)).code(), RM_ERR_UNAVAILABLE);
  EXPECT_THAT(Check(&check, On(0)).message(), HasSubstr("no CUDA-capable device"));
  EXPECT_TRUE(Check(&check, On(0, false)).ok()) << "the host's memory needs no GPU";
}

TEST_F(DeviceCheckTest, WhereTheJobSaysNcclThereMustBeOneWhenATensorComes) {
  gpu.nccl = nullptr;
  gpu.no_nccl = "libnccl.so.2 is not there";
  DeviceCheck strict = With(BackendChoice::kNccl), usual = With(BackendChoice::kAuto);
  EXPECT_TRUE(Check(&usual, On(0)).ok()) << "through the host's memory";
  EXPECT_TRUE(Check(&strict, On(0, false)).ok()) << "the host's memory needs no NCCL";
  const Status status = Check(&strict, On(0));
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_THAT(status.message(), HasSubstr("'x': the job's collectives.backend is Nccl: libnccl"));
  gpu.nccl = process.gpu().nccl;  // with a framework that was imported since then
  EXPECT_TRUE(Check(&strict, On(0)).ok());
}

TEST_F(DeviceCheckTest, WhereTheJobSaysCpuAGpusTensorIsRefused) {
  DeviceCheck check = With(BackendChoice::kCpu);
  EXPECT_THAT(Check(&check, On(0)).message(), HasSubstr("collectives.backend is Cpu"));
}

}  // namespace
}  // namespace ringmaster::elastic
