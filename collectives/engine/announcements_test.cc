#include "collectives/engine/announcements.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

// There are three ranks; the last two are in set 1.
class AnnouncementsTest : public ::testing::Test {
 protected:
  AnnouncementsTest() {
    set_ = sets_.Add({"b", "c"});
    ranks_.Reset({"a", "b", "c"});
  }
  static Request Named(const std::string& name, int32_t set = 0) {
    Request request;
    request.name = name;
    request.process_set = set;
    return request;
  }
  static Request InGroup(const std::string& name, const std::vector<std::string>& names) {
    Request request = Named(name);
    request.group = GroupOf(names);
    return request;
  }
  void AllAnnounce(const Request& request) {
    for (int rank : {0, 1, 2}) heard_.Hear(rank, request);
  }
  std::vector<std::string> TakeReady(std::vector<Request> voted = {}) {
    std::vector<std::string> names;
    for (const Request& request : heard_.TakeReady(&voted)) names.push_back(request.name);
    return names;
  }

  using Names = std::vector<std::string>;
  SetTable sets_;
  int32_t set_ = 0;
  ViewRanks ranks_{&sets_};
  JoinedRanks joined_;
  Announcements heard_{&ranks_, &joined_};
};

TEST_F(AnnouncementsTest, WhatAllHaveAnnouncedIsReadyInTheOrderOfItsFirstAnnouncement) {
  heard_.Hear(0, Named("b"));
  heard_.Hear(0, Named("c"));
  heard_.Hear(0, Named("a"));
  for (int rank : {1, 2}) {
    heard_.Hear(rank, Named("a"));
    heard_.Hear(rank, Named("b"));
  }
  EXPECT_EQ(TakeReady(), (Names{"b", "a"}));
  EXPECT_EQ(heard_.keys(), Names{"c"});
  EXPECT_EQ(heard_.Find("a"), nullptr);
}

TEST_F(AnnouncementsTest, OfAProcessSetItsMembersAreEnough) {
  heard_.Hear(1, Named("x", set_));
  EXPECT_EQ(TakeReady(), Names{});
  heard_.Hear(2, Named("x", set_));
  EXPECT_EQ(TakeReady(), Names{"x"});
}

TEST_F(AnnouncementsTest, WhoHasJoinedIsNotWaitedForButAtTheShutdown) {
  joined_.Hear(2);
  Request shutdown = Named(kShutdownName);
  shutdown.kind = Kind::kShutdown;
  for (int rank : {0, 1}) {
    heard_.Hear(rank, Named("a"));
    heard_.Hear(rank, shutdown);
  }
  EXPECT_EQ(TakeReady(), Names{"a"});
  EXPECT_FALSE(heard_.TakeComplete(kShutdownName).has_value());
  heard_.Hear(2, shutdown);
  EXPECT_TRUE(heard_.TakeComplete(kShutdownName).has_value());
}

TEST_F(AnnouncementsTest, OfAGroupNothingIsReadyBeforeAllOfItIsAlsoWhatIsVotedFor) {
  const Names names = {"a", "b", "c"};
  AllAnnounce(InGroup("a", names));
  heard_.Hear(0, InGroup("b", names));
  std::vector<Request> voted = {InGroup("c", names), Named("alone")};
  EXPECT_TRUE(heard_.TakeReady(&voted).empty());
  ASSERT_EQ(voted.size(), 1u) << "c waits with its group";
  EXPECT_EQ(voted[0].name, "alone");
  for (int rank : {1, 2}) heard_.Hear(rank, InGroup("b", names));
  EXPECT_EQ(TakeReady({InGroup("c", names)}), (Names{"a", "b"}));
}

TEST_F(AnnouncementsTest, AJoinIsTakenByItselfAndNotWithWhatIsReady) {
  Request join = Named(kJoinName);
  join.kind = Kind::kJoin;
  AllAnnounce(join);
  EXPECT_EQ(TakeReady(), Names{});
  EXPECT_EQ(heard_.TakeComplete(kJoinName)->size(), 3u);
  EXPECT_TRUE(heard_.keys().empty());
}

TEST_F(AnnouncementsTest, WithOneOfAGroupGoesAllThatSharesAGroupWithItOnAnyRank) {
  heard_.Hear(0, InGroup("a", {"a", "b"}));
  heard_.Hear(1, InGroup("a", {"a", "c"}));
  heard_.Hear(0, InGroup("b", {"a", "b"}));
  heard_.Hear(1, InGroup("c", {"a", "c"}));
  heard_.Hear(0, Named("d"));
  std::set<Group> groups;
  EXPECT_EQ(heard_.TakeWithGroups("a", &groups).size(), 3u);
  EXPECT_EQ(groups.size(), 2u);
  EXPECT_EQ(heard_.keys(), Names{"d"});
}

TEST_F(AnnouncementsTest, OfARemovedSetNothingIsLeft) {
  heard_.Hear(1, Named("x", set_));
  heard_.Hear(1, Named("x"));
  heard_.ForgetSet(set_);
  EXPECT_EQ(heard_.keys(), Names{"x"});
  EXPECT_EQ(heard_.Find(Named("x", set_).key()), nullptr);
}

TEST_F(AnnouncementsTest, WhoHasNotAskedIsMissingUnlessItIsInAnotherSetOrHasJoined) {
  const std::chrono::steady_clock::time_point since(std::chrono::seconds(7));
  heard_.Hear(1, Named("a"));
  heard_.Hear(1, Named("x", set_));
  AllAnnounce(Named("b"));
  joined_.Hear(0);
  const std::string in_set = Named("x", set_).key();
  const auto unanswered =
      heard_.FindUnanswered({{"a", since}, {"b", since}, {in_set, since}, {"unheard", since}});
  ASSERT_EQ(unanswered.size(), 2u);
  EXPECT_EQ(unanswered[0].tensor, "a");
  EXPECT_EQ(unanswered[0].asked, std::vector<int>{1});
  EXPECT_EQ(unanswered[0].missing, std::vector<int>{2});
  EXPECT_EQ(unanswered[0].since, since);
  EXPECT_EQ(unanswered[1].process_set, set_);
  EXPECT_EQ(unanswered[1].missing, std::vector<int>{2});
}

}  // namespace
}  // namespace ringmaster::engine
