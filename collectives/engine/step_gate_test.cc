#include "collectives/engine/step_gate.h"

#include <gtest/gtest.h>

#include "collectives/engine/fake_communicator.h"
#include "collectives/engine/fake_listener.h"

namespace ringmaster::engine {
namespace {

using Heard = std::vector<std::string>;

class StepGateTest : public ::testing::Test {
 protected:
  void Enter(uint64_t epoch, bool train = true) {
    WorkerView view;
    view.epoch = epoch;
    view.self = 0;
    view.train = train;
    view.peers.resize(2);
    view.workers = {"a", "b"};
    ASSERT_TRUE(connection_.Connect(std::move(view)).ok());
    connection_.Activate();
    info_.entered = true;
  }
  std::shared_ptr<Operation> EndStep() {
    Request request;
    request.name = kStepEndName;
    request.kind = Kind::kStepEnd;
    auto operation = std::make_shared<Operation>(std::move(request), nullptr, nullptr);
    gate_.Reach(operation);
    return operation;
  }

  HostCommunicator host_;
  FakeFactory factory_;
  FakeListener listener_;
  UserTasks users_;
  EngineInfo info_;
  ViewConnection connection_{&host_, &factory_, &listener_};
  StepGate gate_{&connection_, &listener_, &users_, &info_};
};

TEST_F(StepGateTest, WhoHasEndedAStepWaitsUntilTheGateOpens) {
  EXPECT_TRUE(gate_.waits()) << "it has not been let in";
  Enter(5);
  EXPECT_FALSE(gate_.waits());
  const auto operation = EndStep();
  EXPECT_TRUE(gate_.waits());
  EXPECT_EQ(info_.step, 1u);
  EXPECT_FALSE(operation->done());
  gate_.Open();
  EXPECT_FALSE(gate_.waits());
  ASSERT_TRUE(operation->done());
  EXPECT_EQ(operation->step.epoch, 5u);
  EXPECT_EQ(operation->step.size, 2);
  EXPECT_EQ(operation->step.step, 1u);
}

TEST_F(StepGateTest, APlannedChangeIsArmedForOneViewAndEveryStepIsTheLastOneBelowTheMinimum) {
  Enter(5);
  EXPECT_FALSE(gate_.closes());
  gate_.Obey({{5, true}});
  EXPECT_TRUE(gate_.closes());
  Enter(6);
  EXPECT_FALSE(gate_.closes());
  Enter(7, /*train=*/false);
  EXPECT_TRUE(gate_.closes());
}

TEST_F(StepGateTest, WhoStandsThereSaysSoAgainWhenTheOrderIsRepeated) {
  Enter(5);
  gate_.Obey({{5, true}});
  EXPECT_EQ(listener_.heard, Heard{}) << "nobody stands there yet";
  EndStep();
  gate_.Obey({{4, true}, {5, true}});
  EXPECT_EQ(listener_.heard, Heard{"boundary 5 1"});
}

TEST_F(StepGateTest, ACancelledChangeLetsAllGoOnThatStandThere) {
  Enter(5);
  gate_.Obey({{5, true}});
  const auto operation = EndStep();
  gate_.Obey({{5, false}});
  EXPECT_TRUE(operation->done());
}

TEST_F(StepGateTest, AnOrderOfAnotherViewOpensNothing) {
  Enter(5);
  const auto operation = EndStep();
  gate_.Obey({{5, false}});
  EXPECT_FALSE(operation->done()) << "it was never armed";
  gate_.Obey({{6, true}});
  gate_.Obey({{6, false}});
  EXPECT_FALSE(operation->done());
}

TEST_F(StepGateTest, BelowTheMinimumACancelledChangeOpensNothing) {
  Enter(5, /*train=*/false);
  gate_.Obey({{5, true}});
  const auto operation = EndStep();
  gate_.Obey({{5, false}});
  EXPECT_FALSE(operation->done());
  gate_.Fail({RM_ERR_LEFT, "drained"});
  EXPECT_EQ(operation->status().code(), RM_ERR_LEFT);
}

TEST_F(StepGateTest, AStepsRanksAreThoseOfTheViewInWhichItBegan) {
  Enter(5);
  EndStep();
  gate_.Open();
  EXPECT_EQ(info_.step_ranks().epoch, 5u);
  EXPECT_EQ(info_.step_ranks().workers, (std::vector<std::string>{"a", "b"}));
  Enter(6);
  gate_.Open();
  EXPECT_EQ(info_.step_ranks().epoch, 5u) << "a fault within the step doesn't move them";
  gate_.Rename();
  EXPECT_EQ(info_.step_ranks().epoch, 6u);
}

TEST_F(StepGateTest, AStepThatEndsWithoutACallOfTheUserMovesItsRanksToo) {
  Enter(5);
  EndStep();
  gate_.Open();
  Enter(6);
  gate_.Reach(nullptr);
  EXPECT_TRUE(gate_.waits());
  gate_.Open();
  EXPECT_FALSE(gate_.waits());
  EXPECT_EQ(info_.step_ranks().epoch, 6u);
}

TEST_F(StepGateTest, WhoBeginsAStepInWhichOthersAreTakesItsRanksFromThem) {
  Enter(6);
  const auto operation = EndStep();
  gate_.Adopt({5, {"dead", "a", "b"}});
  gate_.Open(/*begun=*/true);
  EXPECT_EQ(info_.step_ranks().workers.front(), "dead");
  EXPECT_EQ(operation->step.epoch, 5u);
  EXPECT_EQ(operation->step.size, 3);
}

TEST_F(StepGateTest, WhoIsGivenStateIsAtTheStepThatTheStateIsOf) {
  gate_.Restart(7);
  EXPECT_EQ(gate_.step(), 7u);
  EXPECT_EQ(info_.step, 7u);
}

}  // namespace
}  // namespace ringmaster::engine
