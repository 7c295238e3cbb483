// What is known of connections between workers of the current view that broke though both ends
// live: that the ring is broken, and whom its ends blame. Forgotten with each new view.
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
  // The job can't go on in this view. False: nothing new.
  bool Break() { return !std::exchange(broken_, true); }
  bool broken() const { return broken_; }
  // The link from one pod to another has broken too often; pods say so again and again. False:
  // nothing new.
  bool Accuse(int accuser, int accused) { return accusations_.emplace(accuser, accused).second; }
  const Edges& accusations() const { return accusations_; }
  std::vector<int> AccusedBy(int accuser) const;

 private:
  bool broken_ = false;
  Edges accusations_;
};

}  // namespace ringmaster::membership
