// Runs one schedule of the membership protocol: real Members and a real record on a simulated
// network, with simulated sidecars, workers and operators around them. The seed decides everything.
//
// The operators recover the job from quorum loss (rule 9) when no view can train, and at wrong
// moments too. Some of the pods that are gone are never proven dead.
//
// After every event it checks I1 (a worker never gets an older view), I2 and "one successor for
// each view", I3 (a view with a decided successor, or older than one that has trained, completes no
// step), I5 (no completed step is lost while a copy of its state lives; survivors never diverge)
// and that joiners enter at boundaries; and after the last fault, that training goes on with all.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/membership/clause.h"
#include "common/membership/member.h"

namespace ringmaster::membership::sim {

enum class Fault : std::uint8_t {
  kKillWorker,
  kKillPod,
  kRestartSidecar,
  kLoseFile,
  kPause,
  kPartition,
  kCutLink,
  kSuspectWrongly,
  kDrain,
  kJoin,
  kOperatorOutage,
  kStaleOperator,
  kTarget,
  kKillMost,   // so many pods at once that no majority is left
  kRecover,    // an operator recovers the job from quorum loss though nothing calls for it
  kBreakLink,  // a connection of the ring between two living pods breaks
  kDeleteRecord,
  kCount,
};
const char* FaultName(Fault fault);

// How often each fault is drawn. Most schedules are kMixed; the other profiles aim at what mixed
// schedules reach too seldom.
enum class Profile : std::uint8_t {
  kMixed,            // everything
  kContended,        // few members, many wrong suspicions, long delays: coordinators compete
  kResigning,        // workers die together
  kForgetful,        // sidecars restart, files get lost
  kPlanned,          // joins and drains, some faults between
  kQuorumRecovered,  // most die at once; recovery from quorum loss at any moment
  kCount,
};
const char* ProfileName(Profile profile);

struct Options {
  std::uint64_t seed = 1;
  int members = 0;  // 0: drawn, 1 to 64, 95 % up to 7
  ClauseSet without;
  // kCount: drawn.
  Profile profile = Profile::kCount;
  std::string* trace = nullptr;  // every event, for people
};

struct Coverage {
  std::array<std::uint64_t, static_cast<int>(Fault::kCount)> faults{};
  std::uint64_t schedules = 0;
  std::uint64_t events = 0;
  std::uint64_t messages = 0, lost = 0, repeated = 0;
  std::uint64_t steps = 0;
  std::uint64_t views = 0, planned_views = 0, held_views = 0;
  std::uint64_t campaigns = 0, refused = 0;
  std::uint64_t by_majority = 0, by_record = 0, by_all = 0;
  std::uint64_t record_conflicts = 0;
  std::uint64_t blocked = 0;          // schedules that rightly end without training
  std::uint64_t recoveries = 0;       // recoveries from quorum loss that began
  std::uint64_t recovered_views = 0;  // those that ended with the pods that were left
  std::uint64_t restarts = 0;         // those that ended without a pod that held the state
  std::uint64_t recovery_waits = 0;   // waits for a pod that is gone and not proven dead
  std::uint64_t steps_lost = 0;       // completed only by pods that have died since
  std::uint64_t five_and_more = 0;    // schedules with so many pods
  int largest = 0;

  void Add(const Coverage& other);
  void Add(const MemberCounters& member);
  std::string Text() const;
};

struct Outcome {
  std::string violation;  // empty: none
  Coverage coverage;
};

Outcome RunSchedule(const Options& options);

// Runs a schedule that has failed again; returns the violation and the trace of all events.
std::string Explain(const Options& options, const std::string& violation);

}  // namespace ringmaster::membership::sim
