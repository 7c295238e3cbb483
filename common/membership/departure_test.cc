#include "common/membership/departure.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

using std::chrono::seconds;

TEST(DepartureTest, TheEarlierDeadlineOfThisPodCounts) {
  Departure departure("p0");
  const TimePoint now{seconds(10)};
  departure.Request({{"p1"}, now});
  EXPECT_FALSE(departure.NextDeadline()) << "another pod's deadline";
  departure.Request({{"p0"}, now + seconds(9)});
  departure.Request({{"p0"}, now + seconds(5)});
  departure.Request({{"p0"}, now + seconds(7)});
  EXPECT_EQ(departure.NextDeadline(), now + seconds(5));
  EXPECT_FALSE(departure.Expire(now));
  EXPECT_TRUE(departure.Expire(now + seconds(5)));
  EXPECT_FALSE(departure.Expire(now + seconds(6))) << "once";
  EXPECT_FALSE(departure.NextDeadline());
}

TEST(DepartureTest, ADrainedPodHasLeftWhenAViewIsWithoutIt) {
  Departure departure("p0");
  departure.EnterView(false);
  EXPECT_FALSE(departure.left()) << "nobody has asked it to leave";
  departure.Add({"p0"});
  departure.EnterView(true);
  EXPECT_FALSE(departure.left());
  departure.EnterView(false);
  EXPECT_TRUE(departure.left());
}

TEST(DepartureTest, OthersThatAreInTheViewNoMoreAreTakenOut) {
  Departure departure("p5");
  departure.Add({"p0", "p5", "p7"});
  const ViewPtr view = TestView(2);
  EXPECT_EQ(departure.LeavingPods(*view), (Strings{"p0"}));
  EXPECT_EQ(departure.TakeDeparted(*view), (Strings{"p7"}));
  EXPECT_TRUE(departure.draining()) << "this pod wants to leave still";
  EXPECT_FALSE(departure.Contains("p7"));
}

}  // namespace
}  // namespace ringmaster::membership
