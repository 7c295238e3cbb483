// Suspicions that workers of this pod have of ranks of the current view.
//
// A broken ring between two living pods needs a new view too, but a dead rank is known from its own
// sidecar long before: so a suspicion counts when it lasts, or at once when the pod's sidecar is
// unreachable as well. Plain data of the sidecar's loop; time is handed in.
#pragma once

#include <map>
#include <optional>

#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

class RankSuspicions {
 public:
  void Add(Epoch epoch, int rank, SteadyTime now);
  void Clear() { since_.clear(); }
  // Whether a rank of this pod is suspected in this view.
  bool Accuse(const membership::View& view, int pod_index) const;
  // A rank of this view whose suspicion has lasted long enough; it is forgotten.
  std::optional<int> TakeLasting(Epoch epoch, SteadyTime now);

 private:
  Epoch epoch_ = 0;
  std::map<int, SteadyTime> since_;  // by rank
};

}  // namespace ringmaster::app
