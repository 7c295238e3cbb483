#include "collectives/communicator/group_map.h"

#include <gtest/gtest.h>

#include <string>

namespace ringmaster::communicator {
namespace {

using Ranks = std::vector<int>;

TEST(GroupMapTest, ARankSeesItsGroupAndWhoLeadsTheOthers) {
  // Ranks 0, 2, 3 share memory, and 1 and 4.
  const GroupMap third({0, 1, 0, 0, 1}, 3);
  EXPECT_EQ(third.groups(), 2u);
  EXPECT_EQ(third.own(), 0u);
  EXPECT_EQ(third.own_members(), (Ranks{0, 2, 3}));
  EXPECT_FALSE(third.leads());
  EXPECT_EQ(third.PlaceInOwn(3), 2);
  EXPECT_EQ(third.Leaders(), (Ranks{0, 1}));
  EXPECT_EQ(third.Members(1), (Ranks{1, 4}));
  EXPECT_EQ(third.GroupOf(4), 1u);
  EXPECT_EQ(third.OfOwn(std::vector<std::string>{"a", "b", "c", "d", "e"}),
            (std::vector<std::string>{"a", "c", "d"}));
  EXPECT_TRUE(GroupMap({0, 1, 0, 0, 1}, 1).leads());
}

TEST(GroupMapTest, ApartEachRankLeadsItself) {
  const GroupMap apart = GroupMap::Apart(3, 2);
  EXPECT_EQ(apart.groups(), 3u);
  EXPECT_TRUE(apart.leads());
  EXPECT_EQ(apart.own_members(), Ranks{2});
  EXPECT_EQ(apart.Leaders(), (Ranks{0, 1, 2}));
}

TEST(FormGroupsTest, OnlyRanksThatHaveAllMappedEachOtherShareAGroup) {
  const auto form = [](const std::vector<std::string>& rows) {
    std::vector<std::vector<uint8_t>> can_map;
    for (const std::string& row : rows) {
      can_map.emplace_back();
      for (char c : row) can_map.back().push_back(c == '1');
    }
    return FormGroups(can_map);
  };
  using Groups = std::vector<uint32_t>;
  EXPECT_EQ(form({"111", "111", "111"}), (Groups{0, 0, 0}));
  EXPECT_EQ(form({"100", "010", "001"}), (Groups{0, 1, 2}));
  EXPECT_EQ(form({"1010", "0101", "1010", "0101"}), (Groups{0, 1, 0, 1}));
  EXPECT_EQ(form({"11", "01"}), (Groups{0, 1})) << "mapped by one of the two alone";
  EXPECT_EQ(form({"10", "11"}), (Groups{0, 1})) << "or by the other alone";
  EXPECT_EQ(form({"110", "111", "011"}), (Groups{0, 0, 1})) << "the third has not mapped the first";
}

}  // namespace
}  // namespace ringmaster::communicator
