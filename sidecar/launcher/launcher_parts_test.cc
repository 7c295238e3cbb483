// The launcher's decisions without processes: slots, standbys, the end.
#include <gtest/gtest.h>

#include <cerrno>

#include "sidecar/launcher/restart_backoff.h"
#include "sidecar/launcher/shutdown.h"
#include "sidecar/launcher/slots.h"
#include "sidecar/launcher/standby_schedule.h"
#include "sidecar/launcher/start_retries.h"

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

// The launcher's connection may be there before the worker's.
TEST(SlotsTest, ASidecarThatHasJustComeBackMayNotHaveHeardTheWorker) {
  Slots slots(1);
  slots.SidecarLost(kNow - seconds(9));
  slots.SidecarFound(kNow);
  slots.ExitedWell(0, kNow + seconds(1));
  EXPECT_TRUE(slots.TakeUnfinished(kNow + seconds(1) + kFinishGrace).empty());
  const std::vector<Unfinished> unheard{{.slot = 0, .unheard = true}};
  EXPECT_EQ(slots.TakeUnfinished(kNow + kSidecarBack), unheard);
  slots.ExitedWell(0, kNow + kSidecarBack);
  EXPECT_EQ(slots.TakeUnfinished(kNow + kSidecarBack + kFinishGrace),
            std::vector<Unfinished>{{.slot = 0}})
      << "by then the worker could have said it";
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

  Slots without_end(1);
  without_end.ExitedWell(0, kNow);
  without_end.SidecarReads(false, late);
  const TimePoint later = late + kSidecarAway;
  without_end.SidecarReads(false, later);
  EXPECT_EQ(without_end.TakeUnfinished(later),
            (std::vector<Unfinished>{{.slot = 0, .unheard = true}}))
      << "not for ever";
}

// The other slot's worker writes a checkpoint, say: nobody can know yet that the first was wrong.
TEST(SlotsTest, WhileTheSidecarIsAwayAWorkerThatEndedWellIsJudgedWithTheOthers) {
  Slots slots(2);
  slots[1].pid = 9;
  slots.SidecarLost(kNow);
  slots.ExitedWell(0, kNow);
  const TimePoint late = kNow + kSidecarAway;
  EXPECT_TRUE(slots.TakeUnfinished(late).empty());
  EXPECT_EQ(slots.NextWake(), late + kSidecarAway);
  slots[1].pid = 0;
  slots.ExitedWell(1, late + seconds(1));
  const Unfinished first{.slot = 0, .unheard = true}, second{.slot = 1, .unheard = true};
  EXPECT_EQ(slots.TakeUnfinished(late + kSidecarAway), std::vector<Unfinished>{first});
  EXPECT_EQ(slots.TakeUnfinished(late + seconds(1) + kSidecarAway),
            std::vector<Unfinished>{second});
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
  EXPECT_TRUE(shutdown.Terminate(kNow, seconds(20), Shutdown::SidecarIs::kThere));
  EXPECT_FALSE(shutdown.Terminate(kNow, seconds(20), Shutdown::SidecarIs::kThere));
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

TEST(ShutdownTest, ASidecarWhoseConnectionHasJustBrokenMayComeBackAndDrain) {
  Shutdown returns;
  returns.Terminate(kNow, seconds(20), Shutdown::SidecarIs::kAway);
  EXPECT_FALSE(returns.drains());
  EXPECT_EQ(returns.NextWake(), kNow + Shutdown::kSidecarReturns);
  returns.SidecarFound();
  EXPECT_TRUE(returns.drains());
  EXPECT_FALSE(returns.TakeDrainTooLong(kNow + seconds(19)));
  EXPECT_TRUE(returns.TakeDrainTooLong(kNow + seconds(20)));

  Shutdown stays_away;
  stays_away.Terminate(kNow, seconds(1), Shutdown::SidecarIs::kAway);
  EXPECT_TRUE(stays_away.TakeDrainTooLong(kNow + seconds(1))) << "there is no more time than that";
  stays_away.SidecarFound();
  EXPECT_FALSE(stays_away.drains()) << "too late";

  Shutdown alone;
  alone.Terminate(kNow, seconds(20), Shutdown::SidecarIs::kNotSeenYet);
  EXPECT_TRUE(alone.TakeDrainTooLong(kNow)) << "no worker has anything to lose yet";
}

TEST(StartRetriesTest, WhatMayPassIsTriedAgainButNotForEver) {
  StartRetries retries;
  EXPECT_EQ(retries.AfterFailure(ENOENT), std::nullopt);
  EXPECT_EQ(retries.AfterFailure(EAGAIN), milliseconds(0));
  EXPECT_EQ(retries.AfterFailure(ENOMEM), milliseconds(500));
  for (int i = 2; i < StartRetries::kMost; ++i)
    EXPECT_NE(retries.AfterFailure(EAGAIN), std::nullopt);
  EXPECT_EQ(retries.AfterFailure(EAGAIN), std::nullopt);
  retries.Started();
  EXPECT_EQ(retries.AfterFailure(EAGAIN), milliseconds(0));
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
