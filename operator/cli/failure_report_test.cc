#include "operator/cli/failure_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Log = std::deque<std::string>;

constexpr char kWhy[] = "pod p failed: its worker exited with 1: ValueError: no; no rule names it";

const Log kTwoWorkers = {
    "[4] step 1",
    "[5] Traceback (most recent call last):",
    "[4] step 2",
    "[5]   File \"train.py\", line 3, in <module>",
    "[5] ValueError: no",
    "[5] of two lines",
    "ringmaster-launcher: worker exited slot=1 incarnation=1 exit_code=1 action=FailJob "
    "reason=\"x\"",
    "[4] Traceback (most recent call last):",
    "[4] KeyboardInterrupt",
};

TEST(FailureReportTest, TheWorkerAndTheExceptionComeFirstThenTheRestOnce) {
  EXPECT_THAT(FailureReport("train", kWhy, {"p", 4, true, false}, kTwoWorkers),
              ElementsAre("train failed: worker [5] ended with exit code 1", "  ValueError: no",
                          "  [5] Traceback (most recent call last):",
                          "  [5]   File \"train.py\", line 3, in <module>", "  [5] ValueError: no",
                          "  [5] of two lines",
                          "  pod p failed: its worker exited with 1; no rule names it"));
}

TEST(FailureReportTest, WhatHasBeenShownAlreadyIsNotRepeated) {
  EXPECT_THAT(
      FailureReport("train", kWhy, {"p", 4, true, true}, kTwoWorkers),
      ElementsAre(HasSubstr("worker [5]"), "  ValueError: no", Not(HasSubstr("ValueError"))));
}

TEST(FailureReportTest, OfAPodWithOneWorkerTheLinesHaveNoNumber) {
  const Log log = {
      "Traceback (most recent call last):",
      "KeyError: 'first'",
      "During handling of the above exception, another exception occurred:",
      "",
      "Traceback (most recent call last):",
      "  File \"a.py\", line 1",
      "RuntimeError: second",
      "Exception ignored in: <generator>",
      "Traceback (most recent call last):",
      "OSError: noise",
      "ringmaster-launcher: worker exited slot=0 incarnation=1 exit_code=1 action=FailJob",
      "ringmaster-launcher: stopping all workers"};
  const auto report = FailureReport("train", "why", {"p", 2, false, true}, log);
  EXPECT_EQ(report[0], "train failed: worker [2] ended with exit code 1");
  EXPECT_EQ(report[1], "  RuntimeError: second");
}

TEST(FailureReportTest, OfAGroupOfExceptionsItsOwnLineSpeaks) {
  const Log log = {"  + Exception Group Traceback (most recent call last):",
                   "  |   File \"a.py\", line 1, in <module>",
                   "  |     raise ExceptionGroup(\"no data\", [ValueError(\"one\")])",
                   "  | ExceptionGroup: no data (1 sub-exception)",
                   "  +-+---------------- 1 ----------------",
                   "    | ValueError: one",
                   "    +------------------------------------",
                   "ringmaster-launcher: worker exited slot=0 incarnation=1 exit_code=1"};
  EXPECT_EQ(FailureReport("train", "why", {"p", 0, false, true}, log)[1],
            "  ExceptionGroup: no data (1 sub-exception)");
}

TEST(FailureReportTest, TheRankThatTorchPutsInFrontIsLeftOut) {
  const Log log = {"[1] [rank1]: Traceback (most recent call last):",
                   "[1] [rank1]:   File \"a.py\", line 1, in <module>",
                   "[1] [rank1]: RuntimeError: no", "[1] [rank1] of two lines",
                   "ringmaster-launcher: worker exited slot=1 incarnation=1 exit_code=1"};
  EXPECT_THAT(FailureReport("train", "why", {"p", 0, true, false}, log),
              ElementsAre(HasSubstr("worker [1]"), "  RuntimeError: no",
                          "  [1] Traceback (most recent call last):",
                          "  [1]   File \"a.py\", line 1, in <module>", "  [1] RuntimeError: no",
                          "  [1] [rank1] of two lines", "  why"));
}

TEST(FailureReportTest, WithoutATracebackTheLastLineSpeaks) {
  const Log log = {
      "loading", "no such data set: /d", "",
      "ringmaster-launcher: worker exited slot=0 incarnation=1 exit_code=3 action=FailJob"};
  EXPECT_EQ(FailureReport("train", "why", {"p"}, log)[1], "  no such data set: /d");
  EXPECT_EQ(FailureReport("train", "why", {"p"}, {log.back()})[1], "  it printed nothing");
}

TEST(FailureReportTest, ASignalIsSaidInWords) {
  const Log log = {
      "[0] step 4",
      "ringmaster-launcher: worker exited slot=0 incarnation=1 exit_code=139 action=RestartWorker",
      "[0] step 5",
      "ringmaster-launcher: worker exited slot=0 incarnation=2 exit_code=134 action=RestartWorker"};
  const auto report = FailureReport("train", "too often", {"p", 0, true, true}, log);
  EXPECT_THAT(report, ElementsAre("train failed: worker [0] ended with exit code 134",
                                  "  killed by SIGABRT (signal 6, aborted)", "  too often"));
  EXPECT_EQ(SignalText(9), "SIGKILL (signal 9, killed)");
  EXPECT_EQ(SignalText(1000), "signal 1000");
}

TEST(FailureReportTest, WhereNoWorkerFailedTheConditionSpeaksAndTheLogFollows) {
  EXPECT_THAT(FailureReport("train", "pod p has not come to init()", {"p"}, {"loading data"}),
              ElementsAre("train failed: pod p has not come to init()", "  the log of p ends with",
                          "  | loading data"));
  EXPECT_THAT(FailureReport("train", "not done after 3 s (--timeout)", {}, {}),
              ElementsAre("train failed: not done after 3 s (--timeout)"));
}

TEST(FailureReportTest, AProgramThatCannotBeStartedIsNamedFirst) {
  const Log log = {"ringmaster-launcher: error: cannot start 'x': No such file or directory slot=0",
                   "ringmaster-launcher: stopping all workers"};
  EXPECT_THAT(FailureReport("train", "why", {"p"}, log),
              ElementsAre("train failed: cannot start 'x': No such file or directory", "  why"));
}

TEST(FailureReportTest, AWorkerThatEndsTooEarlyIsNamed) {
  const Log log = {
      "[4] step 1",
      "ringmaster-launcher: error: worker ended before the job did: exit code 0 without shutdown() "
      "agreed by all ranks slot=1"};
  EXPECT_THAT(FailureReport("train", "why", {"p", 4, true}, log),
              ElementsAre("train failed: worker [5] ended with exit code 0 before the others",
                          HasSubstr("shutdown() on all ranks"), "  why"));
}

// The launcher chose another exit code, which must not be reported as the worker's.
TEST(FailureReportTest, AWorkerThatEndsWithoutInitIsToldSoAndItsExitCodeOnce) {
  const Log log = {
      "ringmaster-launcher: error: worker ended before the job did: exit code 0 without shutdown() "
      "agreed by all ranks slot=0"};
  const std::string why = "pod p failed: its worker exited with 1; no rule names it";
  FailedPod pod{"p", 1};
  pod.had_view = false;
  EXPECT_THAT(FailureReport("train", why, pod, log),
              ElementsAre("train failed: worker [1] ended with exit code 0 without calling init()",
                          HasSubstr("a script calls init() first"),
                          "  pod p failed: its launcher exited with 1; no rule names it"));
  pod.had_view = true;
  EXPECT_THAT(FailureReport("train", why, pod, log),
              ElementsAre("train failed: worker [1] ended with exit code 0 before the others",
                          HasSubstr("shutdown() on all ranks"),
                          "  pod p failed: its launcher exited with 1; no rule names it"));
}

TEST(FailureReportTest, TheLaunchersAccountOfItsOwnDoingIsNoLastWord) {
  EXPECT_THAT(FailureReport("train", "why", {"p"}, {"ringmaster-launcher: terminating"}),
              ElementsAre("train failed: why"));
}

TEST(FailureReportTest, OfALongTracebackTheEndIsShown) {
  Log log = {"Traceback (most recent call last):"};
  for (int i = 0; i < 200; ++i) log.push_back("  frame");
  log.push_back("RecursionError: deep");
  log.push_back(
      "ringmaster-launcher: worker exited slot=0 incarnation=1 exit_code=1 action=FailJob");
  const auto report = FailureReport("train", "why", {"p"}, log);
  EXPECT_EQ(report.size(), 2 + 1 + 30 + 1u);
  EXPECT_EQ(report[2], "  [0] ...");
  EXPECT_EQ(report[report.size() - 2], "  [0] RecursionError: deep");
}

}  // namespace
}  // namespace ringmaster::cli
