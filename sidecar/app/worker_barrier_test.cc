#include "sidecar/app/worker_barrier.h"

#include <gtest/gtest.h>

#include <memory>

namespace ringmaster::app {
namespace {

const Epoch kEpoch = membership::MakeEpoch(1, 1);

class WorkerBarrierTest : public testing::Test {
 protected:
  void SetUp() override {
    membership::View view;
    view.epoch = kEpoch;
    view.pods.push_back({.uid = "u0", .name = "p0"});
    view.ranks.push_back({.pod = 0, .slot = 0, .incarnation = 1});
    view_.Set(std::make_shared<const membership::View>(view));
    workers_[0].connection.Open(2, false, false);
  }
  PodView view_{"u0"};
  WorkerBarrier barrier_;
  std::vector<WorkerProcess> workers_ = {{0, 1}};
};

TEST_F(WorkerBarrierTest, AStopIsAnsweredOnceWhenNoWorkerMayUseTheView) {
  EXPECT_FALSE(barrier_.TakeStopped(workers_, view_)) << "nothing was asked";
  workers_[0].views.Sent(kEpoch);
  barrier_.Stop(kEpoch);
  EXPECT_FALSE(barrier_.TakeStopped(workers_, view_));
  workers_[0].views.Stopped(kEpoch);
  EXPECT_EQ(barrier_.TakeStopped(workers_, view_), kEpoch);
  EXPECT_FALSE(barrier_.TakeStopped(workers_, view_));
}

TEST_F(WorkerBarrierTest, AWorkerOfTheViewThatHasNotSaidHelloMayUseIt) {
  workers_[0].connection = {};
  barrier_.Stop(kEpoch);
  EXPECT_FALSE(barrier_.TakeStopped(workers_, view_));
}

TEST_F(WorkerBarrierTest, TheBoundaryIsReachedByAllAndAStopEndsTheWait) {
  barrier_.Arm(kEpoch);
  EXPECT_FALSE(barrier_.TakeBoundary(workers_, view_));
  workers_[0].views.AtBoundary(kEpoch);
  EXPECT_EQ(barrier_.TakeBoundary(workers_, view_), kEpoch);
  barrier_.Arm(kEpoch);
  barrier_.Stop(kEpoch);
  EXPECT_FALSE(barrier_.TakeBoundary(workers_, view_));
}

}  // namespace
}  // namespace ringmaster::app
