// Which views have been decided, and what became of them: the truth, which no simulated process
// knows.
//
// Owner: World. Plain data of one schedule; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "common/membership/view.h"
#include "sidecar/app/agent.h"
#include "tests/sim/ring.h"
#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

// A decided view and what became of it.
struct Decided {
  ViewPtr view;
  bool ticking = false;
  Micros last_step = 0;
  Ring ring;
};

class DecidedViews {
 public:
  // One without a view: nobody has decided it.
  Decided& Of(Epoch epoch) { return by_epoch_[epoch]; }
  // Somebody takes it as decided, as the first to do so.
  void Add(const ViewPtr& view);
  // The newest one; null: there is none yet.
  const ViewPtr& newest() const { return newest_; }

  // A view has been decided that comes after this one.
  bool IsOver(Epoch epoch) const;
  // The next epoch after this one that anybody has spoken of; nothing if no view was decided there.
  std::optional<Epoch> SuccessorOf(Epoch epoch) const;

  // All ranks of this view take part in it. Returns the newest view before of which that is true.
  Epoch Train(Epoch epoch) { return std::exchange(trained_, epoch); }

 private:
  std::map<Epoch, Decided> by_epoch_;
  ViewPtr newest_;
  Epoch trained_ = 0;
};

}  // namespace ringmaster::app::sim
