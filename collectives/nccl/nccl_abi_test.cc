// Compares what we declare of NCCL and CUDA with the real ones, which hack/lib/gpu-wheels has
// fetched. No GPU is needed. Without them the tests are skipped; with REQUIRE_FRAMEWORKS=1, as in
// CI, they fail.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "collectives/nccl/real_cuda.h"
#include "collectives/nccl/real_nccl.h"

namespace ringmaster::nccl {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The cache folder as hack/lib/common.sh finds it.
std::string CacheFolder() {
  if (const std::string named = Variable("RINGMASTER_CACHE"); !named.empty()) return named;
  const std::string cache = Variable("XDG_CACHE_HOME");
  return (cache.empty() ? Variable("HOME") + "/.cache" : cache) + "/ringmaster";
}

class AbiTest : public testing::Test {
 protected:
  void SetUp() override {
    wheels_ = CacheFolder() + "/gpu-wheels/nvidia";
    if (std::filesystem::exists(wheels_)) return;
    const std::string why = "NCCL and CUDA are not in " + wheels_ + ": run hack/lib/gpu-wheels";
    if (Variable("REQUIRE_FRAMEWORKS") == "1") FAIL() << why;
    GTEST_SKIP() << why;
  }

  // Expects that the compiler accepts a file of collectives/nccl/abi beside the real header.
  void ExpectSame(const std::string& file) const {
    const std::string folder = std::string(SOURCE_DIR) + "/collectives/nccl/abi";
    const std::string command = std::string(COMPILER) + " -std=c++20 -fsyntax-only -I" +
                                SOURCE_DIR + " -I" + folder + "/stub -I" + wheels_ +
                                "/nccl/include -I" + wheels_ + "/cuda_runtime/include " + folder +
                                "/" + file;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

  std::string wheels_;
};

TEST_F(AbiTest, EveryFunctionThatWeAskForIsInNccl) {
  std::unique_ptr<NcclApi> nccl;
  const Status status = LoadNcclFrom((wheels_ + "/nccl/lib/libnccl.so.2").c_str(), &nccl);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(nccl->HasShrink() && nccl->HasRevoke()) << "else they were not asked for";
  EXPECT_NE(nccl->ErrorString(Result::kRemoteError), nccl->ErrorString(Result::kSystemError));
}

TEST_F(AbiTest, EveryFunctionThatWeAskForIsInTheCudaRuntime) {
  std::unique_ptr<CudaApi> cuda;
  const std::string runtime = wheels_ + "/cuda_runtime/lib/libcudart.so.12";
  const Status status = LoadCudaFrom(runtime.c_str(), &cuda);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_GE(cuda->version(), 12000);
  EXPECT_NE(cuda->ErrorString(kCudaNotReady), "");
  SharedLibrary library;  // what it may lack it has, too
  const char* const names[] = {runtime.c_str()};
  ASSERT_TRUE(SharedLibrary::Open(names, &library).ok());
  EXPECT_NE(library.Find("cudaThreadExchangeStreamCaptureMode"), nullptr);
  EXPECT_NE(library.Find("cudaDeviceGetPCIBusId"), nullptr);
}

TEST_F(AbiTest, TypesValuesAndArgumentsAreNccls) { ExpectSame("compare_nccl.cc"); }

TEST_F(AbiTest, ValuesAreCudas) { ExpectSame("compare_cuda.cc"); }

TEST(LoadTest, ALibraryThatIsNotThereIsNamed) {
  std::unique_ptr<NcclApi> nccl;
  const Status status = LoadNcclFrom("libnosuch.so.2", &nccl);
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_NE(status.message().find("libnosuch.so.2"), std::string::npos) << status.message();
}

TEST(LoadTest, WhyEachOfSeveralLibrariesCannotBeLoadedIsTold) {
  SharedLibrary library;
  const std::string text = testing::TempDir() + "/libnolibrary.so.2";
  std::ofstream(text) << "no library";
  const char* const names[] = {"libnosuch.so.2", text.c_str()};
  const Status status = SharedLibrary::Open(names, &library);
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_NE(status.message().find("libnosuch.so.2: cannot open"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("libnolibrary.so.2: file too short"), std::string::npos)
      << status.message();
}

TEST(LoadTest, NcclIsRefusedWhereAllItsCommunicatorsAreBlocking) {
  ASSERT_EQ(setenv("NCCL_COMM_BLOCKING", "1", 1), 0);
  std::unique_ptr<NcclApi> nccl;
  bool missing = true;
  const Status status = LoadNccl(SharedLibrary::Where::kLoadedOrFound, &nccl, &missing);
  EXPECT_FALSE(missing);
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_NE(status.message().find("NCCL_COMM_BLOCKING is 1 in the environment"), std::string::npos)
      << status.message();
  ASSERT_EQ(unsetenv("NCCL_COMM_BLOCKING"), 0);
}

TEST(LoadTest, ALibraryThatIsAnotherOneIsRefused) {
  std::unique_ptr<NcclApi> nccl;
  const Status status = LoadNcclFrom("libc.so.6", &nccl);
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_NE(status.message().find("has no ncclGetVersion"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace ringmaster::nccl
