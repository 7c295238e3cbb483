#include "tests/sim/network.h"

#include <algorithm>

namespace ringmaster::app::sim {

void Network::Draw() {
  loss_ = random_->Chance(400) ? static_cast<int>(random_->Below(150)) : 0;
  repeat_ = static_cast<int>(random_->Below(80));
  slow_ = random_->Chance(400) ? static_cast<int>(random_->Below(150)) : 5;
}

void Network::Split() {
  for (int& side : side_) side = random_->Chance(400) ? 1 : 0;
  operator_apart_ = random_->Chance(600);
}

void Network::Join() {
  std::fill(side_.begin(), side_.end(), 0);
  operator_apart_ = false;
}

void Network::Heal() {
  loss_ = slow_ = 0;
  cut_.clear();
  Join();
}

}  // namespace ringmaster::app::sim
