#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// Three pods train in a view whose successor two of them have installed; its coordinator, the
// third, has not reported it.
class ViewWantedTest : public testing::Test {
 protected:
  ViewWantedTest() {
    next_ = world_.in.view->epoch + 1;
    world_.in.told_view = {next_, world_.in.now};
    world_.Sidecar(1).epoch = world_.Sidecar(2).epoch = next_;
  }
  std::vector<std::string> Asked() const { return AskedBy(Plan(world_.in)); }
  static std::vector<std::string> AskedBy(const Decision& decision) {
    std::vector<std::string> uids;
    for (const PodNotice& sent : decision.notices) {
      if (std::holds_alternative<ViewWantedNotice>(sent.notice)) uids.push_back(sent.pod_uid);
    }
    return uids;
  }

  World world_ = World::Training(3);
  membership::Epoch next_ = 0;
};

TEST_F(ViewWantedTest, TheCoordinatorHasAMomentToReportIt) {
  const Decision out = Plan(world_.in);
  EXPECT_THAT(AskedBy(out), IsEmpty());
  ASSERT_TRUE(out.look_again);
  EXPECT_LE(*out.look_again, milliseconds(1100));
}

TEST_F(ViewWantedTest, ThenThoseThatHaveItAreAskedOneAfterTheOther) {
  world_.in.now += seconds(1);
  EXPECT_THAT(Asked(), ElementsAre(world_.Pod(1).uid));
  world_.in.now += seconds(1);
  EXPECT_THAT(Asked(), ElementsAre(world_.Pod(2).uid));
  world_.in.now += seconds(2);
  EXPECT_THAT(Asked(), ElementsAre(world_.Pod(1).uid)) << "and in turn, ever more seldom";
  world_.Sidecar(1).connected = false;
  EXPECT_THAT(Asked(), ElementsAre(world_.Pod(2).uid));
  world_.Sidecar(2).connected = false;
  EXPECT_THAT(Asked(), IsEmpty()) << "nobody could answer";
}

// Found by the simulator: all had ended before anybody was asked, and the job was taken for
// unfinished.
TEST_F(ViewWantedTest, WhereAllRanksHaveAgreedToEndThereIsNoMomentToLose) {
  world_.Sidecar(2).finished_epoch = next_;
  EXPECT_THAT(Asked(), ElementsAre(world_.Pod(1).uid));
}

TEST_F(ViewWantedTest, NobodyIsAskedForAViewThatIsKnown) {
  world_.in.now += seconds(9);
  world_.in.told_view.epoch = world_.in.view->epoch;
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(ViewWantedTest, AnEpochThatNobodyCanShowIsAskedForInTheEndNoMore) {
  world_.in.now += seconds(100'000);
  const Decision out = Plan(world_.in);
  EXPECT_THAT(AskedBy(out), IsEmpty());
  EXPECT_TRUE(!out.look_again || *out.look_again > seconds(5)) << out.look_again->count();
}

// The record is gone, and a new operator has heard nothing but that a pod has a view.
TEST(FirstViewTest, NoneIsMadeWhereASidecarSaysThatItHasOne) {
  World world(2);
  world.Running(0).Ready(0).Running(1).Ready(1);
  world.in.told_view = {membership::MakeEpoch(1, 5), world.in.now};
  world.in.now += seconds(60);
  EXPECT_EQ(Plan(world.in).first_view, nullptr);
}

}  // namespace
}  // namespace ringmaster::planner
