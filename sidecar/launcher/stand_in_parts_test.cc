// What a stand-in and the slots with foreign collectives remember.
#include <gtest/gtest.h>
#include <signal.h>

#include "sidecar/launcher/stand_in_pulse.h"
#include "sidecar/launcher/stand_in_view.h"
#include "sidecar/launcher/unexplained_failures.h"

namespace ringmaster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kNow(seconds(100));

TEST(StandInPulseTest, ItPingsAsOftenAsTheSidecarSays) {
  StandInPulse pulse;
  pulse.Welcomed(/*ping_ms=*/200, /*fence_ms=*/1000);
  EXPECT_EQ(pulse.TakePing(kNow), 1u);
  EXPECT_FALSE(pulse.TakePing(kNow + milliseconds(199)));
  EXPECT_EQ(pulse.TakePing(kNow + milliseconds(200)), 2u);
  pulse.Heard(kNow);
  EXPECT_EQ(pulse.NextWake(), kNow + milliseconds(400));
  pulse.TakePing(kNow + milliseconds(950));
  EXPECT_EQ(pulse.NextWake(), kNow + seconds(1)) << "the fence is sooner than the next ping";
}

TEST(StandInPulseTest, ASidecarThatHasNeverSpokenIsNotMissed) {
  StandInPulse pulse;
  pulse.Welcomed(/*ping_ms=*/1, /*fence_ms=*/1);
  EXPECT_FALSE(pulse.TakeFence(kNow));
  pulse.Heard(kNow);
  EXPECT_FALSE(pulse.TakeFence(kNow + milliseconds(99))) << "less would be no time at all";
  EXPECT_TRUE(pulse.TakeFence(kNow + milliseconds(100)));
  EXPECT_FALSE(pulse.TakeFence(kNow + milliseconds(101))) << "once";
  pulse.Forget();
  EXPECT_FALSE(pulse.TakeFence(kNow + seconds(60)));
}

TEST(StandInViewTest, AViewThatIsLeftBehindNeedsNoStop) {
  StandInView view;
  view.Take({.epoch = 7}, kNow);
  EXPECT_FALSE(view.Stop(6));
  EXPECT_FALSE(view.TakeStop());
  EXPECT_TRUE(view.Stop(8));
  EXPECT_TRUE(view.Stop(7));
  EXPECT_EQ(view.TakeStop(), 8u);
  EXPECT_FALSE(view.TakeStop()) << "it is answered once";
}

TEST(StandInViewTest, ANewViewEndsWhatWasToSayOfTheOneBefore) {
  StandInView view;
  view.Take({.epoch = 7}, kNow);
  view.Arm(7);
  EXPECT_TRUE(view.armed());
  view.Broken("its process exited");
  view.Finished();
  view.EnterWhenStopped();
  view.Take({.epoch = 8}, kNow);
  EXPECT_FALSE(view.armed());
  EXPECT_FALSE(view.broken_why());
  EXPECT_FALSE(view.finished());
  EXPECT_FALSE(view.TakeEntry());
  view.Arm(9);
  EXPECT_FALSE(view.armed());
  view.Take({.epoch = 9}, kNow);
  EXPECT_TRUE(view.armed()) << "it was known before the view";
}

TEST(StandInViewTest, OnlySurvivorsKnowWhatTheChangeHasCost) {
  StandInView view;
  view.Take({.epoch = 7}, kNow);
  EXPECT_EQ(view.SecondsSince(kNow + seconds(2)), 2.0);
  view.Take({.epoch = 8, .joined = true}, kNow);
  EXPECT_FALSE(view.SecondsSince(kNow + seconds(2)));
}

class UnexplainedFailuresTest : public testing::Test {
 protected:
  static ChildExit Exit(int slot, int exit_code, int signal = 0) {
    ChildExit exit{.exit_code = exit_code, .signal = signal};
    exit.child.slot = slot;
    return exit;
  }
  UnexplainedFailures failures_;
};

TEST_F(UnexplainedFailuresTest, AnErrorOrAnAbortMayFollowAnothersDeathAndAKillDoesNot) {
  EXPECT_TRUE(MayFollowAnother(Exit(0, 1)));
  EXPECT_TRUE(MayFollowAnother(Exit(0, 128 + SIGABRT, SIGABRT)));
  EXPECT_FALSE(MayFollowAnother(Exit(0, 128 + SIGKILL, SIGKILL)));
  EXPECT_FALSE(MayFollowAnother(Exit(0, 128 + SIGSEGV, SIGSEGV)));
}

TEST_F(UnexplainedFailuresTest, TheEarliestIsDueFirst) {
  failures_.Add(Exit(1, 3), kNow);
  failures_.Add(Exit(0, 4), kNow + seconds(1));
  EXPECT_EQ(failures_.NextWake(), kNow + seconds(5));
  EXPECT_FALSE(failures_.TakeDue(kNow + milliseconds(4999)));
  EXPECT_EQ(failures_.TakeDue(kNow + seconds(6))->exit_code, 3);
  EXPECT_EQ(failures_.TakeDue(kNow + seconds(6))->exit_code, 4);
  EXPECT_FALSE(failures_.TakeDue(kNow + seconds(60)));
  EXPECT_FALSE(failures_.NextWake());
}

TEST_F(UnexplainedFailuresTest, AViewThatEndsBeforeOurWordCanEndItExplainsTheFailure) {
  failures_.Add(Exit(0, 1), kNow);
  EXPECT_TRUE(failures_.OnViewOver(0, kNow + seconds(2))) << "the sidecar was told nothing";
  failures_.BrokeView(0);
  EXPECT_TRUE(failures_.OnViewOver(0, kNow + milliseconds(1499)));
  EXPECT_FALSE(failures_.TakeDue(kNow + seconds(2)));
  EXPECT_FALSE(failures_.OnViewOver(0, kNow + milliseconds(1500)));
  EXPECT_TRUE(failures_.TakeDue(kNow + milliseconds(1500))) << "it was the first one";
  EXPECT_FALSE(failures_.OnViewOver(0, kNow)) << "there is nothing to explain";
}

}  // namespace
}  // namespace ringmaster::launcher
