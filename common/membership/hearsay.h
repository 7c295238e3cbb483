// What the coordinator is told by other members: which pods they don't hear.
//
// Who says of several pods that it does not hear them, and is not accused itself, is either right,
// or is the one that hears nobody. The fewest pods to drop would be that one, but when a machine
// with several pods is gone, somebody is the first to miss them, milliseconds before the
// coordinator does: to drop it leaves a view with all of the dead and without a pod that lives. So
// such a word counts only after a while, but for what was said first and has counted alone. By
// then the coordinator misses those pods itself, or others have said so, or nobody has.
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
  // Call before the rest is asked. `gone`: one for each pod: it leaves the view whatever is said.
  void Weigh(const std::vector<bool>& gone, int self, TimePoint now);

  // What counts now.
  const Edges& counted() const { return counted_; }
  // When more may count, though nothing is heard.
  const std::optional<TimePoint>& due() const { return due_; }

 private:
  const Duration patience_;
  std::set<std::pair<int, int>> told_;  // said again and again
  std::map<int, TimePoint> unclear_since_;
  std::set<std::pair<int, int>> acted_on_;  // has counted once, and goes on counting
  Edges counted_;
  std::optional<TimePoint> due_;
};

}  // namespace ringmaster::membership
