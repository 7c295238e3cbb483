// The script of the simulated job: which operations it does in a step, whether it asks for them one
// by one or for all at once, and after which step it ends.
//
// Owner: World. Plain data of one schedule; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/engine/request.h"
#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

class Script {
 public:
  void Draw(Random* random);

  // In what follows `done` counts the operations of the step that is under way.
  engine::Kind Next(std::size_t done) const { return program_[done]; }
  bool EndsStep(std::size_t done) const { return Next(done) == engine::Kind::kStepEnd; }
  // How many operations it asks for at once.
  std::size_t AskedFor(std::size_t done) const { return together_ ? program_.size() - done : 1; }
  // The step's end is among them.
  bool AsksForEnd(std::size_t done) const { return together_ || done + 1 == program_.size(); }
  // How many operations there are until then, from the first of the job.
  std::uint64_t OperationsUntil(std::int64_t step, std::size_t done) const {
    return static_cast<std::uint64_t>(step) * program_.size() + done;
  }

  // It has come to its end after so many steps.
  bool IsOver(std::int64_t step, std::size_t done) const {
    return finish_at_ >= 0 && done == 0 && step >= finish_at_;
  }
  // Its ranks have agreed that the job ends.
  void Finish() { finished_ = true; }
  bool finished() const { return finished_; }

 private:
  std::vector<engine::Kind> program_;  // of a step
  bool together_ = false;
  std::int64_t finish_at_ = -1;  // after this step; -1: it goes on
  bool finished_ = false;
};

}  // namespace ringmaster::app::sim
