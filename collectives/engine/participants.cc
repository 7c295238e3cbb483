#include "collectives/engine/participants.h"

#include <algorithm>

namespace ringmaster::engine {

Status Participants::Choose(const Response& response, const Ranks** ranks) {
  *ranks = &world_;
  if (response.process_set() == 0) return {};
  *ranks = nullptr;
  const std::vector<int>& members = response.ranks;
  if (std::find(members.begin(), members.end(), world_.host->rank()) == members.end()) return {};
  const auto [set, is_new] = sets_.try_emplace(response.process_set());
  if (is_new) {
    if (Status s = world_.host->Subset(members, &set->second.own); !s.ok()) {
      sets_.erase(set);
      return s;
    }
    set->second.host = set->second.own.get();
    for (int rank : members) set->second.workers.push_back(world_.workers[rank]);
  }
  *ranks = &set->second;
  return {};
}

}  // namespace ringmaster::engine
