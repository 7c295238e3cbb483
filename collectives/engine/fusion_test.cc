#include "collectives/engine/fusion.h"

#include <gtest/gtest.h>

#include <string>

namespace ringmaster::engine {
namespace {

class FusionTest : public ::testing::Test {
 protected:
  FusionTest() { ranks_.Reset({"a", "b"}); }

  static Request Of(const std::string& name, uint64_t bytes, int32_t priority = 0,
                    rm_dtype dtype = RM_UINT8) {
    Request request{name, Kind::kAllreduce, dtype, RM_SUM, "", bytes, 1, 1};
    request.priority = priority;
    return request;
  }
  // The batches, written "a+b", in the order in which they run; " | " stands between two responses.
  std::string Fused(std::vector<Request> ready) {
    std::string text;
    for (const Response& response : Fuse(std::move(ready), rules_, false, &ranks_)) {
      if (!text.empty()) text += " | ";
      size_t at = 0;
      for (uint32_t batch : response.batches) {
        if (at > 0) text += " ";
        for (uint32_t i = 0; i < batch; ++i, ++at)
          text += (i > 0 ? "+" : "") + response.requests[at].name;
      }
    }
    return text;
  }

  SetTable sets_;
  ViewRanks ranks_{&sets_};
  FusionRules rules_{.most_bytes = size_t{1} << 20};
};

constexpr uint64_t kKib = 1024;

TEST_F(FusionTest, WhatFitsIntoOneBufferIsPackedTogether) {
  EXPECT_EQ(Fused({Of("a", 600 * kKib), Of("b", 500 * kKib), Of("c", 400 * kKib)}), "a+c | b");
  Request other = Of("b", 4);
  other.op = RM_MAX;
  EXPECT_EQ(Fused({Of("a", 4), other, Of("c", 4)}), "a+c | b");
}

TEST_F(FusionTest, WhatRunsWhereItLiesIsPackedWithNothing) {
  rules_.runs_alone = [](const Request& request) { return request.bytes() >= 256 * kKib; };
  EXPECT_EQ(Fused({Of("a", 256 * kKib), Of("b", 4), Of("c", 300 * kKib), Of("d", 4)}),
            "a | b+d | c");
}

TEST_F(FusionTest, InAGroupToo) {
  rules_.runs_alone = [](const Request& request) { return request.bytes() >= 256 * kKib; };
  std::vector<Request> group = {Of("a", 4), Of("b", 300 * kKib), Of("c", 4, 7),
                                Of("d", 300 * kKib)};
  for (Request& request : group) request.group = GroupOf({"a", "b", "c", "d"});
  EXPECT_EQ(Fused(group), "a+c b d");
}

TEST_F(FusionTest, WhatIsMoreUrgentRunsFirstAndOnlyLittleRidesAlong) {
  EXPECT_EQ(Fused({Of("a", 4, 3), Of("b", 4, 1), Of("c", 4, -2)}), "c+b+a");
  EXPECT_EQ(Fused({Of("last", 200 * kKib, 2), Of("second", 200 * kKib, 1),
                   Of("first", 200 * kKib, 0), Of("small", 4, 5)}),
            "first+small | second | last");
  EXPECT_EQ(Fused({Of("a", 400 * kKib, 1), Of("b", 400 * kKib, 1), Of("c", 400 * kKib, 0)}),
            "c | a+b")
      << "as urgent as each other: up to the size of the buffer";
  EXPECT_EQ(Fused({Of("a", 400 * kKib, 1), Of("b", 4, 0)}), "b | a");
}

TEST_F(FusionTest, ASmallBufferBoundsWhatRidesAlong) {
  rules_.most_bytes = 0;
  EXPECT_EQ(Fused({Of("a", 4, 1), Of("b", 4, 0), Of("c", 4, 0)}), "b | c | a");
}

}  // namespace
}  // namespace ringmaster::engine
