#include "collectives/engine/response_cache.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

Request Of(const std::string& name, int32_t priority) {
  Request request;
  request.name = name;
  request.priority = priority;
  return request;
}

TEST(ResponseCacheTest, ARanksOwnPriorityFindsWhatAllHaveAgreedOn) {
  ResponseCache cache;
  cache.Insert(Of("a", 1), /*own_priority=*/4);
  const auto slot = cache.Find(Of("a", 4));
  ASSERT_TRUE(slot);
  EXPECT_EQ(cache.Agreed(*slot), Of("a", 1)) << "which runs alike on all ranks";
  EXPECT_FALSE(cache.Find(Of("a", 1))) << "changed here: the others have to hear it";
}

TEST(ResponseCacheTest, WhatWasNotUsedForLongestMakesRoom) {
  ResponseCache cache(2);
  cache.Insert(Of("a", 0), 0);
  cache.Insert(Of("b", 0), 0);
  cache.Touch(*cache.Find(Of("a", 0)));
  cache.Insert(Of("c", 0), 0);
  EXPECT_TRUE(cache.Find(Of("a", 0)));
  EXPECT_FALSE(cache.Find(Of("b", 0)));
}

}  // namespace
}  // namespace ringmaster::engine
