#include "operator/cli/flush.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

namespace ringmaster::cli {
namespace {

void PrintToNobody() {
  signal(SIGPIPE, [](int) {});
  int ends[2];
  if (pipe(ends) != 0) return;
  close(ends[0]);
  std::FILE* out = fdopen(ends[1], "w");
  std::fputs("a line\n", out);
  // As the threads that follow pods do.
  std::thread([out] { FlushOrEnd(out); }).join();
}

TEST(FlushDeathTest, WhereNobodyReadsTheProcessEndsBySigpipe) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(PrintToNobody(), testing::KilledBySignal(SIGPIPE), "");
}

TEST(FlushTest, WhatIsPrintedIsThereAtOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::FILE* out = fdopen(ends[1], "w");
  std::fputs("x", out);
  FlushOrEnd(out);
  char read_back = 0;
  EXPECT_EQ(read(ends[0], &read_back, 1), 1);
  EXPECT_EQ(read_back, 'x');
  std::fclose(out);
  close(ends[0]);
}

}  // namespace
}  // namespace ringmaster::cli
