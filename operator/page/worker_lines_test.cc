#include "operator/page/worker_lines.h"

#include <gtest/gtest.h>

namespace ringmaster::page {
namespace {

TEST(WorkerLinesTest, KeepsTheLastLinesOfItsWorkerHoweverTheTextIsCut) {
  WorkerLines lines(1, 2, 1000);
  for (const char* text : {"[0] a\n[1] b\n[1", "] c\n[10] d\n", "no number [1] e\n[0] f\n[1] g"})
    lines.Feed(text);
  EXPECT_EQ(lines.Finish(), "[1] c\n[1] g\n");
}

TEST(WorkerLinesTest, KeepsNoMoreBytesThanAllowed) {
  WorkerLines lines(1, 100, 12);
  lines.Feed("[1] a\n[1] b\n[1] c\n");
  EXPECT_EQ(lines.Finish(), "[1] b\n[1] c\n");
}

}  // namespace
}  // namespace ringmaster::page
