// The parts of the kubelet by themselves: its task queue, its children, its socket probes.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include "operator/kubelet/child_processes.h"
#include "operator/kubelet/socket_prober.h"
#include "operator/kubelet/task_queue.h"

namespace ringmaster::kubelet {
namespace {

bool Readable(int fd, int timeout_ms = 0) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, timeout_ms) == 1;
}

TEST(TaskQueue, IsReadableWhileThereAreTasks) {
  TaskQueue queue;
  EXPECT_FALSE(Readable(queue.fd()));
  int ran = 0;
  for (int i = 0; i < 2; ++i) queue.Post([&] { ++ran; });
  EXPECT_TRUE(Readable(queue.fd()));
  for (auto& task : queue.Take()) task();
  EXPECT_EQ(ran, 2);
  EXPECT_FALSE(Readable(queue.fd()));
}

TEST(TaskQueue, ClosesOnlyWhenNothingIsLeftToDo) {
  TaskQueue queue;
  EXPECT_TRUE(queue.Post([] {}));
  EXPECT_FALSE(queue.Close());
  queue.Take();
  EXPECT_TRUE(queue.Close());
  EXPECT_FALSE(queue.Post([] {}));
  EXPECT_TRUE(queue.Take().empty());
}

TEST(ChildProcesses, AnExitIsReportedOnceWithItsPod) {
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    _exit(7);
  }
  ChildProcesses children;
  children.Add(pid, "pod-uid");
  std::vector<pollfd> fds;
  children.AppendTo(fds);
  ASSERT_EQ(fds.size(), 1u);
  ASSERT_TRUE(Readable(fds[0].fd, 10'000));
  const auto exits = children.ReapExited();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].pid, pid);
  EXPECT_EQ(WEXITSTATUS(exits[0].wait_status), 7);
  EXPECT_EQ(exits[0].pod_uid, "pod-uid");
  EXPECT_TRUE(children.empty());
  EXPECT_TRUE(children.ReapExited().empty());
}

TEST(ChildProcesses, AnOrphanIsReapedWhenItStaysDead) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  ChildProcesses children;
  const auto now = ChildProcesses::Clock::now();
  children.ReapOrphans(now);
  ASSERT_TRUE(children.next_orphan_check().has_value());
  EXPECT_EQ(kill(pid, 0), 0) << "somebody may still wait for it";
  children.ReapOrphans(*children.next_orphan_check());
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_FALSE(children.next_orphan_check().has_value());
}

TEST(SocketProber, ReportsAProbeOfAPortThatNobodyServes) {
  std::promise<bool> result;
  SocketProber prober;
  prober.Start([&](const SocketProbe& probe, bool passed) {
    EXPECT_EQ(probe.container, "main");
    result.set_value(passed);
  });
  prober.Probe({"uid", "main", 1, "127.0.0.1:1", "", std::chrono::milliseconds(500)});
  EXPECT_FALSE(result.get_future().get());
  prober.Stop();
}

}  // namespace
}  // namespace ringmaster::kubelet
