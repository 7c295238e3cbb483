// The timelines of a job's pods, laid side by side on one clock.
//
// Pods of one machine have its clock. Clocks of two machines are compared by the operations that
// ranks of both took part in: no rank has the result of an allreduce before each of them has begun
// it, which bounds from both sides how far the clocks are apart. The more operations, the closer
// the bounds: half the time that the shortest one took is what may be left.
//
// Pure: functions of values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/inspection/pod_trace.h"

namespace ringmaster::inspection {

struct ClockNote {
  std::string pod;        // the first of its machine
  bool compared = false;  // false: no operation tells, its clock is taken as it is
  double ahead_us = 0;    // of the coordinator's clock, by the operations
  double uncertain_us = 0;
};

// A rank that the others waited for.
struct LateRank {
  int rank = -1;
  std::string worker;
  int last = 0;          // in so many operations it was the last to ask
  double waited_us = 0;  // by so much earlier all others had asked, all in all
};

struct JobTrace {
  // All events are on one clock, the coordinator's.
  std::vector<PodTrace> pods;
  std::vector<ClockNote> clocks;  // of the other machines
  int operations = 0;             // that all ranks tell of
  std::vector<LateRank> late;     // who was last, the one that was waited for longest first

  double first_us() const;
  double last_us() const;
  std::size_t workers() const;
};

// Whose changes of the view are shown: the coordinator, else the first. Null: there is no pod.
const PodTrace* Teller(const JobTrace& trace);

JobTrace LayTogether(std::vector<PodTrace> pods);

// What Chrome and Perfetto open: a process for each rank, in the order of ranks, and above them the
// changes of the view as the coordinator's sidecar saw them.
std::string ChromeText(const JobTrace& trace);

// For people: who was late, and what is not sure about the clocks. Lines, or nothing.
std::string TimelineNotes(const JobTrace& trace);

// As other commands show it: the pod, with /slot where it has several workers.
std::string WorkerName(const PodTrace& pod, const TraceWorker& worker);

}  // namespace ringmaster::inspection
