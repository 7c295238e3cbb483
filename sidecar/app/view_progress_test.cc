#include "sidecar/app/view_progress.h"

#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

TEST(ViewProgressTest, AWorkerWithoutAViewHasNothingToStop) {
  ViewProgress views;
  EXPECT_FALSE(views.TellToStop(7));
  views.Sent(7);
  EXPECT_TRUE(views.TellToStop(7));
  EXPECT_FALSE(views.TellToStop(7)) << "it has been told";
  EXPECT_TRUE(views.TellToStop(8));
}

TEST(ViewProgressTest, OneThatConnectsAgainIsToldAgain) {
  ViewProgress views;
  views.Sent(7);
  EXPECT_TRUE(views.TellToStop(7));
  views.Reconnected(/*built=*/6, /*given=*/7);
  EXPECT_EQ(views.installed(), 6u);
  EXPECT_EQ(views.sent(), 7u);
  EXPECT_TRUE(views.TellToStop(7));
  views.Reconnected(/*built=*/8, /*given=*/0);
  EXPECT_EQ(views.sent(), 8u) << "a view that it has built was given to it";
}

TEST(ViewProgressTest, AViewThatItWasSentOrHasStoppedIsPast) {
  ViewProgress views;
  views.Stopped(7);
  views.Stopped(5);
  EXPECT_EQ(views.stopped(), 7u);
  EXPECT_TRUE(views.IsPast(7));
  EXPECT_FALSE(views.IsPast(8));
  views.Sent(8);
  EXPECT_TRUE(views.IsPast(8));
  views.LeftOut();
  EXPECT_FALSE(views.IsPast(8));
}

TEST(ViewProgressTest, AViewOlderThanWhatItWasToldToStopIsPast) {
  ViewProgress views;
  views.Sent(7);
  EXPECT_TRUE(views.TellToStop(9));
  EXPECT_TRUE(views.IsPast(8)) << "it would not hear that this view leaves it out";
  EXPECT_TRUE(views.IsPast(9));
  EXPECT_FALSE(views.IsPast(10));
}

TEST(ViewProgressTest, ThatItHasTheStateIsNewsOnceInAView) {
  ViewProgress views;
  EXPECT_FALSE(views.Holds(0));
  EXPECT_TRUE(views.Holds(7));
  EXPECT_FALSE(views.Holds(7));
  EXPECT_TRUE(views.Holds(0));
}

}  // namespace
}  // namespace ringmaster::app
