#include "common/membership/sim/network.h"

#include <algorithm>
#include <cstddef>

namespace ringmaster::membership::sim {

void Network::Draw(bool slow) {
  loss_ = random_->Chance(500) ? static_cast<int>(random_->Below(200)) : 0;
  repeat_ = static_cast<int>(random_->Below(100));
  slow_ = random_->Chance(500) ? static_cast<int>(random_->Below(200)) : 5;
  if (slow) slow_ = static_cast<int>(random_->Between(100, 400));
  fast_detection_ = random_->Chance(500) ? 1000 : 300;
}

void Network::AddPod() {
  side_.push_back(0);
  for (auto& row : cut_) row.push_back(0);
  cut_.emplace_back(side_.size(), 0);
}

void Network::Cut(int from, int to) {
  cut_[from][to] = 1;
  cut_[to][from] = random_->Chance(700);
}

void Network::Split(int pod) {
  const bool alone = random_->Chance(400);
  for (std::size_t i = 0; i < side_.size(); ++i) {
    side_[i] = alone ? static_cast<int>(i) == pod : random_->Chance(500);
  }
  operators_apart_ = random_->Chance(500);
}

void Network::Join() {
  std::fill(side_.begin(), side_.end(), 0);
  operators_apart_ = false;
}

void Network::Heal() {
  loss_ = slow_ = 0;
  for (auto& row : cut_) std::fill(row.begin(), row.end(), 0);
  Join();
}

}  // namespace ringmaster::membership::sim
