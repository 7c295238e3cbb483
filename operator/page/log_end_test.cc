#include "operator/page/log_end.h"

#include <gtest/gtest.h>

namespace ringmaster::page {
namespace {

TEST(LogEndTest, KeepsTheNewestWholeLines) {
  LogEnd end(10);
  for (const char* text : {"first\n", "sec", "ond\nthird\nfou", "rth\n"}) end.Feed(text);
  EXPECT_EQ(end.Finish(), "fourth\n");
  EXPECT_TRUE(end.cut());
}

TEST(LogEndTest, OfOneEndlessLineTheEndIsKept) {
  LogEnd end(4);
  end.Feed("0123456789");
  EXPECT_EQ(end.Finish(), "6789");
  EXPECT_TRUE(end.cut());
}

TEST(LogEndTest, WhatFitsStaysWhole) {
  LogEnd end(4);
  end.Feed("a\nb\n");
  EXPECT_EQ(end.Finish(), "a\nb\n");
  EXPECT_FALSE(end.cut());
}

}  // namespace
}  // namespace ringmaster::page
