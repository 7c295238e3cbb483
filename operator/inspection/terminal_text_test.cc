#include "operator/inspection/terminal_text.h"

#include <gtest/gtest.h>

namespace ringmaster::inspection {
namespace {

TEST(TerminalTextTest, ACutLeavesWholeCharactersThatFit) {
  EXPECT_EQ(CutToColumns("Größe", 3), "Grö");
  EXPECT_EQ(CutToColumns("Größe", 4), "Größ");
  EXPECT_EQ(CutToColumns("Größe", 80), "Größe");
  EXPECT_EQ(CutToColumns("a層b", 2), "a") << "a wide one needs two columns";
  EXPECT_EQ(CutToColumns("a層b", 3), "a層");
  EXPECT_EQ(CutToColumns("\xF0\x9F\x94\xA5!", 1), "");
  EXPECT_EQ(CutToColumns("", 5), "");
}

TEST(TerminalTextTest, WhatIsNoUtf8CountsByteForByte) {
  EXPECT_EQ(CutToColumns("\xC3(x", 2), "\xC3(");
  EXPECT_EQ(CutToColumns("a\xE5\xB1", 2), "a\xE5") << "a character that was cut already";
  EXPECT_EQ(Columns("\xFF\xFE"), 2U);
}

TEST(TerminalTextTest, ColumnsAreNoBytes) {
  EXPECT_EQ(Columns("layer"), 5U);
  EXPECT_EQ(Columns("Größe"), 5U);
  EXPECT_EQ(Columns("層"), 2U);
}

}  // namespace
}  // namespace ringmaster::inspection
