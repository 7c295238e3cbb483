// The schedules of the normal test run, with a floor under what they cover. Under sanitizers
// (RINGMASTER_TEST_ROUNDS=small) fewer: there they look for bad memory, and some dozens of
// schedules need not meet what one in five hundred does, so only what is common has a floor there.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "tests/sim/simulation.h"
#include "tests/support/rounds.h"

namespace ringmaster::app::sim {
namespace {

constexpr std::uint64_t kFirstSeed = 1;

// Each schedule has one thread, so a sanitizer that looks for races has little to find here.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr std::uint64_t kFew = 20;
#else
constexpr std::uint64_t kFew = 60;
#endif
#else
constexpr std::uint64_t kFew = 60;
#endif

// Each thread takes the next seed; the first violation ends all.
class Schedules {
 public:
  Schedules(std::uint64_t count, const Options& options) : count_(count), options_(options) {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
      threads.emplace_back([this] { Run(); });
  }
  std::uint64_t failed_seed = 0;  // 0: none
  std::string violation;
  Coverage coverage;

  void ExpectNoViolation() const {
    Options failed = options_;
    failed.seed = failed_seed;
    EXPECT_EQ(violation, "") << "again: agent_sim --seed " << failed.seed
                             << (failed.at_operators ? " --at-operators" : "")
                             << " --schedules 1 --trace\n"
                             << (violation.empty() ? "" : Explain(failed, violation));
  }

 private:
  void Run() {
    for (std::uint64_t i = next_++; i < count_; i = next_++) {
      Options options = options_;
      options.seed = kFirstSeed + i;
      const Outcome outcome = RunSchedule(options);
      const sync::MutexLock lock(&mu_);
      coverage.Add(outcome.coverage);
      if (outcome.violation.empty()) continue;
      failed_seed = options.seed;
      violation = outcome.violation;
      next_ = count_;
    }
  }

  const std::uint64_t count_;
  const Options options_;
  std::atomic<std::uint64_t> next_{0};
  sync::Mutex mu_;
};

TEST(AgentSimulationTest, NoScheduleBreaksARuleOrStopsTraining) {
  const auto schedules = support::Schedules(30'000, kFew);
  const Schedules run(schedules, {});
  run.ExpectNoViolation();
  const Coverage& coverage = run.coverage;
  std::printf("%s", coverage.Text().c_str());
  // A run that covers less than this has gone blind. Of each of these a hundred schedules have at
  // least ten times as many, so chance is no reason to miss it.
  EXPECT_GT(coverage.steps, schedules * 5);
  EXPECT_GT(coverage.views, schedules / 2);
  EXPECT_GT(coverage.interrupted, schedules / 4);
  for (const Fault common : {Fault::kKillWorker, Fault::kKillSidecar, Fault::kCrashMidway})
    EXPECT_GT(coverage.faults[static_cast<std::size_t>(common)], schedules / 50)
        << FaultName(common);
  if (support::SmallRounds()) return;
  for (int i = 0; i < static_cast<int>(Fault::kCount); ++i)
    EXPECT_GT(coverage.faults[i], schedules / 50) << FaultName(static_cast<Fault>(i));
  EXPECT_GT(coverage.steps, schedules * 20);
  EXPECT_GT(coverage.views, schedules * 2);
  EXPECT_GT(coverage.interrupted, schedules);
  EXPECT_GT(coverage.handed_over, schedules / 50);
  EXPECT_GT(coverage.repeated, schedules / 50);
  EXPECT_GT(coverage.unconfirmed, schedules / 50);
  EXPECT_GT(coverage.committed, schedules / 500);
  EXPECT_GT(coverage.planned_views, schedules / 2);
  EXPECT_GT(coverage.held_views, schedules / 20);
  EXPECT_GT(coverage.resignations, schedules / 4);
  EXPECT_GT(coverage.reconnects, schedules / 20);
  EXPECT_GT(coverage.left_out, schedules / 1000);
  EXPECT_GT(coverage.late_hellos, schedules / 4);
  EXPECT_GT(coverage.promotions, schedules / 20);
  EXPECT_GT(coverage.fenced, schedules / 200);
  EXPECT_GT(coverage.kills, schedules / 50);
  EXPECT_GT(coverage.left, schedules / 10);
  EXPECT_GT(coverage.recoveries, schedules / 50);
  EXPECT_GT(coverage.looks, schedules * 10);
  EXPECT_GT(coverage.calls_failed, schedules / 20);
  EXPECT_GT(coverage.restarts, schedules / 100);
  EXPECT_GT(coverage.finished, schedules / 50);
}

TEST(AgentSimulationTest, NoScheduleThatAimsAtOperatorsBreaksARule) {
  const auto schedules = support::Schedules(500, kFew / 2);
  const Schedules run(schedules, {.at_operators = true});
  run.ExpectNoViolation();
  std::printf("%s", run.coverage.Text().c_str());
  EXPECT_GT(run.coverage.recoveries, schedules / 10);
  for (const Fault common : {Fault::kRecordDeleted, Fault::kOperatorAway, Fault::kPartition})
    EXPECT_GT(run.coverage.faults[static_cast<std::size_t>(common)], schedules / 10)
        << FaultName(common);
}

TEST(AgentSimulationTest, TheSameSeedGivesTheSameSchedule) {
  Options options;
  options.seed = 7;
  const std::string first = Explain(options, "");
  EXPECT_GT(first.size(), 1000u);
  EXPECT_EQ(first, Explain(options, ""));
}

}  // namespace
}  // namespace ringmaster::app::sim
