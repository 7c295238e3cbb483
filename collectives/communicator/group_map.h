// Which ranks of a view share memory: groups of ranks that have all mapped each other, as one rank
// sees them. Each group's first rank leads it.
//
// Thread rule: a value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ringmaster::communicator {

// The number of each rank's group: a rank joins the first group such that it and every member have
// mapped each other. `can_map[i][k]`: rank i has mapped rank k's arena.
std::vector<uint32_t> FormGroups(const std::vector<std::vector<uint8_t>>& can_map);

class GroupMap {
 public:
  // The map as rank `self` sees it. `by_rank`: the group of each rank; groups are numbered from 0
  // without gaps.
  GroupMap(std::vector<uint32_t> by_rank, int self) : by_rank_(std::move(by_rank)), self_(self) {
    members_.resize(1 + *std::max_element(by_rank_.begin(), by_rank_.end()));
    for (size_t rank = 0; rank < by_rank_.size(); ++rank)
      members_[by_rank_[rank]].push_back(static_cast<int>(rank));
  }
  // Each rank is a group of its own.
  static GroupMap Apart(size_t size, int self) {
    std::vector<uint32_t> by_rank(size);
    for (size_t rank = 0; rank < size; ++rank) by_rank[rank] = static_cast<uint32_t>(rank);
    return GroupMap(std::move(by_rank), self);
  }
  // All ranks are one group.
  static GroupMap Together(size_t size, int self) {
    return GroupMap(std::vector<uint32_t>(size, 0), self);
  }

  int self() const { return self_; }
  size_t ranks() const { return by_rank_.size(); }
  size_t groups() const { return members_.size(); }
  uint32_t GroupOf(int rank) const { return by_rank_[static_cast<size_t>(rank)]; }
  // Whether all of `ranks` are in one group.
  bool AreOne(std::span<const int> ranks) const {
    return std::all_of(ranks.begin(), ranks.end(),
                       [&](int rank) { return GroupOf(rank) == GroupOf(ranks.front()); });
  }
  // In rank order.
  const std::vector<int>& Members(size_t group) const { return members_[group]; }

  uint32_t own() const { return GroupOf(self_); }
  const std::vector<int>& own_members() const { return members_[own()]; }
  bool leads() const { return own_members().front() == self_; }
  // The first rank of each group, by group.
  std::vector<int> Leaders() const {
    std::vector<int> leaders;
    for (const auto& members : members_) leaders.push_back(members.front());
    return leaders;
  }
  // The place of a rank of the own group within that group.
  int PlaceInOwn(int rank) const {
    const std::vector<int>& mine = own_members();
    return static_cast<int>(std::find(mine.begin(), mine.end(), rank) - mine.begin());
  }
  // Picks the elements of the own group's ranks out of one element for each rank.
  template <typename T>
  std::vector<T> OfOwn(const std::vector<T>& by_rank) const {
    std::vector<T> own;
    for (int rank : own_members()) own.push_back(by_rank[static_cast<size_t>(rank)]);
    return own;
  }

 private:
  std::vector<uint32_t> by_rank_;
  int self_;
  std::vector<std::vector<int>> members_;  // by group, in rank order
};

}  // namespace ringmaster::communicator
