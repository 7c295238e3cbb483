// What the workers of this pod say of a ring that doesn't work though no pod is known to be dead:
// ranks that they suspect, and connections that broke.
//
// Both need a new view, but a death is known from the dead worker's own sidecar long before: so a
// suspicion counts at once only when its pod's sidecar is unreachable as well, and otherwise the
// same members get a new view, with new connections, when the trouble lasts. A link that breaks
// again and again accuses the pod at its other end. Plain data of the sidecar's loop; time is
// handed in.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/membership/view.h"
#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

// A link that broke in the last ten minutes.
struct BrokenLink {
  std::string pod;  // name of the pod at its other end
  int breaks = 0;
  // It breaks so often that one of its ends would be left out, and neither is: without it the job
  // would be below its minimum.
  bool kept = false;
};

class RingTrouble {
 public:
  // A worker of this pod suspects a rank.
  void Suspect(Epoch epoch, int rank, SteadyTime now);
  // The view is broken for a worker of this pod. `rank`: the other end of the link that broke; -1:
  // it doesn't know which one did.
  void Broke(Epoch epoch, int rank, SteadyTime now);
  // An operation has completed in this view.
  void Ran(Epoch epoch);
  // Another view. Every pod counts, of the views that all of them see, how many in a row have
  // completed no operation, so that all pods become patient together.
  void EnterView(const membership::View& view);

  // Whether a rank of this pod is suspected in this view.
  bool Accuse(const membership::View& view, int pod_index) const;

  // Trouble that has lasted long enough for a new view.
  struct Lasting {
    std::vector<membership::Pod> pods;  // at the other ends of the links
    std::vector<std::string> accused;   // uids of those to which the link broke too often
  };
  // Says it once. `own`: this pod's uid.
  std::optional<Lasting> TakeLasting(const membership::View& view, const std::string& own,
                                     SteadyTime now);
  // `min_pods`: with fewer pods in a view nobody trains.
  std::vector<BrokenLink> Links(const membership::View* view, std::uint32_t min_pods,
                                SteadyTime now) const;

 private:
  struct History {
    std::string name;
    std::deque<SteadyTime> breaks;
  };

  void Begin(Epoch epoch, SteadyTime now);
  void Clear();
  std::vector<membership::Pod> OtherEnds(const membership::View& view,
                                         const std::string& own) const;
  int Breaks(const std::string& uid, SteadyTime now) const;
  SteadyTime::duration Patience(bool accuses) const;

  Epoch epoch_ = 0;
  std::optional<SteadyTime> since_;
  std::set<int> suspected_, broken_;  // ranks
  Epoch ran_ = 0, entered_ = 0;
  int fruitless_ = 0;  // views in a row that broke before they had completed an operation
  std::map<std::string, History> history_;  // by pod uid
};

}  // namespace ringmaster::app
