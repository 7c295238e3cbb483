#include "common/membership/next_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace ringmaster::membership {
namespace {

// Of each pod whether it stays, with at least one worker.
std::vector<bool> Staying(const View& view, const Change& change) {
  std::vector<bool> has_rank(view.pods.size());
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const RankEntry& rank = view.ranks[r];
    if (!change.gone[rank.pod] && !change.lost_worker[r]) has_rank[rank.pod] = true;
  }
  return has_rank;
}

// Gives `next` the pods and ranks that stay, in their order. False: none of them holds the state.
bool KeepRanks(const View& view, const Change& change, View* next) {
  bool holder = false;
  const std::vector<bool> has_rank = Staying(view, change);
  std::vector<std::uint32_t> index(view.pods.size());
  for (std::size_t p = 0; p < view.pods.size(); ++p) {
    if (!has_rank[p]) continue;
    index[p] = static_cast<std::uint32_t>(next->pods.size());
    next->pods.push_back(view.pods[p]);
  }
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    RankEntry rank = view.ranks[r];
    if (!has_rank[rank.pod] || change.lost_worker[r]) continue;
    rank.pod = index[rank.pod];
    const bool held = !change.held.empty() && change.held[r];
    rank.joined = rank.joined && !change.ran && !change.planned && !held;
    holder = holder || !rank.joined;
    next->ranks.push_back(std::move(rank));
  }
  return holder;
}

std::vector<const Joiner*> ByTopology(const std::vector<Joiner>& all) {
  std::vector<const Joiner*> joiners;
  for (const Joiner& joiner : all) joiners.push_back(&joiner);
  std::sort(joiners.begin(), joiners.end(), [](const Joiner* a, const Joiner* b) {
    return TopologyLess(a->candidate.pod, b->candidate.pod);
  });
  return joiners;
}

void AddJoiners(const Change& change, View* next) {
  const std::vector<const Joiner*> joiners = ByTopology(change.joiners);
  // Maps and sets, because a thousand pods may join at once.
  std::map<std::string, std::uint32_t> pods;  // by uid
  for (const Pod& pod : next->pods) pods.emplace(pod.uid, pods.size());
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> ranks;
  for (const RankEntry& rank : next->ranks) ranks.emplace(rank.pod, rank.slot, rank.incarnation);
  for (const Joiner* joiner : joiners) {
    const Pod& candidate = joiner->candidate.pod;
    const auto [at, is_new] = pods.emplace(candidate.uid, next->pods.size());
    const std::uint32_t pod = at->second;
    if (is_new) {
      next->pods.push_back(candidate);
    } else if (next->pods[pod].incarnation != candidate.incarnation) {
      continue;  // the pod's former incarnation has to leave first
    }
    std::vector<Worker> workers = joiner->candidate.workers;
    std::sort(workers.begin(), workers.end(),
              [](const Worker& a, const Worker& b) { return a.slot < b.slot; });
    for (const Worker& worker : workers) {
      if (!ranks.emplace(pod, worker.slot, worker.incarnation).second) continue;
      next->ranks.push_back({pod, worker.slot, worker.incarnation, worker.tcp, worker.shm, true});
    }
  }
}

// Leaves out as many newcomers, and then pods, as there are too many for a number that may train.
// Returns whether pods are left out that could have stayed.
bool FitToSizes(const View& view, Change* change) {
  const std::vector<bool> staying = Staying(view, *change);
  const auto stays = [&](const Joiner& joiner) {
    const int pod = view.FindPod(joiner.candidate.pod.uid);
    return pod >= 0 && staying[pod] && !change->gone[pod];
  };
  auto kept = static_cast<std::size_t>(std::count(staying.begin(), staying.end(), true));
  // They stay only until somebody has their state, and whoever comes gets it.
  bool some_stay_on = false;
  for (std::size_t p = 0; p < staying.size(); ++p) {
    some_stay_on = some_stay_on || (staying[p] && !change->draining[p]);
  }
  if (!some_stay_on) return false;
  std::set<std::string> newcomers;
  for (const Joiner& joiner : change->joiners) {
    if (!stays(joiner)) newcomers.insert(joiner.candidate.pod.uid);
  }
  const std::size_t size = change->sizes.AtMost(kept + newcomers.size());
  if (size == 0) return false;
  const bool fewer = kept > size;
  std::set<std::string> admitted;
  for (const Joiner* joiner : ByTopology(change->joiners)) {
    if (kept + admitted.size() < size && !stays(*joiner)) {
      admitted.insert(joiner->candidate.pod.uid);
    }
  }
  for (int p = static_cast<int>(view.pods.size()) - 1; p >= 0 && kept > size; --p) {
    if (!staying[p] || view.pods[p].uid == change->proposer) continue;
    change->gone[p] = true;
    --kept;
  }
  std::erase_if(change->joiners, [&](const Joiner& joiner) {
    return !stays(joiner) && admitted.count(joiner.candidate.pod.uid) == 0;
  });
  return fewer;
}

// True if drains are the only reason for this change: all pods that leave and all workers that died
// belong to draining pods, which resign if their deadline passes before the boundary comes.
bool OnlyDrained(const View& view, const Change& change) {
  if (change.pod_lost) return false;
  bool drained = false;  // a view can also end although nobody leaves it
  for (std::size_t p = 0; p < view.pods.size(); ++p) {
    if (change.gone[p] && !change.draining[p]) return false;
    drained = drained || change.gone[p];
  }
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    if (!change.lost_worker[r]) continue;
    if (!change.draining[view.ranks[r].pod]) return false;
    drained = true;
  }
  return drained;
}

Reason ReasonOf(const View& view, const Change& change) {
  if (!change.planned) {
    if (change.link_broken) return Reason::kLinkBroken;
    if (OnlyDrained(view, change)) return Reason::kPodDrained;
    return change.pod_lost ? Reason::kPodLost : Reason::kWorkerLost;
  }
  if (change.drained) return Reason::kPodDrained;
  for (Reason reason : {Reason::kPodJoined, Reason::kRejoin, Reason::kWorkerJoined}) {
    for (const Joiner& joiner : change.joiners) {
      if (joiner.reason == reason) return reason;
    }
  }
  return view.reason;  // nobody comes or goes: at most `train` changes
}

}  // namespace

ViewPtr NextView(const View& view, const Change& wanted, ClauseSet without) {
  auto next = std::make_shared<View>();
  next->epoch = view.epoch + 1;
  next->parent = view.epoch;
  next->planned = wanted.planned;
  Change change = wanted;
  const bool fits = change.planned && !change.sizes.allowed.empty();
  const bool fewer = fits && FitToSizes(view, &change);
  next->reason = fewer ? Reason::kPodDrained : ReasonOf(view, wanted);
  bool holder = KeepRanks(view, change, next.get());
  if (next->pods.empty() || (!holder && !without.Has(Clause::kHolderStays))) return nullptr;
  // A survivor coordinates: the proposer, or the first pod that is not about to leave.
  next->coordinator = next->pods.front().uid;
  for (const Pod& pod : next->pods) {
    if (int p = view.FindPod(pod.uid); p < 0 || change.draining[p]) continue;
    next->coordinator = pod.uid;
    break;
  }
  int proposer = view.FindPod(change.proposer);
  if (next->FindPod(change.proposer) >= 0 && proposer >= 0 && !change.draining[proposer]) {
    next->coordinator = change.proposer;
  }
  AddJoiners(change, next.get());
  next->train = change.sizes.MayTrain(next->pods.size());
  return next;
}

std::vector<int> PodsToDrop(std::vector<std::pair<int, int>> accusations, int self) {
  std::sort(accusations.begin(), accusations.end());
  accusations.erase(std::unique(accusations.begin(), accusations.end()), accusations.end());
  std::vector<int> dropped;
  while (!accusations.empty()) {
    std::map<int, std::pair<int, int>> degree;  // pod -> {accusations it is in, times accused}
    for (auto [accuser, accused] : accusations) {
      if (accuser != self) ++degree[accuser].first;
      if (accused != self) {
        ++degree[accused].first;
        ++degree[accused].second;
      }
    }
    if (degree.empty()) break;
    auto worst = std::max_element(degree.begin(), degree.end(),
                                  [](const auto& a, const auto& b) { return a.second < b.second; });
    int pod = worst->first;
    dropped.push_back(pod);
    std::erase_if(accusations,
                  [pod](const auto& edge) { return edge.first == pod || edge.second == pod; });
  }
  return dropped;
}

}  // namespace ringmaster::membership
