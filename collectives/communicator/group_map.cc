#include "collectives/communicator/group_map.h"

namespace ringmaster::communicator {

std::vector<uint32_t> FormGroups(const std::vector<std::vector<uint8_t>>& can_map) {
  std::vector<uint32_t> by_rank(can_map.size());
  std::vector<std::vector<size_t>> groups;
  for (size_t rank = 0; rank < can_map.size(); ++rank) {
    auto fits = [&](const std::vector<size_t>& members) {
      return std::all_of(members.begin(), members.end(), [&](size_t member) {
        return can_map[rank][member] != 0 && can_map[member][rank] != 0;
      });
    };
    auto found = std::find_if(groups.begin(), groups.end(), fits);
    if (found == groups.end()) found = groups.insert(groups.end(), std::vector<size_t>());
    found->push_back(rank);
    by_rank[rank] = static_cast<uint32_t>(found - groups.begin());
  }
  return by_rank;
}

}  // namespace ringmaster::communicator
