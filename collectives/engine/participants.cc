#include "collectives/engine/participants.h"

#include <algorithm>

namespace ringmaster::engine {

int Participants::ChannelOf(const Response& response) {
  // The two of a transfer use streams: each pair of ranks would need a channel.
  if (response.process_set() == 0 || response.requests.front().kind == Kind::kTransfer) return 0;
  return channels_.Give(response.process_set(), response.ranks);
}

Status Participants::Choose(const Response& response, const Ranks** ranks) {
  *ranks = &world_;
  if (!response.requests.front().is_partial()) return {};
  *ranks = nullptr;
  const std::vector<int>& members = response.ranks;
  const int channel = ChannelOf(response);
  if (std::find(members.begin(), members.end(), world_.host->rank()) == members.end()) return {};
  const auto [some, is_new] = some_.try_emplace({response.process_set(), members});
  if (is_new) {
    if (Status s = world_.host->Subset(members, channel, &some->second.own); !s.ok()) {
      some_.erase(some);
      return s;
    }
    some->second.host = some->second.own.get();
    for (int rank : members) some->second.workers.push_back(world_.workers[rank]);
  }
  *ranks = &some->second;
  return {};
}

}  // namespace ringmaster::engine
