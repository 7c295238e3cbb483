// The network between the pods, and between them and the operator: what is cut off from what, what
// is lost or comes twice, and how long the rest takes.
//
// Owner: World. Plain data of one schedule; one thread.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

class Network {
 public:
  explicit Network(Random* random) : random_(random) {}

  // Draws how bad it is.
  void Draw();
  // The next pod is connected to all others.
  void AddPod() { side_.push_back(0); }

  bool Connected(int from, int to) const {
    return side_[from] == side_[to] && cut_.count({from, to}) == 0;
  }
  bool BothWays(int a, int b) const { return Connected(a, b) && Connected(b, a); }
  bool ReachesOperator(int pod) const { return !(operator_apart_ && side_[pod] == 1); }

  // Of one message between pods, or to the operator.
  bool Loses() { return random_->Chance(loss_); }
  int Copies() { return random_->Chance(repeat_) ? 2 : 1; }
  Micros MessageDelay() {
    return random_->Between(100, random_->Chance(slow_) ? 900 * kMs : 4 * kMs);
  }
  // Within a pod.
  Micros LinkDelay() { return random_->Between(30, random_->Chance(20) ? 30 * kMs : 800); }

  void CutOneWay(int from, int to) { cut_.insert({from, to}); }
  void MendOneWay(int from, int to) { cut_.erase({from, to}); }
  // Draws who is apart from whom; Join() ends it.
  void Split();
  void Join();
  // From now on all are connected, and nothing is lost or slow.
  void Heal();

 private:
  Random* const random_;
  int loss_ = 0, repeat_ = 0, slow_ = 0;  // per thousand
  std::set<std::pair<int, int>> cut_;     // from, to
  std::vector<int> side_;                 // by pod: the side of the partition that it is on
  bool operator_apart_ = false;           // side 1 can't reach the operator
};

}  // namespace ringmaster::app::sim
