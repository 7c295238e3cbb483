// What a schedule has shown: what did not hold, what it has covered, and, for people, everything
// that happened in it.
//
// Owner: World. Plain data of one schedule; one thread.
#pragma once

#include <string>

#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/simulation.h"

namespace ringmaster::membership::sim {

class Journal {
 public:
  // `trace`: every event is appended to it; null: nobody reads it.
  Journal(const EventQueue* events, std::string* trace) : events_(events), trace_(trace) {}

  // Something that must hold does not. Only the first counts.
  void Fail(const std::string& what);
  bool failed() const { return !violation_.empty(); }

  template <typename Text>
  void Trace(Text text) {
    if (trace_ != nullptr) Append(text());
  }

  Coverage& coverage() { return coverage_; }
  Outcome outcome() const { return {violation_, coverage_}; }

 private:
  void Append(const std::string& text);

  const EventQueue* const events_;
  std::string* const trace_;
  std::string violation_;
  Coverage coverage_;
};

}  // namespace ringmaster::membership::sim
