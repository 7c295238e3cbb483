// The network between the pods, and between them and the operators: what is cut off from what, what
// is lost or comes twice, how long the rest takes, and whether a death is noticed at once.
//
// Owner: World. Plain data of one schedule; one thread.
#pragma once

#include <vector>

#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/random.h"

namespace ringmaster::membership::sim {

class Network {
 public:
  explicit Network(Random* random) : random_(random) {}

  // Draws how bad it is. `slow`: many messages are late.
  void Draw(bool slow);
  // The next pod is connected to all others.
  void AddPod();

  bool Connected(int from, int to) const { return side_[from] == side_[to] && !cut_[from][to]; }
  bool ReachesOperators(int pod) const { return !operators_apart_ || side_[pod] == 0; }

  // Of one message.
  bool Loses() { return random_->Chance(loss_); }
  bool Repeats() { return random_->Chance(repeat_); }
  Micros Delay() {
    if (random_->Chance(slow_)) return random_->Below(400 * kMs);
    return random_->Between(100, 3 * kMs);
  }
  // A process has died: one of its peers finds its connection reset.
  bool TellsOfDeath() { return random_->Chance(fast_detection_); }

  // Cuts the link, mostly in both directions.
  void Cut(int from, int to);
  void Mend(int a, int b) { cut_[a][b] = cut_[b][a] = 0; }
  // Draws who is apart from whom, or it is `pod` alone; Join() ends it.
  void Split(int pod);
  void Join();
  // From now on all are connected, and nothing is lost or slow.
  void Heal();

 private:
  Random* const random_;
  int loss_ = 0, repeat_ = 0, slow_ = 0;  // per thousand
  int fast_detection_ = 500;              // likewise
  std::vector<std::vector<char>> cut_;    // [from][to]: the link is down in this direction
  std::vector<int> side_;                 // by pod: the side of the partition that it is on
  bool operators_apart_ = false;          // side 1 can't reach the operators
};

}  // namespace ringmaster::membership::sim
