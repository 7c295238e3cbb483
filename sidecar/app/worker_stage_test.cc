#include "sidecar/app/worker_stage.h"

#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

TEST(WorkerStageTest, ThatItWaitsForAViewIsNewsUntilAViewLeavesItOut) {
  WorkerStage stage;
  EXPECT_TRUE(stage.Enter(/*takes_state=*/true));
  EXPECT_FALSE(stage.Enter(/*takes_state=*/false));
  EXPECT_FALSE(stage.takes_state()) << "its newest word counts all the same";
  stage.LeftOut();
  EXPECT_FALSE(stage.ready());
  EXPECT_TRUE(stage.Enter(true));
}

TEST(WorkerStageTest, OneThatTheViewListsIsReadyWhenItConnectsAgain) {
  WorkerStage stage;
  stage.Rests(true);
  stage.Reconnected(/*listed=*/false);
  EXPECT_FALSE(stage.ready());
  EXPECT_FALSE(stage.resting()) << "it says so again";
  stage.Reconnected(/*listed=*/true);
  EXPECT_TRUE(stage.ready());
  stage.Reconnected(/*listed=*/false);
  EXPECT_TRUE(stage.ready()) << "it becomes a joiner by a view that does not list it";
}

// Found by the simulator: the word to leave was lost with the connection, and the worker went on.
TEST(WorkerStageTest, OneThatWasToldToLeaveIsDoneWhenItSaysBye) {
  WorkerStage stage;
  stage.Left();
  EXPECT_TRUE(stage.over());
  EXPECT_FALSE(stage.done());
  stage.SaidBye();
  EXPECT_TRUE(stage.done());
}

}  // namespace
}  // namespace ringmaster::app
