#include "sidecar/launcher/view_process.h"

#include <gtest/gtest.h>

namespace ringmaster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kNow(seconds(100));

TEST(ViewProcessTest, ItStartsOnceInAViewAndOnlyAfterAMoment) {
  ViewProcess process;
  process.Enter({.epoch = 7}, kNow);
  EXPECT_EQ(process.NextWake(/*runs=*/false), kNow + milliseconds(500));
  EXPECT_FALSE(process.TakeStart(kNow + milliseconds(499)));
  EXPECT_TRUE(process.TakeStart(kNow + milliseconds(500)));
  EXPECT_FALSE(process.TakeStart(kNow + seconds(60)));
  EXPECT_EQ(process.world()->epoch, 7u);
}

TEST(ViewProcessTest, ANewerViewBeforeTheStartPutsItOff) {
  ViewProcess process;
  process.Enter({.epoch = 7}, kNow);
  process.Enter({.epoch = 8}, kNow + milliseconds(400));
  EXPECT_FALSE(process.TakeStart(kNow + milliseconds(500)));
  EXPECT_TRUE(process.TakeStart(kNow + milliseconds(900)));
  EXPECT_EQ(process.world()->epoch, 8u);
}

TEST(ViewProcessTest, NothingStartsInAViewThatIsOver) {
  ViewProcess process;
  process.Enter({.epoch = 7}, kNow);
  process.LeaveView();
  EXPECT_FALSE(process.world());
  EXPECT_FALSE(process.TakeStart(kNow + seconds(60)));
  EXPECT_FALSE(process.NextWake(/*runs=*/false));
}

TEST(ViewProcessTest, AStartIsNoReasonToWakeWhileTheOneBeforeStillRuns) {
  ViewProcess process;
  process.Enter({.epoch = 7}, kNow);
  EXPECT_FALSE(process.NextWake(/*runs=*/true));
  process.TellToEnd(kNow);
  EXPECT_EQ(process.NextWake(/*runs=*/true), kNow + seconds(5)) << "but its end is";
}

TEST(ViewProcessTest, ViewsAreComparedWithTheOneThatItIsIn) {
  ViewProcess process;
  EXPECT_FALSE(process.IsInViewUpTo(7)) << "it is in none";
  process.Enter({.epoch = 7}, kNow);
  EXPECT_FALSE(process.IsInViewUpTo(6));
  EXPECT_TRUE(process.IsInViewUpTo(7));
  EXPECT_TRUE(process.IsInViewUpTo(8));
}

TEST(ViewProcessTest, ItIsToldToEndOnceAndKilledWhenItTakesTooLong) {
  ViewProcess process;
  EXPECT_TRUE(process.TellToEnd(kNow));
  EXPECT_FALSE(process.TellToEnd(kNow + seconds(3))) << "its grace does not begin anew";
  EXPECT_FALSE(process.TakeKill(kNow + milliseconds(4999)));
  EXPECT_TRUE(process.TakeKill(kNow + seconds(5)));
  EXPECT_FALSE(process.TakeKill(kNow + seconds(6)));
}

TEST(ViewProcessTest, AnEndIsOneThatItWasToldToOnlyOnce) {
  ViewProcess process;
  process.TellToEnd(kNow);
  EXPECT_TRUE(process.Ended());
  EXPECT_FALSE(process.TakeKill(kNow + seconds(5))) << "the next one is not killed in its place";
  EXPECT_FALSE(process.Ended()) << "the next one has ended by itself";
}

TEST(ViewProcessTest, AWorkerThatIsReplacedStartsNothingInItsView) {
  ViewProcess process;
  for (const bool by_us : {false, true}) {
    process.Enter({.epoch = 7}, kNow);
    process.TellToEnd(kNow);
    process.ReplaceWorker(by_us);
    EXPECT_TRUE(process.is_replaced());
    EXPECT_FALSE(process.world());
    EXPECT_FALSE(process.TakeStart(kNow + seconds(60)));
    EXPECT_EQ(process.TakeReplacement(), by_us);
    EXPECT_FALSE(process.is_replaced());
    EXPECT_FALSE(process.Ended()) << "the worker that comes was told nothing";
  }
}

TEST(ViewProcessTest, EachStartIsCountedAndALeaveByPlanRemains) {
  ViewProcess process;
  EXPECT_EQ(process.CountStart(), 0);
  EXPECT_EQ(process.CountStart(), 1);
  EXPECT_FALSE(process.leaves_by_plan());
  process.LeaveByPlan();
  process.TellToEnd(kNow);
  process.Ended();
  EXPECT_TRUE(process.leaves_by_plan());
}

}  // namespace
}  // namespace ringmaster::launcher
