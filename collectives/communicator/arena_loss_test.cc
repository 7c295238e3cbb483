// Views whose ranks can't make a new arena: shared memory has run out, or a limit is reached.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <memory>

#include "collectives/communicator/test_values.h"
#include "collectives/communicator/test_world.h"

namespace ringmaster {
namespace {

using testing::Paths;
using testing::World;

// Makes the kernel refuse to create an arena, as it does without memory for it; small files can
// still be written.
class NoRoomForArenas {
 public:
  NoRoomForArenas() {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = 64 << 10;
    setrlimit(RLIMIT_FSIZE, &small);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~NoRoomForArenas() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_ = {};
  void (*handler_)(int) = SIG_DFL;
};

TEST(Arena, RanksForWhomNoneCanBeMadeGoOnOverStreams) {
  World world(4, Paths::kShm);
  const auto reduce = [](int rank, Communicator& communicator) {
    ExpectAllreduce(communicator, rank, RM_SUM, RM_FLOAT32, 100, true);
    ExpectAllreduce(communicator, rank, RM_SUM, RM_FLOAT32, 500000, false);
  };
  world.Build(1);
  EXPECT_STREQ(world.at(0).PathTo(1), "shm");
  world.Run(reduce);
  {
    // One rank is left out while it lives. It could still write into the arenas of the others, so
    // these need new ones.
    NoRoomForArenas none;
    world.Build(2, {0, 1, 2});
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_STRNE(world.at(rank).PathTo((static_cast<int>(rank) + 1) % 3), "shm");
      EXPECT_TRUE(world.at(rank).ArenaBuffer(100).empty());
    }
    world.Run(reduce);
  }
  world.Build(3, {0, 1, 2, 3});
  world.Run(reduce);
}

}  // namespace
}  // namespace ringmaster
