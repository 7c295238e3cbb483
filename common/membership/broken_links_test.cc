#include "common/membership/broken_links.h"

#include <gtest/gtest.h>

namespace ringmaster::membership {
namespace {

TEST(BrokenLinksTest, WhatIsSaidAgainIsNotNews) {
  BrokenLinks links;
  EXPECT_TRUE(links.Break());
  EXPECT_FALSE(links.Break());
  EXPECT_TRUE(links.Accuse(0, 1));
  EXPECT_FALSE(links.Accuse(0, 1));
  EXPECT_TRUE(links.Accuse(1, 0)) << "the other end says it, too";
}

TEST(BrokenLinksTest, ABlamedPodAloneBreaksNoRing) {
  BrokenLinks links;
  links.Accuse(0, 1);
  EXPECT_FALSE(links.broken());
}

TEST(BrokenLinksTest, APodRepeatsOnlyItsOwnAccusations) {
  BrokenLinks links;
  links.Accuse(0, 2);
  links.Accuse(1, 0);
  links.Accuse(0, 1);
  EXPECT_EQ(links.AccusedBy(0), (std::vector<int>{1, 2}));
  EXPECT_TRUE(links.AccusedBy(2).empty());
}

TEST(BrokenLinksTest, ANewViewBeginsWithNothing) {
  BrokenLinks links;
  links.Break();
  links.Accuse(0, 1);
  links.Clear();
  EXPECT_FALSE(links.broken());
  EXPECT_TRUE(links.accusations().empty());
}

}  // namespace
}  // namespace ringmaster::membership
