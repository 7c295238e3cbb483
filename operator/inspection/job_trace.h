// Puts the timelines of a job's pods on one clock.
//
// Pods on one machine share its clock. Clocks of two machines are compared by means of operations
// in which ranks of both took part: no rank has the result of an allreduce before every rank has
// begun it, which bounds the difference of the clocks from both sides. The more operations there
// are, the closer the bounds; an error of half the shortest operation's duration may remain.
//
// Pure: functions of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/inspection/pod_trace.h"

namespace ringmaster::inspection {

struct ClockNote {
  std::string pod;  // the first pod of its machine
  // All pods of the machine, by their places in JobTrace::pods.
  std::vector<std::size_t> pods = {};
  bool compared = false;  // false: no operation allows it, so the clock is used as it is
  double ahead_us = 0;    // relative to the coordinator's clock, by the operations
  double uncertain_us = 0;
};

// A rank that others waited for.
struct LateRank {
  int rank = -1;
  std::string worker;
  int last = 0;          // number of operations in which it was the last to ask
  double waited_us = 0;  // how much earlier all others had asked, in total
};

struct JobTrace {
  // All events are on the coordinator's clock.
  std::vector<PodTrace> pods;
  std::vector<ClockNote> clocks;  // for the other machines
  int operations = 0;             // number of operations that all ranks have reported
  std::vector<LateRank> late;     // late ranks; the one with the longest waits first

  double first_us() const;
  double last_us() const;
  std::size_t workers() const;
};

// The pod whose view changes are shown: the coordinator, else the first. Null if there is none.
const PodTrace* Teller(const JobTrace& trace);

JobTrace LayTogether(std::vector<PodTrace> pods);

// JSON for Chrome and Perfetto: a process for each rank, in rank order, and above them the view
// changes as the coordinator's sidecar saw them.
std::string ChromeText(const JobTrace& trace);

// Lines for people: which ranks were late, and how uncertain the clocks are. May be empty.
std::string TimelineNotes(const JobTrace& trace);

// The worker's name as in other commands: the pod, with /slot if it has several workers.
std::string WorkerName(const PodTrace& pod, const TraceWorker& worker);

}  // namespace ringmaster::inspection
