#include "operator/cli/display.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <thread>

#include "tests/support/until.h"

namespace ringmaster::cli {
namespace {

using std::chrono::seconds;

TEST(PlainDisplayTest, ALineEveryFewSecondsAndOneAMinuteWhereNothingChanges) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  const auto display = MakePlainDisplay(out, seconds(3));
  const TimePoint begin{};
  display->Progress("0s ", {.text = "starting"}, begin);
  display->Progress("1s ", {.text = "step 1"}, begin + seconds(1));
  display->Progress("3s ", {.text = "step 9"}, begin + seconds(3));
  for (int i = 4; i < 70; ++i)
    display->Progress(std::to_string(i) + "s ", {.text = "step 9"}, begin + seconds(i));
  std::fclose(out);
  EXPECT_EQ(std::string(text, size), "0s starting\n3s step 9\n63s step 9\n");
  free(text);
}

TEST(PlainDisplayTest, ALineWithANulIsWhole) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  MakePlainDisplay(out, seconds(3))->Line(std::string("a\0b", 3));
  std::fclose(out);
  EXPECT_EQ(std::string(text, size), std::string("a\0b\n", 4));
  free(text);
}

TEST(PlainDisplayTest, AReaderThatTakesNothingIsWaitedForUntilTheEndIsRequested) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  // A pipe holds 64 KiB.
  std::FILE* out = fdopen(ends[1], "w");
  std::stop_source end;
  std::atomic<int> written = 0;
  std::thread writer([&] {
    const auto display = MakePlainDisplay(out, seconds(3), end.get_token());
    for (int i = 0; i < 1000; ++i) {
      display->Line(std::string(99, 'x'));
      ++written;
    }
  });
  EXPECT_TRUE(support::Until([&] { return written > 590; }));
  EXPECT_LT(written, 1000);
  std::string text(50 * 100, '\0');
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = read(ends[0], text.data() + at, text.size() - at);
    ASSERT_GT(n, 0);
    at += static_cast<size_t>(n);
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 50);  // nothing is lost while it waits
  end.request_stop();
  writer.join();
  EXPECT_EQ(written, 1000);
  std::fclose(out);
  close(ends[0]);
}

// A display on a pseudo-terminal with this many columns, and its output.
class TerminalDisplayTest : public testing::Test {
 protected:
  explicit TerminalDisplayTest(unsigned short columns = 80) {
    winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    int terminal = -1;
    EXPECT_EQ(openpty(&screen_, &terminal, nullptr, nullptr, &size), 0);
    fcntl(screen_, F_SETFL, O_NONBLOCK);
    out_ = fdopen(terminal, "w");
    display_ = MakeTerminalDisplay(out_);
  }
  ~TerminalDisplayTest() override {
    display_.reset();
    std::fclose(out_);
    close(screen_);
  }

  // The lines that stay, and the last drawn line, in order. Only lines that stay may be wider than
  // the terminal.
  std::vector<std::string> Lines() {
    char buffer[4096];
    for (ssize_t n; (n = read(screen_, buffer, sizeof(buffer))) > 0;) written_.append(buffer, n);
    std::vector<std::string> lines;
    std::istringstream all(written_);
    for (std::string line; std::getline(all, line);) {
      if (line.ends_with('\r')) line.pop_back();
      lines.push_back(line.substr(line.rfind("\033[K") + 3));
    }
    return lines;
  }
  void Show(int second, const std::string& progress, const std::string& why) {
    display_->Progress(std::to_string(second) + "s  ",
                       {.text = progress + "  " + why, .held_up = {{"", why}}},
                       TimePoint{} + seconds(second));
  }

  int screen_ = -1;
  std::FILE* out_ = nullptr;
  std::unique_ptr<Display> display_;
  std::string written_;
};

const char kProgress[] = "step 120/400  loss 0.2127  5120 samples/s  2 workers  view 1.3";
const char kReason[] =
    "'gradient': asked for by 2 ranks, not by rank 1 (job-worker-1), since 2026-11-24T10:20:30Z";

TEST_F(TerminalDisplayTest, AReasonThatTheLineHasNoRoomForGetsALineOfItsOwnOnce) {
  for (int second = 0; second < 10; ++second) Show(second, kProgress, kReason);
  EXPECT_THAT(Lines(), testing::ElementsAre(
                           std::string("2s  ") + kReason,
                           (std::string("9s  ") + kProgress + "  " + kReason).substr(0, 79)));
}

TEST_F(TerminalDisplayTest, ItGetsAnotherWhenItChangesOrComesBack) {
  const std::string other = std::string(kReason) + "; and more";
  int second = 0;
  for (const std::string& why : {std::string(kReason), other, std::string(kReason)})
    for (int i = 0; i < 3; ++i) Show(second++, kProgress, why);
  EXPECT_THAT(Lines(),
              testing::ElementsAre(std::string("2s  ") + kReason, "5s  " + other,
                                   std::string("8s  ") + kReason, testing::StartsWith("8s  step")));
}

TEST_F(TerminalDisplayTest, WhatFitsOrPassesGetsNone) {
  for (int second = 0; second < 5; ++second) Show(second, "step 1", "no node");
  for (int second = 5; second < 20; ++second)
    Show(second, kProgress, "waits for pod " + std::to_string(second));
  EXPECT_THAT(Lines(), testing::ElementsAre(testing::StartsWith("19s  step 120/400")));
}

TEST_F(TerminalDisplayTest, ACutSplitsNoCharacterAndNoControlMovesTheTerminal) {
  Show(0, std::string(73, 'x'), "größer\n\033[2J");
  EXPECT_THAT(Lines(), testing::ElementsAre("0s  " + std::string(73, 'x') + "  "));
  Show(1, std::string(70, 'x'), "größer\n\033[2J");
  EXPECT_THAT(Lines(), testing::ElementsAre("1s  " + std::string(70, 'x') + "  grö"));
  Show(2, "x", "größer\n\033[2J");
  EXPECT_THAT(Lines(), testing::ElementsAre("2s  x  größer??[2J"));
}

}  // namespace
}  // namespace ringmaster::cli
