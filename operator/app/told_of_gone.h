// What one stream has said of pods that are gone, and what it has yet to say. All streams share the
// lists, so a stream keeps three pointers, however many pods are gone. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "operator/planner/decision.h"

namespace ringmaster::app {

class ToldOfGone {
 public:
  // All that are gone by now.
  void Add(planner::GonePods newest) { newest_ = std::move(newest); }
  // The next one to be told; nullopt: the newest list has been told.
  std::optional<planner::GonePod> Next();

 private:
  planner::GonePods told_;    // the last list of which all has been said; null: none
  planner::GonePods now_;     // is being said; null: none
  planner::GonePods newest_;  // comes after it; null: none
  std::size_t next_ = 0;      // in `now_`
};

}  // namespace ringmaster::app
