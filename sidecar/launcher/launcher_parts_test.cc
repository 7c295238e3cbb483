// The launcher's decisions without processes: slots, standbys, the end.
#include <gtest/gtest.h>

#include "sidecar/launcher/restart_backoff.h"
#include "sidecar/launcher/shutdown.h"
#include "sidecar/launcher/slots.h"
#include "sidecar/launcher/standby_schedule.h"

namespace ringmaster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kNow(seconds(100));

TEST(RestartBackoffTest, GrowsWithDeathsSoonAfterTheStartAndIsForgottenAfterAnother) {
  RestartBackoff backoff;
  EXPECT_EQ(backoff.AfterDeath(seconds(1)), milliseconds(0));
  EXPECT_EQ(backoff.AfterDeath(seconds(1)), milliseconds(500));
  EXPECT_EQ(backoff.AfterDeath(seconds(1)), milliseconds(1000));
  for (int i = 0; i < 20; ++i) backoff.AfterDeath(seconds(1));
  EXPECT_EQ(backoff.AfterDeath(seconds(1)), seconds(30));
  EXPECT_EQ(backoff.AfterDeath(seconds(5)), milliseconds(0));
}

TEST(SlotsTest, WhenTheJobFinishesIdleSlotsCloseAndNothingStarts) {
  Slots slots(2);
  slots[0].pid = 7;
  slots[1].restart_at = kNow;
  EXPECT_EQ(slots.NextWake(), kNow);
  slots.CloseIdle();
  EXPECT_FALSE(slots.AllClosed());
  EXPECT_TRUE(slots.TakeRestarts(kNow + seconds(1)).empty());
  slots.CloseAll();
  EXPECT_TRUE(slots.AllClosed());
}

TEST(SlotsTest, ATimeIsDueOnce) {
  Slots slots(2);
  slots[1].restart_at = kNow;
  slots.ExitedWell(0, kNow);
  EXPECT_TRUE(slots.TakeRestarts(kNow - seconds(1)).empty());
  EXPECT_EQ(slots.TakeRestarts(kNow), std::vector<int>{1});
  EXPECT_TRUE(slots.TakeRestarts(kNow).empty());
  EXPECT_EQ(slots.TakeUnfinished(kNow + seconds(1)), std::vector<Unfinished>{{.slot = 0}});
  EXPECT_EQ(slots.NextWake(), std::nullopt);
}

TEST(SlotsTest, ASidecarThatWasAwayHasTimeToHearThatTheJobEnds) {
  Slots slots(2);
  slots.ExitedWell(0, kNow);
  slots.SidecarLost(kNow);
  EXPECT_TRUE(slots.TakeUnfinished(kNow + kFinishGrace).empty());
  slots.SidecarFound(kNow + seconds(2));
  EXPECT_TRUE(slots.TakeUnfinished(kNow + seconds(2) + kFinishGrace).empty());
  const std::vector<Unfinished> unheard{{.slot = 0, .unheard = true}};
  EXPECT_EQ(slots.TakeUnfinished(kNow + seconds(2) + kSidecarBack), unheard);
}

TEST(SlotsTest, ASidecarThatStaysAwayIsWaitedForOnlySoLong) {
  Slots slots(1);
  slots.SidecarLost(kNow - seconds(1));
  slots.ExitedWell(0, kNow);
  EXPECT_TRUE(slots.TakeUnfinished(kNow + kSidecarBack).empty());
  const std::vector<Unfinished> unheard{{.slot = 0, .unheard = true}};
  EXPECT_EQ(slots.TakeUnfinished(kNow + kSidecarAway), unheard);
}

// The process is stopped, say: its connection is there, and nobody reads what comes.
TEST(SlotsTest, ASidecarThatStandsStillIsWaitedForLikeOneThatIsAway) {
  Slots slots(1);
  slots.ExitedWell(0, kNow);
  slots.SidecarReads(false, kNow);
  EXPECT_EQ(slots.NextWake(), kNow + kFinishGrace) << "it may just not have come to it";
  const TimePoint late = kNow + kFinishGrace;
  slots.SidecarReads(false, late);
  EXPECT_TRUE(slots.TakeUnfinished(late).empty());
  EXPECT_EQ(slots.NextWake(), late + kLookAgain);
  slots.SidecarReads(true, late + seconds(5));
  EXPECT_EQ(slots.NextWake(), late + seconds(5) + kSidecarBack);

  slots.ExitedWell(0, kNow);
  slots.SidecarReads(false, late);
  const TimePoint later = late + kSidecarAway;
  slots.SidecarReads(false, later);
  EXPECT_EQ(slots.TakeUnfinished(later), (std::vector<Unfinished>{{.slot = 0, .unheard = true}}))
      << "not for ever";
}

TEST(SlotsTest, BeforeTheFirstConnectionNobodyHasAgreedToAnEnd) {
  Slots slots(1);
  slots.ExitedWell(0, kNow);
  slots.SidecarFound(kNow);
  EXPECT_EQ(slots.TakeUnfinished(kNow + kFinishGrace), std::vector<Unfinished>{{.slot = 0}});
}

TEST(SlotsTest, IdleIsWhereNothingRunsAndNothingIsToStart) {
  Slots slots(2);
  EXPECT_TRUE(slots.AllIdle());
  slots[1].restart_at = kNow;
  EXPECT_FALSE(slots.AllIdle());
  slots[1].restart_at.reset();
  slots[0].pid = 9;
  EXPECT_FALSE(slots.AllIdle());
}

TEST(StandbyScheduleTest, AStandbyIsNeverStartedAgainAtOnce) {
  StandbySchedule standby;
  EXPECT_EQ(standby.NextIncarnation(), 1u);
  standby.Died(seconds(60), kNow);
  EXPECT_FALSE(standby.TakeStart(kNow + milliseconds(999)));
  EXPECT_TRUE(standby.TakeStart(kNow + seconds(1)));
  EXPECT_FALSE(standby.TakeStart(kNow + seconds(1)));
  for (int i = 0; i < 3; ++i) standby.Died(seconds(1), kNow);
  EXPECT_EQ(standby.NextWake(), kNow + seconds(2)) << "it has died soon four times";
  standby.Cancel();
  EXPECT_EQ(standby.NextWake(), std::nullopt);
}

TEST(ShutdownTest, AStopKillsAfterItsGraceAndASecondStopOnlyShortensIt) {
  Shutdown shutdown;
  EXPECT_TRUE(shutdown.Terminate(kNow, seconds(20)));
  EXPECT_FALSE(shutdown.Terminate(kNow, seconds(20)));
  EXPECT_FALSE(shutdown.ending());
  EXPECT_TRUE(shutdown.Stop(kNow, seconds(5)));
  EXPECT_FALSE(shutdown.TakeDrainTooLong(kNow + seconds(20))) << "they are stopped already";
  EXPECT_FALSE(shutdown.Stop(kNow, seconds(9)));
  EXPECT_EQ(shutdown.NextWake(), kNow + seconds(5));
  EXPECT_FALSE(shutdown.Stop(kNow, seconds(1)));
  EXPECT_TRUE(shutdown.TakeKill(kNow + seconds(1)));
  EXPECT_FALSE(shutdown.TakeKill(kNow + seconds(1)));
  EXPECT_TRUE(shutdown.TakeKill(kNow + seconds(2)));
}

TEST(ShutdownTest, TheFirstFailureIsTheExitCode) {
  Shutdown shutdown;
  EXPECT_EQ(shutdown.exit_code(), std::nullopt);
  shutdown.SetExitCode(0);
  shutdown.SetExitCode(3);
  shutdown.SetExitCode(4);
  EXPECT_EQ(shutdown.exit_code(), 3);
}

}  // namespace
}  // namespace ringmaster::launcher
