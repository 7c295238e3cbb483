// What a schedule has shown: what did not hold, what it has covered, and, for people, everything
// that happened in it.
//
// Owner: World. Plain data of one schedule; one thread.
#pragma once

#include <string>
#include <utility>

#include "tests/sim/simulation.h"
#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

class Journal {
 public:
  // `trace`: every event is appended to it; null: nobody reads it.
  Journal(const Timeline* time, std::string* trace) : time_(time), trace_(trace) {}

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

  const Timeline* const time_;
  std::string* const trace_;
  std::string violation_;
  Coverage coverage_;
};

}  // namespace ringmaster::app::sim
