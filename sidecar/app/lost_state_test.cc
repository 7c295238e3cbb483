#include "sidecar/app/lost_state.h"

#include <gtest/gtest.h>

#include <string>

#include "sidecar/app/testing/agent_parts.h"

namespace ringmaster::app {
namespace {

using std::chrono::seconds;

class LostStateTest : public testing::Test {
 protected:
  LostStateTest() { parts_.StartTraining(); }
  void Resign(const std::string& pod) {
    membership::Message message;
    message.kind = membership::MessageKind::kResign;
    message.from = pod;
    message.incarnation = 1;
    message.view = membership::MakeEpoch(1, 1);
    parts_.peers.OnMessage(membership::EncodeMessage(message), pod, "");
  }
  // The worker of this pod is replaced; connection 3 is the new one, in no view.
  void LoseOwnWorker() {
    parts_.table.OnFrame(1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}}, parts_.now);
    parts_.table.OnHello(3, false, {{"slot", 0}, {"incarnation", 2}, {"tcp", "t"}}, 0, parts_.now);
    parts_.membership.Feed(membership::WorkersChanged{parts_.table.processes().Living()});
  }
  void Check(seconds after) {
    parts_.now += after;
    lost_state_.Check();
  }

  testing_parts::AgentParts parts_;
  OperatorOrders orders_{parts_.clock, &parts_.membership, &parts_.table, &parts_.departure,
                         &parts_.reports};
  LostState lost_state_{/*has_operator=*/false,
                        seconds(600),
                        parts_.clock,
                        {.membership = &parts_.membership,
                         .departure = &parts_.departure,
                         .orders = &orders_,
                         .table = &parts_.table}};
};

TEST_F(LostStateTest, TheJobIsGivenUpWhenAllThatHeldTheStateHaveDied) {
  LoseOwnWorker();
  Resign("u1");
  Check(seconds(0));
  Check(seconds(5));
  EXPECT_FALSE(parts_.Logged("error to 3")) << "u2 may go on";
  Resign("u2");
  Check(seconds(0));
  EXPECT_FALSE(parts_.Logged("error to 3"));
  Check(seconds(5));
  EXPECT_TRUE(parts_.Logged("error to 3"));
}

TEST_F(LostStateTest, APodThatLeavesGivesNothingUp) {
  LoseOwnWorker();
  Resign("u1");
  Resign("u2");
  parts_.departure.FinishByOperator("deleted");
  Check(seconds(0));
  Check(seconds(5));
  EXPECT_FALSE(parts_.Logged("error to 3"));
}

}  // namespace
}  // namespace ringmaster::app
