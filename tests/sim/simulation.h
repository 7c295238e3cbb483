// Runs one schedule of a whole job: real Agents, with all that stands between the membership
// protocol and the sockets, and the operator's real controller, with simulated clocks, disks,
// processes, network and API server. Deterministic from its seed. (common/membership/sim runs the
// protocol alone, with an ideal in place of the sidecar, and finds its rarer orders much faster.)
//
// It checks after every event that
//   - no two views share an epoch, and no view goes on once its successor is decided (I2, I3);
//   - one reduction has one result: all survivors have the dead rank's part in it, or none has, and
//     a step counts once (I4). Ranks leave a call of their ring one by one, and faults fall in
//     between; docs/membership.md says what of it is the product and what is modelled;
//   - no completed step is lost while a worker that holds it lives (I5), joiners enter at
//     boundaries;
//   - a pod accepts a proposal, resigns or makes way only when none of its workers may use the view
//     any more;
//   - workers get the view, rank and slot that are theirs, and `left` and `error` only when it is
//     so;
//   - no agent wants to be woken in the past;
// and that a while after the last fault all workers train in one view, and none is lost any more.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/engine/recovery.h"
#include "operator/controllers/forgets.h"
#include "sidecar/app/glue_clause.h"

namespace ringmaster::app::sim {

enum class Fault : std::uint8_t {
  kKillWorker,
  kStopWorker,  // by a signal
  kKillSidecar,
  kCrashMidway,  // in the middle of what it does
  kLoseFile,
  kDiskFails,
  kPauseSidecar,
  kPauseMachine,
  kCutLauncher,
  kCutWorker,
  kBreakRing,
  kKillPod,
  kPartition,
  kCutOneWay,
  kSuspectWrongly,
  kDrain,
  kTerminate,
  kJoin,
  kOperatorAway,
  kTarget,
  kClockStep,
  kRecordDeleted,
  kApiFails,  // calls of the operator to the API server, before or after they were done
  kCount,
};
const char* FaultName(Fault fault);

struct Options {
  std::uint64_t seed = 1;
  int pods = 0;                  // 0: drawn, 1 to 6
  int slots = 0;                 // 0: drawn, 1 or 2
  std::string* trace = nullptr;  // every event, for people
  GlueClauses without;           // taken out of every sidecar
  controllers::Forgets forgets;  // what every operator forgets
  bool proof_finalizer = true;   // false: the object of a pod goes when it is deleted by force
  // The faults are those of operators, and those that make pods need one: few pods, operators that
  // follow each other quickly and overlap for long, watches that are late, records that go.
  bool at_operators = false;
  // For tests of the simulator: in the place of engine::PlanRecovery.
  std::function<Status(const std::vector<engine::Holding>&, engine::RecoveryPlan*)> plan_recovery;
};

struct Coverage {
  std::array<std::uint64_t, static_cast<int>(Fault::kCount)> faults{};
  std::uint64_t schedules = 0, events = 0;
  std::uint64_t steps = 0, views = 0, planned_views = 0, held_views = 0;
  std::uint64_t interrupted = 0;                 // ranks, in the middle of a step or a recovery
  std::uint64_t handed_over = 0, repeated = 0;   // results; operations that ran again
  std::uint64_t unconfirmed = 0, committed = 0;  // of those where each rank has a result of its own
  std::uint64_t late_hellos = 0;                 // of workers of a sidecar that was started again
  std::uint64_t promotions = 0;                  // standbys
  std::uint64_t fenced = 0;                      // workers that stopped themselves
  std::uint64_t kills = 0;                       // that a sidecar asked its launcher for
  std::uint64_t resignations = 0;
  std::uint64_t reconnects = 0, left_out = 0;  // views for a broken link: of all, without some
  std::uint64_t left = 0;                      // pods that left by plan
  std::uint64_t recoveries = 0, restarts = 0;
  std::uint64_t finished = 0;      // jobs whose ranks agreed to end
  std::uint64_t looks = 0;         // of the operator at the job
  std::uint64_t calls_failed = 0;  // of the operator to the API server

  void Add(const Coverage& other);
  std::string Text() const;
};

struct Outcome {
  std::string violation;  // empty: none
  Coverage coverage;
};

Outcome RunSchedule(const Options& options);

// The trace of a schedule that fails, and how to see it again.
std::string Explain(const Options& options, const std::string& violation);

}  // namespace ringmaster::app::sim
