#include "collectives/transport/parked_hellos.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <limits>

namespace ringmaster::transport {
namespace {

using std::chrono::seconds;

Arrival ArrivalOf(uint64_t epoch, uint32_t rank) {
  Arrival arrival;
  arrival.fd = UniqueFd(eventfd(0, EFD_CLOEXEC));
  arrival.hello.epoch = epoch;
  arrival.hello.rank = rank;
  return arrival;
}

const Clock::time_point kNow{};

TEST(ParkedHellos, TheNewestOfARankTakesTheOldersPlace) {
  ParkedHellos parked;
  Arrival second = ArrivalOf(5, 1);
  const int newest = second.fd.get();
  parked.Add(ArrivalOf(5, 1), kNow);
  parked.Add(std::move(second), kNow);
  const auto taken = parked.Take(5);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].fd.get(), newest);
  EXPECT_EQ(parked.size(), 0u);
}

TEST(ParkedHellos, AreBoundedInAll) {
  ParkedHellos parked({.epochs = 8, .arrivals = 3});
  for (uint32_t rank = 0; rank < 5; ++rank) parked.Add(ArrivalOf(5, rank), kNow);
  EXPECT_EQ(parked.size(), 3u);
  parked.Add(ArrivalOf(5, 0), kNow);  // a rank that is parked already keeps its place
  EXPECT_EQ(parked.Take(5).size(), 3u);
}

TEST(ParkedHellos, OfFewViewsTheNewest) {
  ParkedHellos parked({.epochs = 2});
  for (uint64_t epoch : {5, 6, 7}) parked.Add(ArrivalOf(epoch, 0), kNow);
  EXPECT_TRUE(parked.Take(5).empty());
  EXPECT_EQ(parked.Take(6).size(), 1u);
  EXPECT_EQ(parked.Take(7).size(), 1u);
}

TEST(ParkedHellos, ExpireAndThenAnnounceNothing) {
  ParkedHellos parked({.age = seconds(60)});
  parked.Add(ArrivalOf(5, 0), kNow);
  parked.Add(ArrivalOf(6, 0), kNow + seconds(1));
  parked.Expire(kNow + seconds(61));
  EXPECT_TRUE(parked.Take(5).empty());
  EXPECT_EQ(parked.newest(), 6u);
  parked.Expire(kNow + seconds(62));
  EXPECT_EQ(parked.newest(), 0u);
}

TEST(ParkedHellos, TakeBeforeLeavesTheEpochItself) {
  ParkedHellos parked;
  for (uint64_t epoch : {5, 6, 7}) parked.Add(ArrivalOf(epoch, 0), kNow);
  EXPECT_EQ(parked.TakeBefore(7).size(), 2u);
  EXPECT_EQ(parked.Take(7).size(), 1u);
}

TEST(MayFollow, NotWhatNoJobReaches) {
  const uint64_t current = uint64_t{3} << 40 | 17;
  EXPECT_TRUE(MayFollow(current, current));
  EXPECT_TRUE(MayFollow(current + 1, current));
  EXPECT_TRUE(MayFollow(uint64_t{4} << 40 | 18, current));
  EXPECT_TRUE(MayFollow(uint64_t{1} << 40 | 900, 0)) << "a joiner has built no view yet";
  EXPECT_FALSE(MayFollow(std::numeric_limits<uint64_t>::max(), current));
  EXPECT_FALSE(MayFollow(uint64_t{3} << 40 | 0xffffffff, current));
  EXPECT_FALSE(MayFollow(uint64_t{2000} << 40 | 17, current));
}

}  // namespace
}  // namespace ringmaster::transport
