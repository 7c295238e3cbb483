// Connections between workers of the current view that broke though both ends live: whether there
// is one, and which pods accuse which. Forgotten with each new view.
//
// Owned by PeerStatus; used by the member's thread only.
#pragma once

#include <set>
#include <utility>
#include <vector>

namespace ringmaster::membership {

class BrokenLinks {
 public:
  using Edges = std::set<std::pair<int, int>>;  // {accuser, accused}

  void Clear();
  // Notes that a connection is broken, so the job can't go on in this view. False: that was known.
  bool Break() { return !std::exchange(broken_, true); }
  bool broken() const { return broken_; }
  // Notes that pod `accuser` says that its link to pod `accused` has broken too often. Pods repeat
  // this. False: that was known.
  bool Accuse(int accuser, int accused) { return accusations_.emplace(accuser, accused).second; }
  const Edges& accusations() const { return accusations_; }
  std::vector<int> AccusedBy(int accuser) const;

 private:
  bool broken_ = false;
  Edges accusations_;
};

}  // namespace ringmaster::membership
