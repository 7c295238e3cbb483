#include "sidecar/app/process_identity.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ringmaster::app {
namespace {

TEST(ProcessIdentityTest, APromotedStandbyIsKnownByBothItsNames) {
  ProcessIdentity identity(-1, 4);
  EXPECT_TRUE(identity.standby());
  EXPECT_FALSE(identity.Is(false, -1, 4)) << "it has no slot";
  identity.TakeSlot(0, 2);
  EXPECT_FALSE(identity.standby());
  EXPECT_TRUE(identity.Is(true, -1, 4));
  EXPECT_TRUE(identity.Is(false, 0, 2));
  EXPECT_FALSE(identity.Is(false, 0, 4));
}

TEST(ProcessIdentityTest, ItsOwnWordForItsProcessIdStandsOverItsLaunchers) {
  ProcessIdentity identity(0, 1);
  identity.NamedByLauncher({.slot = 0, .incarnation = 1, .pid = 5});
  EXPECT_EQ(identity.pid(), 5);
  EXPECT_EQ(identity.pid_at_launcher(), 5);
  identity.NamedByItself(7, 7);  // the launcher's child is a script that has started it
  identity.NamedByLauncher({.slot = 0, .incarnation = 1, .pid = 5});
  EXPECT_EQ(identity.pid(), 7);
  EXPECT_EQ(identity.pid_at_launcher(), 7);
  EXPECT_EQ(identity.launcher_pid(), 5);
}

TEST(ProcessIdentityTest, WhetherItHasEndedIsSeenOnlyWhereItsProcessIdsAreOurs) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // a zombie has ended
  ProcessIdentity here(0, 1), elsewhere(0, 1);
  here.NamedByItself(child, child);
  elsewhere.NamedByItself(child, child + 1);
  EXPECT_TRUE(here.HasEnded());
  EXPECT_FALSE(elsewhere.HasEnded());
  waitpid(child, nullptr, 0);
  here.NamedByItself(getpid(), getpid());
  EXPECT_FALSE(here.HasEnded());
}

}  // namespace
}  // namespace ringmaster::app
