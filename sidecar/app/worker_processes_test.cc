#include "sidecar/app/worker_processes.h"

#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFence{10000};

TEST(WorkerProcessesTest, KeepsOnlyProcessesThatTheLauncherNames) {
  WorkerProcesses processes(2);
  processes.Add(0, 1);
  processes.KeepOnly({{.slot = 0, .incarnation = 2, .pid = 7}, {.slot = 5, .incarnation = 1}});
  ASSERT_EQ(processes.all().size(), 1u);
  EXPECT_EQ(processes.all()[0].identity.incarnation(), 2u);
  EXPECT_EQ(processes.all()[0].identity.pid(), 7);
}

TEST(WorkerProcessesTest, APromotedStandbyIsFoundByBothItsNames) {
  WorkerProcesses processes(1);
  processes.Started({.standby = true, .incarnation = 4, .pid = 8});
  EXPECT_FALSE(processes.AnyLiving());
  EXPECT_EQ(processes.Promote(1, 2, 8), nullptr) << "no such slot";
  processes.all()[0].identity.NamedByItself(999, 999);  // the launcher's child is a script
  EXPECT_EQ(processes.Promote(0, 2, 7), nullptr) << "another, which has ended since";
  ASSERT_NE(processes.Promote(0, 2, 8), nullptr);
  EXPECT_TRUE(processes.AnyLiving());
  EXPECT_EQ(processes.Find(true, -1, 4), processes.Find(false, 0, 2));
  EXPECT_EQ(processes.Promote(0, 3, 8), nullptr) << "there is no standby any more";
}

TEST(WorkerProcessesTest, AFormerIncarnationIsToldOfTheNewer) {
  WorkerProcesses processes(1);
  processes.Add(0, 3);
  EXPECT_EQ(processes.NewerIncarnation(0, 2), 3u);
  EXPECT_EQ(processes.NewerIncarnation(0, 3), 0u);
}

TEST(WorkerProcessesTest, ProcessesAreDeadWhenSilentForLongerThanTheFence) {
  const SteadyTime start(seconds(100));
  WorkerProcesses processes(2);
  WorkerProcess* silent = processes.Add(0, 1);
  silent->connection.Open(5, false, false);
  silent->liveness.ConnectionOpened(start);
  WorkerProcess* heard = processes.Add(1, 1);
  heard->connection.Open(6, false, false);
  heard->liveness.ConnectionOpened(start + seconds(10));
  EXPECT_TRUE(processes.TakeDead(start + seconds(11), kFence, {}).empty());
  const auto dead = processes.TakeDead(start + milliseconds(11001), kFence, {});
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].connection.id(), 5u);
  EXPECT_EQ(processes.all().size(), 1u);
}

TEST(WorkerProcessesTest, AClosedSocketIsADeathOnceTheLauncherIsLostToo) {
  const SteadyTime start(seconds(100));
  WorkerProcesses processes(1);
  processes.Add(0, 1)->liveness.ConnectionClosed(start);
  EXPECT_TRUE(processes.Doubtful());
  EXPECT_TRUE(processes.TakeDead(start + seconds(1), kFence, {}).empty());
  EXPECT_EQ(processes.TakeDead(start + milliseconds(501), kFence, start).size(), 1u);
}

TEST(WorkerProcessesTest, SlotsAreMissingUntilTheirWorkersHaveCalledInit) {
  WorkerProcesses processes(2);
  processes.Add(0, 1)->stage.Enter(true);
  processes.Add(1, 1);
  EXPECT_EQ(processes.MissingSlots(), std::vector<uint32_t>{1});
  EXPECT_TRUE(processes.Exited({.slot = 1, .incarnation = 1}));
  EXPECT_FALSE(processes.Exited({.slot = 1, .incarnation = 1}));
  EXPECT_EQ(processes.Living().size(), 1u);
}

}  // namespace
}  // namespace ringmaster::app
