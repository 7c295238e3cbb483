#include "sidecar/app/worker_liveness.h"

#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const SteadyTime kStart(seconds(100));

TEST(WorkerLivenessTest, OneThatAViewNamesIsUnheardUntilItOrItsLauncherSpeaks) {
  WorkerLiveness worker;
  worker.ExpectedByView(kStart);
  EXPECT_TRUE(worker.unheard());
  worker.NamedByLauncher();
  EXPECT_FALSE(worker.unheard());
  EXPECT_EQ(worker.closed_at(), kStart) << "it runs, but may never connect again";
  worker.ExpectedByView(kStart);
  worker.ConnectionOpened(kStart + seconds(1));
  EXPECT_FALSE(worker.unheard());
  EXPECT_FALSE(worker.closed_at());
}

TEST(WorkerLivenessTest, TheLauncherIsAskedAfterThreePingsAndAgainAfterOne) {
  WorkerLiveness worker;
  worker.Heard(kStart);
  EXPECT_EQ(worker.AskAt(seconds(1), milliseconds(250)), kStart + milliseconds(750));
  worker.LauncherAsked(kStart + milliseconds(800));
  EXPECT_EQ(worker.AskAt(seconds(1), milliseconds(250)), kStart + milliseconds(1050));
}

TEST(WorkerLivenessTest, OneThatIsStoppedIsAskedAboutAsSoonAsItMayBeKilled) {
  WorkerLiveness worker;
  worker.Heard(kStart);
  worker.Halted(kStart);
  worker.Halted(kStart + seconds(2));
  EXPECT_EQ(worker.halted_at(), kStart) << "it has not gone on in between";
  EXPECT_EQ(worker.AskAt(seconds(1), milliseconds(250)), kStart + seconds(1));
  worker.Heard(kStart + seconds(3));
  EXPECT_EQ(worker.StillFor(kStart + seconds(4)), seconds(4));
  worker.Continued();
  EXPECT_EQ(worker.StillFor(kStart + seconds(4)), seconds(1));
}

TEST(WorkerLivenessTest, TheSidecarsOwnSleepDoesNotCountAsSilence) {
  WorkerLiveness worker;
  worker.Heard(kStart);
  worker.ConnectionClosed(kStart + seconds(1));
  worker.ForgiveOwnSleep(seconds(60), kStart + seconds(60));
  EXPECT_EQ(worker.SilentFor(kStart + seconds(60)), seconds(0));
  EXPECT_EQ(worker.closed_at(), kStart + seconds(60)) << "not later than now";
}

}  // namespace
}  // namespace ringmaster::app
