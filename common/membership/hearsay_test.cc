#include "common/membership/hearsay.h"

#include <gtest/gtest.h>

namespace ringmaster::membership {
namespace {

using Edges = Hearsay::Edges;

constexpr std::chrono::milliseconds kPatience{500};

class Told : public testing::Test {
 protected:
  void Weigh(const std::vector<bool>& gone) { hearsay.Weigh(gone, /*self=*/0, now); }
  TimePoint now{};
  Hearsay hearsay{kPatience};
};

TEST_F(Told, WhatOneSaysOfAnotherCountsAtOnce) {
  hearsay.Accuse(2, 1);
  Weigh({false, false, false});
  EXPECT_EQ(hearsay.counted(), (Edges{{2, 1}}));
  EXPECT_FALSE(hearsay.due());
}

TEST_F(Told, WhatOneSaysOfSeveralCountsAfterAWhile) {
  hearsay.Accuse(2, 1);
  hearsay.Accuse(2, 3);
  Weigh({false, false, false, false});
  EXPECT_EQ(hearsay.counted(), Edges{});
  ASSERT_EQ(hearsay.due(), now + kPatience);
  now += kPatience / 2;
  Weigh({false, false, false, false});
  EXPECT_EQ(hearsay.counted(), Edges{}) << "the while began with the first word";
  now += kPatience / 2;
  Weigh({false, false, false, false});
  EXPECT_EQ(hearsay.counted(), (Edges{{2, 1}, {2, 3}}));
  EXPECT_FALSE(hearsay.due()) << "nothing more comes with time";
}

// A machine with pods 1 and 3 is gone: this pod misses the first of them itself.
TEST_F(Told, OfPodsThatAreGoneAnywayNothingIsCounted) {
  hearsay.Accuse(2, 1);
  hearsay.Accuse(2, 3);
  Weigh({false, true, false, false});
  EXPECT_EQ(hearsay.counted(), (Edges{{2, 3}}));
  EXPECT_FALSE(hearsay.due());
  Weigh({false, true, false, true});
  EXPECT_EQ(hearsay.counted(), Edges{});
}

TEST_F(Told, WhatTwoSayOfTheSameCountsAtOnce) {
  for (const int accuser : {2, 4}) {
    for (const int accused : {1, 3}) hearsay.Accuse(accuser, accused);
  }
  Weigh(std::vector<bool>(5));
  EXPECT_EQ(hearsay.counted().size(), 4u);
}

TEST_F(Told, WhoAccusesAndIsAccusedIsNotWaitedFor) {
  hearsay.Accuse(2, 1);
  hearsay.Accuse(2, 3);
  hearsay.Accuse(3, 2);
  Weigh({false, false, false, false});
  EXPECT_EQ(hearsay.counted().size(), 3u);
}

TEST_F(Told, WhatHasCountedGoesOnCountingWhenTheSameSaysMore) {
  hearsay.Accuse(2, 1);
  Weigh({false, false, false, false});
  hearsay.Accuse(2, 3);
  Weigh({false, false, false, false});
  EXPECT_EQ(hearsay.counted(), (Edges{{2, 1}}));
  now += kPatience;
  Weigh({false, false, false, false});
  EXPECT_EQ(hearsay.counted().size(), 2u);
}

TEST_F(Told, WhoDoesNotHearThisPodIsNotWaitedFor) {
  hearsay.Accuse(2, 0);
  hearsay.Accuse(2, 1);
  Weigh({false, false, false});
  EXPECT_EQ(hearsay.counted().size(), 2u);
}

TEST_F(Told, ANewViewKnowsNothingOfIt) {
  hearsay.Accuse(2, 1);
  hearsay.Accuse(2, 3);
  Weigh(std::vector<bool>(4));
  hearsay.Clear();
  EXPECT_FALSE(hearsay.due());
  now += kPatience;
  Weigh(std::vector<bool>(4));
  EXPECT_EQ(hearsay.counted(), Edges{});
}

}  // namespace
}  // namespace ringmaster::membership
