// What the coordinator is told by other members: which pods they don't hear.
//
// A pod that says of several others that it does not hear them, and that nobody accuses, is either
// right, or it is cut off itself and hears nobody. Dropping that one pod would drop the fewest. But
// when a machine with several pods fails, some pod is the first to miss them, milliseconds before
// the coordinator does: dropping that pod would leave a view that has all of the dead pods and
// lacks one that lives. So what one pod says of several counts only after a while; only the first
// accusation, which counted alone, goes on counting. After that while the coordinator misses those
// pods itself, or other pods have accused them too, or no pod has, and then the accuser is the one
// that is cut off.
//
// Owned by PeerStatus; used by the member's thread only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/membership/config.h"

namespace ringmaster::membership {

class Hearsay {
 public:
  using Edges = std::vector<std::pair<int, int>>;  // {accuser, accused}

  explicit Hearsay(Duration patience) : patience_(patience) {}

  void Clear();
  void Accuse(int accuser, int accused) { told_.emplace(accuser, accused); }
  bool any() const { return !told_.empty(); }
  // Decides what counts now; call it before the functions below. `gone` has an entry for each pod:
  // true if the pod leaves the view whatever others say. It may be empty if nothing was said.
  void Weigh(const std::vector<bool>& gone, int self, TimePoint now);

  // The accusations that count now.
  const Edges& counted() const { return counted_; }
  // When more accusations may begin to count, even if no message comes.
  const std::optional<TimePoint>& due() const { return due_; }

 private:
  const Duration patience_;
  std::set<std::pair<int, int>> told_;      // everything that was said; members repeat it
  std::map<int, TimePoint> unclear_since_;  // by accuser that nobody accuses: when that began
  std::set<std::pair<int, int>> acted_on_;  // has counted once, so it goes on counting
  Edges counted_;
  std::optional<TimePoint> due_;
};

}  // namespace ringmaster::membership
