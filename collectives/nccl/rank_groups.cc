#include "collectives/nccl/rank_groups.h"

#include <algorithm>
#include <utility>

#include "collectives/nccl/process_exit.h"

namespace ringmaster::nccl {

RankGroups::RankGroups(Gpu gpu, WaitLimits limits) : gpu_(std::move(gpu)), limits_(limits) {
  world_.group = std::make_unique<NcclGroup>(gpu_, limits_);
}

RankGroups::~RankGroups() {
  std::vector<GivenUp> last;
  world_.group->GiveUp(&last);
  (void)AbortAll(gpu_, last, Patience(limits_.quiet, {}));
}

void RankGroups::Install(Communicator* host, const std::vector<std::string>& workers) {
  world_.host = host;
  world_.workers = workers;
}

Status RankGroups::Choose(const engine::Response& response, RankGroup** out) {
  *out = &world_;
  if (response.process_set() == 0) return {};
  *out = nullptr;
  const std::vector<int>& ranks = response.ranks;
  if (std::find(ranks.begin(), ranks.end(), world_.host->rank()) == ranks.end()) return {};
  const auto [set, is_new] = sets_.try_emplace(response.process_set());
  if (is_new) {
    set->second.group = std::make_unique<NcclGroup>(gpu_, limits_);
    if (Status s = world_.host->Subset(ranks, 0, &set->second.own); !s.ok()) {
      sets_.erase(set);
      return s;
    }
    set->second.set = response.process_set();
    set->second.host = set->second.own.get();
    for (int rank : ranks) set->second.workers.push_back(world_.workers[rank]);
  }
  *out = &set->second;
  return {};
}

Status RankGroups::Forget(int32_t process_set, Ended* aborts) {
  const auto set = sets_.find(process_set);
  if (set == sets_.end()) return {};
  // A peer may be in the set's last collective still, for which it may need what an abort here
  // would end: this rank's thread of NCCL's that sends.
  if (Status s = set->second.host->Barrier(); !s.ok()) return s;
  std::vector<GivenUp> given_up;
  set->second.group->GiveUp(&given_up);
  if (!given_up.empty() && !ProcessExits()) *aborts = StartAborts(gpu_, given_up);
  sets_.erase(set);
  return {};
}

void RankGroups::Leak() {
  std::vector<GivenUp> leaked;
  for (NcclGroup* group : All()) group->GiveUp(&leaked);
}

void RankGroups::Leave() {
  world_.group->Leave();
  sets_.clear();
}

std::vector<NcclGroup*> RankGroups::All() {
  std::vector<NcclGroup*> groups = {world_.group.get()};
  for (auto& [number, set] : sets_) groups.push_back(set.group.get());
  return groups;
}

}  // namespace ringmaster::nccl
