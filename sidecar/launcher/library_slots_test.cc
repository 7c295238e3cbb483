// What follows from the end of a process in its slot. Processes are real; their ends are made up.
#include "sidecar/launcher/library_slots.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sidecar/launcher/process.h"

namespace ringmaster::launcher {
namespace {

using failure_policy::Action;
using Clock = std::chrono::steady_clock;

constexpr int kKilled = 128 + SIGKILL;

// A launcher without its loop and without a sidecar.
class Pod {
 public:
  explicit Pod(Options options)
      : options_(std::move(options)),
        children_(&options_),
        slots_(options_.slots),
        library_({.options = &options_,
                  .slots = &slots_,
                  .children = &children_,
                  .link = &link_,
                  .shutdown = &shutdown_,
                  .fail = [this](int code, const std::string& why) {
                    failures_.push_back(why);
                    shutdown_.SetExitCode(code);
                    shutdown_.Stop(Clock::now(), std::chrono::seconds(3));
                  }}) {}
  ~Pod() { KillEverything(); }

  LibrarySlots& library() { return library_; }
  Slots& slots() { return slots_; }
  Shutdown& shutdown() { return shutdown_; }
  const std::vector<std::string>& failures() const { return failures_; }
  std::size_t processes() const { return children_.Running().size(); }

  void Exits(int slot, int code) {
    ChildExit exit{.pid = slots_[slot].pid, .child = {}, .exit_code = code};
    exit.child.slot = slot;
    exit.child.incarnation = slots_[slot].incarnation;
    exit.child.began = Clock::now();
    library_.OnExit(exit);
  }

 private:
  const Options options_;
  Children children_;
  Slots slots_;
  Link link_{"", [] { return std::string(); }, [](const nlohmann::json&) {}};
  Shutdown shutdown_;
  std::vector<std::string> failures_;
  LibrarySlots library_;
};

Options Sleepers(int slots, int standbys) {
  return {.command = {"/bin/sleep", "1000"}, .slots = slots, .standbys = standbys};
}

TEST(LibrarySlotsTest, EachSlotGetsAProcessAndThePodItsStandby) {
  Pod pod(Sleepers(2, 1));
  pod.library().Begin();
  EXPECT_EQ(pod.processes(), 3u);
  EXPECT_GT(pod.slots()[0].pid, 0);
  EXPECT_EQ(pod.slots()[1].incarnation, 1u);
}

TEST(LibrarySlotsTest, ACommandThatDoesNotExistEndsThePodBeforeTheSecondSlot) {
  Pod pod({.command = {"/nowhere/train"}, .slots = 2, .standbys = 1});
  pod.library().Begin();
  EXPECT_EQ(pod.failures().size(), 1u);
  EXPECT_EQ(pod.shutdown().exit_code(), 127);
  EXPECT_TRUE(pod.slots()[0].closed);
  EXPECT_EQ(pod.slots()[1].incarnation, 0u);
}

TEST(LibrarySlotsTest, AKilledWorkerIsStartedAgainAtOnceAndThenLater) {
  Pod pod(Sleepers(1, 0));
  pod.library().Begin();
  pod.Exits(0, kKilled);
  EXPECT_EQ(pod.slots()[0].incarnation, 2u);
  EXPECT_GT(pod.slots()[0].pid, 0);
  pod.Exits(0, kKilled);
  ASSERT_TRUE(pod.slots()[0].restart_at);
  EXPECT_EQ(pod.slots()[0].pid, 0);
  pod.library().StartDue(*pod.slots()[0].restart_at);
  EXPECT_EQ(pod.slots()[0].incarnation, 3u);
  EXPECT_GT(pod.slots()[0].pid, 0);
}

TEST(LibrarySlotsTest, AStandbyTakesTheSlotAndTheNextOneComesLater) {
  Pod pod(Sleepers(1, 1));
  pod.library().Begin();
  const pid_t before = pod.slots()[0].pid;
  EXPECT_FALSE(pod.library().NextWake());
  pod.Exits(0, kKilled);
  EXPECT_GT(pod.slots()[0].pid, 0);
  EXPECT_NE(pod.slots()[0].pid, before);
  EXPECT_EQ(pod.slots()[0].incarnation, 2u);
  EXPECT_EQ(pod.processes(), 2u) << "the standby is the worker now";
  ASSERT_TRUE(pod.library().NextWake());
  pod.library().StartDue(*pod.library().NextWake());
  EXPECT_EQ(pod.processes(), 3u);
}

TEST(LibrarySlotsTest, AFailureThatNoRuleNamesEndsThePod) {
  Pod pod(Sleepers(2, 0));
  pod.library().Begin();
  pod.Exits(1, 3);
  EXPECT_EQ(pod.failures().size(), 1u);
  EXPECT_EQ(pod.shutdown().exit_code(), 3);
}

TEST(LibrarySlotsTest, IgnoredFailuresEmptyTheirSlotsAndTheLastEndsThePod) {
  Options options = Sleepers(2, 0);
  options.rules = {{.on_exit_codes = {3}, .on_reasons = {}, .action = Action::kIgnore}};
  Pod pod(options);
  pod.library().Begin();
  pod.Exits(0, 3);
  EXPECT_TRUE(pod.slots()[0].closed);
  EXPECT_TRUE(pod.failures().empty());
  pod.Exits(1, 3);
  EXPECT_EQ(pod.failures(), std::vector<std::string>{"all slots are empty"});
}

TEST(LibrarySlotsTest, AWorkerThatFailsWhileTheJobFinishesIsNotStartedAgain) {
  Pod pod(Sleepers(1, 0));
  pod.library().Begin();
  pod.shutdown().Finish(false);
  pod.Exits(0, 3);
  EXPECT_TRUE(pod.slots()[0].closed);
  EXPECT_EQ(pod.slots()[0].incarnation, 1u);
  EXPECT_EQ(pod.shutdown().exit_code(), 3);
}

TEST(LibrarySlotsTest, WhatTheStopItselfKillsIsNoFailure) {
  Pod pod(Sleepers(1, 0));
  pod.library().Begin();
  pod.shutdown().Stop(Clock::now(), std::chrono::seconds(3));
  pod.Exits(0, kKilled);
  EXPECT_TRUE(pod.slots()[0].closed);
  EXPECT_EQ(pod.shutdown().exit_code(), std::nullopt);
}

TEST(LibrarySlotsTest, AfterTheEndHasBegunNoStandbyStarts) {
  Pod pod(Sleepers(1, 1));
  pod.library().Begin();
  pod.Exits(0, kKilled);
  ASSERT_TRUE(pod.library().NextWake());
  pod.library().OnEnding();
  EXPECT_FALSE(pod.library().NextWake());
}

}  // namespace
}  // namespace ringmaster::launcher
