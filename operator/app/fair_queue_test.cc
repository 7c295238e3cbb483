#include "operator/app/fair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

using Queue = FairQueue<int>;
using testing::Optional;
using testing::Pair;

TEST(FairQueueTest, AJobThatCallsOftenWaitsForItselfOnly) {
  Queue queue(100, 1000);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(queue.Add("loud", i));
  EXPECT_TRUE(queue.Add("quiet", 7));
  EXPECT_THAT(queue.Take(), Optional(Pair("loud", 0)));
  EXPECT_THAT(queue.Take(), Optional(Pair("quiet", 7)));
  EXPECT_EQ(queue.Take(), std::nullopt) << "one call of a job at a time";
  queue.Done("loud");
  EXPECT_THAT(queue.Take(), Optional(Pair("loud", 1)));
}

TEST(FairQueueTest, JobsTakeTurns) {
  Queue queue(100, 1000);
  for (int i = 0; i < 2; ++i) {
    for (const char* job : {"a", "b", "c"}) EXPECT_TRUE(queue.Add(job, i));
  }
  std::string order;
  while (const auto call = queue.Take()) {
    order += call->first;
    queue.Done(call->first);
  }
  EXPECT_EQ(order, "abcabc");
  EXPECT_EQ(queue.size(), 0u);
}

TEST(FairQueueTest, EachJobHasItsPlacesAndAllTogetherToo) {
  Queue queue(2, 3);
  EXPECT_TRUE(queue.Add("a", 1));
  EXPECT_TRUE(queue.Add("a", 2));
  EXPECT_FALSE(queue.Add("a", 3));
  EXPECT_TRUE(queue.Add("b", 1));
  EXPECT_FALSE(queue.Add("c", 1));
  EXPECT_TRUE(queue.Take());
  EXPECT_TRUE(queue.Add("c", 1)) << "one has gone";
}

}  // namespace
}  // namespace ringmaster::app
