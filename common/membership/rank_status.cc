#include "common/membership/rank_status.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership {

void RankStatus::EnterView(ViewPtr view) {
  view_ = std::move(view);
  lost_.assign(view_ ? view_->ranks.size() : 0, false);
  held_ = lost_;
  ran_ = false;
  ranks_of_.assign(view_ ? view_->pods.size() : 0, {});
  for (std::size_t r = 0; r < lost_.size(); ++r) ranks_of_[view_->ranks[r].pod].push_back(r);
}

const std::vector<std::size_t>& RankStatus::RanksOf(int pod) const {
  static const std::vector<std::size_t> kNone;
  return pod < 0 || ranks_of_.empty() ? kNone : ranks_of_[static_cast<std::size_t>(pod)];
}

void RankStatus::LoseWorkers(const std::string& pod, const std::vector<Worker>& workers) {
  for (const Worker& worker : workers) {
    const int rank = view_->FindRank(pod, worker.slot, worker.incarnation);
    if (rank >= 0) lost_[rank] = true;
  }
}

RankStatus::OwnRanks RankStatus::UpdateOwn(int self, const LocalWorkers& workers) {
  OwnRanks own;
  for (const std::size_t r : RanksOf(self)) {
    const RankEntry& rank = view_->ranks[r];
    const bool alive = workers.Alive(rank.slot, rank.incarnation);
    own.any_alive = own.any_alive || alive;
    if (!alive && !lost_[r]) lost_[r] = own.news = true;
    held_[r] = held_[r] || workers.Holds(rank.slot, rank.incarnation, view_->epoch);
  }
  return own;
}

std::vector<Worker> RankStatus::LostOf(int pod) const {
  std::vector<Worker> workers;
  for (const std::size_t r : RanksOf(pod)) {
    const RankEntry& rank = view_->ranks[r];
    if (lost_[r]) workers.push_back({rank.slot, rank.incarnation, "", "", false});
  }
  return workers;
}

bool RankStatus::AnyLost() const {
  return std::find(lost_.begin(), lost_.end(), true) != lost_.end();
}

bool RankStatus::StateLost(const std::vector<const Resignation*>& resigned) const {
  for (std::size_t r = 0; r < lost_.size(); ++r) {
    const RankEntry& rank = view_->ranks[r];
    const bool holds = ran_ || held_[r] || !rank.joined;
    const bool dead = lost_[r] || resigned[rank.pod] != nullptr;
    if (holds && !dead) return false;
  }
  return true;
}

}  // namespace ringmaster::membership
