// Tensors with more elements than a signed 32-bit number can count. The test runs only with
// RINGMASTER_TEST_HUGE=1 (hack/test --long), and needs 12 GB.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>

#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"

namespace ringmaster::engine {
namespace {

constexpr size_t kElements = (size_t{1} << 32) / 2 + (1 << 20);

// A tensor of zeros, of which only the pages that are written take memory.
class Sparse {
 public:
  Sparse()
      : data_(static_cast<uint8_t*>(mmap(nullptr, kElements, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
  ~Sparse() { munmap(data_, kElements); }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  uint8_t* data() const { return data_; }

 private:
  uint8_t* const data_;
};

constexpr size_t kMarked[] = {0, (size_t{1} << 31) - 1, size_t{1} << 31, kElements - 1};

class HugeTest : public testing::TestWithParam<bool> {};

TEST_P(HugeTest, EveryElementOfMoreThan31BitsOfThemIsReduced) {
  if (std::getenv("RINGMASTER_TEST_HUGE") == nullptr)
    GTEST_SKIP() << "RINGMASTER_TEST_HUGE is not set";
  TestWorld world(2, GetParam());
  world.Install({0, 1});
  world.Enter({0, 1});
  Sparse in;  // the input of both ranks, which neither of them changes
  ASSERT_TRUE(in.ok());
  for (size_t at : kMarked) in.data()[at] = static_cast<uint8_t>(1 + at % 100);
  OnEach(&world, {0, 1}, [&](TestWorker& w) {
    Sparse out;
    ASSERT_TRUE(out.ok());
    const auto operation = w.Ask({"huge", Kind::kAllreduce, RM_UINT8, RM_SUM, "", kElements, 1, 1},
                                 in.data(), out.data());
    ASSERT_TRUE(operation->WaitUntil(Engine::Clock::now() + std::chrono::minutes(5)));
    ASSERT_TRUE(operation->status().ok()) << operation->status().message();
    for (size_t at : kMarked) EXPECT_EQ(out.data()[at], 2 * (1 + at % 100)) << "element " << at;
    for (size_t at : {size_t{1}, size_t{1} << 30, (size_t{1} << 31) + 1, kElements - 2})
      EXPECT_EQ(out.data()[at], 0) << "element " << at;
  });
}

INSTANTIATE_TEST_SUITE_P(Transport, HugeTest, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "SharedMemory" : "Tcp"; });

}  // namespace
}  // namespace ringmaster::engine
