#include "common/wall_time/wall_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace ringmaster::wall_time {
namespace {

using std::chrono::system_clock;

TEST(FromUnixSeconds, KeepsTimesOfOurDays) {
  for (std::time_t seconds : {-1, 0, 1, 1'767'323'045})
    EXPECT_EQ(system_clock::to_time_t(FromUnixSeconds(seconds)), seconds);
}

TEST(FromUnixSeconds, TakesWhatCannotBeCountedAsTheNearestThatCan) {
  const auto first = FromUnixSeconds(std::numeric_limits<std::time_t>::min());
  const auto last = FromUnixSeconds(std::numeric_limits<std::time_t>::max());
  const std::time_t year_1 = -62'135'596'800, year_9999 = 253'402'300'799;
  EXPECT_EQ(FromUnixSeconds(year_1), first);
  EXPECT_EQ(FromUnixSeconds(year_9999), last);
  EXPECT_LT(first, FromUnixSeconds(0));
  EXPECT_GT(last, FromUnixSeconds(4'000'000'000));
  EXPECT_GT(last - first, system_clock::duration::zero()) << "differences can be counted, too";
}

}  // namespace
}  // namespace ringmaster::wall_time
