#include "operator/cli/flush.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
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

TEST(FlushDeathTest, WhereTheDiskIsFullTheProcessSaysSoAndEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  std::fputs("a line\n", full);
  EXPECT_EXIT(FlushOrEnd(full), testing::ExitedWithCode(3), "can't be written: No space left");
  std::fclose(full);
}

TEST(FlushTest, WhatCouldNotBeWrittenFailsTheCommandAlsoIfAnEarlierWriteFailed) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100'000}}) {
    std::FILE* full = std::fopen("/dev/full", "w");
    ASSERT_NE(full, nullptr);
    const std::string text(bytes, 'x');
    std::fwrite(text.data(), 1, text.size(), full);
    const auto flushed = FlushAll(full);
    ASSERT_FALSE(flushed) << bytes;
    EXPECT_EQ(flushed.error().code, ExitCode::kMachineLacks);
    std::fclose(full);
  }
}

TEST(FlushTest, AReaderThatHasGoneIsNoFailure) {
  signal(SIGPIPE, [](int) {});
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100'000}}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    close(ends[0]);
    std::FILE* out = fdopen(ends[1], "w");
    const std::string text(bytes, 'x');
    std::fwrite(text.data(), 1, text.size(), out);
    EXPECT_TRUE(FlushAll(out)) << bytes;
    EXPECT_TRUE(FlushAll(out)) << bytes << ": and again";
    std::fclose(out);
  }
}

}  // namespace
}  // namespace ringmaster::cli
