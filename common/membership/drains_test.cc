#include "common/membership/drains.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

using std::chrono::seconds;

TEST(DrainsTest, TheEarlierDeadlineOfThisPodCounts) {
  Drains drains("p0");
  const TimePoint now{seconds(10)};
  drains.Request({{"p1"}, now});
  EXPECT_FALSE(drains.NextDeadline()) << "another pod's deadline";
  drains.Request({{"p0"}, now + seconds(9)});
  drains.Request({{"p0"}, now + seconds(5)});
  drains.Request({{"p0"}, now + seconds(7)});
  EXPECT_EQ(drains.NextDeadline(), now + seconds(5));
  EXPECT_FALSE(drains.Expire(now));
  EXPECT_TRUE(drains.Expire(now + seconds(5)));
  EXPECT_FALSE(drains.Expire(now + seconds(6))) << "once";
  EXPECT_FALSE(drains.NextDeadline());
}

TEST(DrainsTest, ADrainedPodHasLeftWhenAViewIsWithoutIt) {
  Drains drains("p0");
  drains.EnterView(false);
  EXPECT_FALSE(drains.left()) << "nobody has asked it to leave";
  drains.Add({"p0"});
  drains.EnterView(true);
  EXPECT_FALSE(drains.left());
  drains.EnterView(false);
  EXPECT_TRUE(drains.left());
}

TEST(DrainsTest, OthersThatAreInTheViewNoMoreAreTakenOut) {
  Drains drains("p5");
  drains.Add({"p0", "p5", "p7"});
  const ViewPtr view = TestView(2);
  EXPECT_EQ(drains.LeavingPods(*view), (Strings{"p0"}));
  EXPECT_EQ(drains.TakeDeparted(*view), (Strings{"p7"}));
  EXPECT_TRUE(drains.draining()) << "this pod wants to leave still";
  EXPECT_FALSE(drains.Contains("p7"));
}

}  // namespace
}  // namespace ringmaster::membership
