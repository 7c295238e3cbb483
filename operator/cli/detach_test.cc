#include "operator/cli/detach.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ringmaster::cli {
namespace {

// Debian's csh leaves copies of its standard streams open in the programs that it becomes.
TEST(DetachTest, NothingOfItsStarterIsHeldOpen) {
  int stream[2];
  ASSERT_EQ(pipe(stream), 0);
  auto* child = static_cast<pid_t*>(
      mmap(nullptr, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(child, MAP_FAILED);
  const auto detached = RunDetached([child](const SayReady& ready) -> Outcome<void> {
    *child = getpid();
    ready("runs");
    while (true) pause();
  });
  close(stream[1]);
  pollfd ended{stream[0], POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 5000), 1) << "whoever reads the stream still waits for its end";
  close(stream[0]);
  ASSERT_TRUE(detached) << detached.error().message;
  kill(*child, SIGKILL);
  waitpid(*child, nullptr, 0);
  munmap(child, sizeof(pid_t));
}

}  // namespace
}  // namespace ringmaster::cli
