#include "collectives/engine/round_vote.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

class RoundVoteTest : public ::testing::Test {
 protected:
  RoundVoteTest() { ranks_.Reset({"a", "b", "c"}); }
  static Request Named(const std::string& name, int32_t set = 0, Kind kind = Kind::kAllreduce) {
    Request request;
    request.name = name;
    request.kind = kind;
    request.process_set = set;
    return request;
  }
  Votes Vote(const std::vector<const Request*>& pending, const Late& late = {},
             bool armed = false) {
    announce_.clear();
    return vote_.Vote(/*self=*/0, pending, late, armed, &announce_);
  }

  using Announce = std::vector<const Request*>;
  SetTable sets_;
  ViewRanks ranks_{&sets_};
  ResponseCache cache_;
  JoinedRanks joined_;
  RoundVote vote_{&sets_, &ranks_, &cache_, &joined_};
  Announce announce_;
  const Request a_ = Named("a"), b_ = Named("b");
};

TEST_F(RoundVoteTest, WhatTheCacheHasIsVotedForAndTheRestAnnounced) {
  cache_.Insert(a_, 0);
  const Votes votes = Vote({&a_, &b_});
  EXPECT_TRUE(votes.has(*cache_.Find(a_)));
  EXPECT_EQ(announce_, Announce{&b_});
  EXPECT_FALSE(votes.announces_nothing());
  EXPECT_FALSE(votes.nothing_new());
}

TEST_F(RoundVoteTest, WhatWasHeardIsNotSaidAgain) {
  cache_.Insert(a_, 0);
  Vote({&a_, &b_});
  vote_.Heard({&a_, &b_}, announce_);
  const Votes again = Vote({&a_, &b_});
  EXPECT_TRUE(again.announces_nothing());
  EXPECT_TRUE(again.nothing_new());
  EXPECT_TRUE(again.has(*cache_.Find(a_))) << "it still waits";
}

TEST_F(RoundVoteTest, AVoteWhoseSlotHasGoneIsAnnounced) {
  cache_.Insert(a_, 0);
  Vote({&a_});
  vote_.Heard({&a_}, announce_);
  cache_.Evict("a");
  const Votes votes = Vote({&a_});
  EXPECT_EQ(announce_, Announce{&a_});
  EXPECT_FALSE(votes.nothing_new());
}

TEST_F(RoundVoteTest, WhatIsAgreedOnIsNewWhenItIsAskedForOnceMore) {
  cache_.Insert(a_, 0);
  Vote({&a_});
  vote_.Heard({&a_}, announce_);
  vote_.Forget(a_);
  EXPECT_FALSE(Vote({&a_}).nothing_new());
}

TEST_F(RoundVoteTest, WhatHasWaitedForLongIsAnnouncedThoughTheCacheHasIt) {
  cache_.Insert(a_, 0);
  const Late late = {{"a", {}}};
  EXPECT_TRUE(vote_.Announced(late).empty());
  const Votes votes = Vote({&a_}, late);
  EXPECT_FALSE(votes.has(*cache_.Find(a_)));
  EXPECT_EQ(announce_, Announce{&a_});
  vote_.Heard({&a_}, announce_);
  EXPECT_EQ(vote_.Announced(late), late);
}

TEST_F(RoundVoteTest, WhoIsInNoSetVotesForWhatTheSetMayWant) {
  const int32_t set = sets_.Add({"b", "c"});
  cache_.Insert(Named("x", set), 0);
  cache_.Insert(a_, 0);
  const Votes votes = Vote({});
  EXPECT_TRUE(votes.has(0));
  EXPECT_FALSE(votes.has(1)) << "of the world it votes for its own";
}

TEST_F(RoundVoteTest, WhoHasJoinedVotesForAllThatTheOthersMayWantAndForNoPlannedChange) {
  cache_.Insert(a_, 0);
  EXPECT_TRUE(Vote({}, {}, /*armed=*/true).armed());
  joined_.Hear(0);
  const Votes votes = Vote({}, {}, /*armed=*/true);
  EXPECT_TRUE(votes.has(0));
  EXPECT_FALSE(votes.armed());
  EXPECT_TRUE(votes.only_joins());
  for (int rank : {1, 2}) joined_.Hear(rank);
  EXPECT_FALSE(Vote({}).has(0)) << "all have joined: nobody is left that wants it";
}

TEST_F(RoundVoteTest, WhoHasJoinedDoesNotVoteForWhatItAnnounces) {
  cache_.Insert(a_, 0);
  joined_.Hear(0);
  Request other = a_;
  other.count = 7;
  EXPECT_FALSE(Vote({&other}).has(0));
  EXPECT_EQ(announce_, Announce{&other});
  EXPECT_TRUE(Vote({&a_}).has(0)) << "as the others have it";
}

TEST_F(RoundVoteTest, ARankThatWaitsForMoreThanAJoinSaysSo) {
  const Request join = Named(kJoinName, 0, Kind::kJoin);
  EXPECT_TRUE(Vote({&join}).only_joins());
  EXPECT_FALSE(Vote({&join, &a_}).only_joins());
}

TEST_F(RoundVoteTest, OfARemovedSetNothingWasSaid) {
  const int32_t set = sets_.Add({"a", "b"});
  const Request x = Named("x", set);
  Vote({&x});
  vote_.Heard({&x}, announce_);
  EXPECT_TRUE(Vote({&x}).announces_nothing());
  vote_.ForgetSet(set);
  EXPECT_FALSE(Vote({&x}).announces_nothing());
}

}  // namespace
}  // namespace ringmaster::engine
