// What really happened to the simulated job, which no simulated process knows: the views that were
// decided, and the step and state that training has come to.
//
// Owner: World. Plain data of one schedule; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/membership/member.h"
#include "common/membership/sim/event_queue.h"

namespace ringmaster::membership::sim {

// A decided view and what became of it.
struct Decided {
  ViewPtr view;
  bool step_pending = false;
  bool ran = false;  // has completed a step
  Micros last_step = 0;
};

class JobTruth {
 public:
  // One without a view: nobody has decided it.
  Decided& Of(Epoch epoch);
  // Somebody takes it as decided, as the first to do so.
  void Add(const ViewPtr& view);
  const ViewPtr& newest() const { return newest_; }

  std::int64_t step() const { return step_; }
  std::uint64_t hash() const { return hash_; }
  // The newest view that has completed a step.
  Epoch trained() const { return trained_; }
  void CompleteStep(Epoch epoch);
  // A lineage begins here. Returns how many completed steps it is behind.
  std::uint64_t GoBackTo(std::int64_t step, std::uint64_t hash);

 private:
  std::vector<std::vector<Decided>> decided_;  // by lineage and number
  ViewPtr newest_;
  Epoch trained_ = 0;
  std::int64_t step_ = 0;
  std::uint64_t hash_ = 0;  // follows from the epochs of all steps so far
};

}  // namespace ringmaster::membership::sim
