#include "common/plain_text/plain_text.h"

#include <gtest/gtest.h>

namespace ringmaster::plain_text {
namespace {

TEST(PlainTextTest, ACutLeavesWholeCharactersThatFit) {
  EXPECT_EQ(Cut("Größe", 2), "Gr");
  EXPECT_EQ(Cut("Größe", 3), "Gr") << "half an o with dots is no character";
  EXPECT_EQ(Cut("Größe", 4), "Grö");
  EXPECT_EQ(Cut("Größe", 7), "Größe");
  EXPECT_EQ(Cut("層", 2), "");
  EXPECT_EQ(Cut("", 0), "");
}

TEST(PlainTextTest, DotsSayThatSomethingWasCutOff) {
  EXPECT_EQ(CutWithDots("Größe", 3), "Gr...");
  EXPECT_EQ(CutWithDots("Größe", 7), "Größe");
}

TEST(PlainTextTest, ControlsMoveNoTerminal) {
  EXPECT_EQ(WithoutControls("a\nb\x1B[2J\xC2\x9Bz\x7F ü"), "a?b?[2J??z? ü");
}

}  // namespace
}  // namespace ringmaster::plain_text
