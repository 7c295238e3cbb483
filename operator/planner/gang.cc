// Phase 5: who may start. Pods are made with a scheduling gate; it is lifted for minReplicas of
// them together, and for the others as room appears, so that half a job never holds what another
// needs.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/work.h"

namespace ringmaster::planner {
namespace {

// Room appears by other jobs' pods and by nodes, which don't wake this job.
constexpr std::chrono::seconds kLookForRoom{2};
// So long after a pod was asked for, its start is still the answer to that; later it is a growth of
// the operator's own choice.
constexpr std::chrono::seconds kAnswer{10};

std::vector<const PodFacts*> Gated(const Work& work) {
  std::vector<const PodFacts*> gated;
  for (const PodFacts* pod : work.active) {
    if (pod->gated) gated.push_back(pod);
  }
  std::sort(gated.begin(), gated.end(),
            [](const PodFacts* a, const PodFacts* b) { return a->index < b->index; });
  return gated;
}

// Their making is refused or under way: condition Created tells.
std::string OnlySoMany(std::size_t pods) {
  return pods == 1 ? "only 1 is there" : fmt::format("only {} are there", pods);
}

// The end of the time in which a job that trains doesn't grow because room has appeared.
std::optional<Time> NextGrowth(const Work& work) {
  const auto last = api::ParseTime(work.in.job.status.last_growth_time);
  if (!last) return std::nullopt;
  return *last + std::chrono::seconds(work.in.job.spec.elastic_policy.resize_interval_seconds);
}

}  // namespace

void Admit(Work& work) {
  const std::vector<const PodFacts*> gated = Gated(work);
  if (gated.empty()) return;
  // Nobody counts the nodes any more: the gates of an earlier operator must not stay.
  const int fit = work.in.room ? work.in.room->fit : static_cast<int>(gated.size());
  const int started = static_cast<int>(work.active.size() - gated.size());
  const int least = work.in.job.spec.elastic_policy.min_replicas;
  const int before = work.in.view == nullptr ? 0 : static_cast<int>(work.in.view->pods.size());
  const auto next_growth = NextGrowth(work);
  const bool may_grow = !next_growth || work.in.now >= *next_growth;
  int admitted = 0;
  bool grew = false, held_back = false;
  for (int i = 0; started + fit >= least && i < fit; ++i) {
    // Up to the size that it had, a pod replaces one that is lost.
    const bool growth = work.in.room && work.in.view != nullptr && started + admitted >= before &&
                        work.in.now - gated[i]->created > kAnswer;
    if (growth && !may_grow) {
      held_back = true;
      break;
    }
    grew = grew || growth;
    work.out.admits.push_back({gated[i]->name, gated[i]->uid});
    ++admitted;
  }
  if (grew) work.out.status.last_growth_time = api::FormatTime(work.in.now);
  const std::size_t left = gated.size() - static_cast<std::size_t>(admitted);
  if (left == 0) return;
  if (held_back) {
    work.gated_why =
        fmt::format("{} wait until resizeIntervalSeconds ({}) have passed since the job last grew",
                    Plural(left, "pod"), work.in.job.spec.elastic_policy.resize_interval_seconds);
    return work.LookAgainAt(*next_growth);
  }
  if (static_cast<int>(work.active.size()) < least) {
    work.gated_why = fmt::format("minReplicas is {}, so that many have to fit together, and {}",
                                 least, OnlySoMany(work.active.size()));
    return work.LookAgainAt(work.in.now + kLookForRoom);
  }
  work.no_room = true;
  work.gated_why =
      started + fit >= least
          ? fmt::format("{} wait for room: {}", Plural(left, "pod"), work.in.room->why)
          : fmt::format("minReplicas is {}, so that many have to fit together, and {} do: {}",
                        least, started + fit, work.in.room->why);
  work.LookAgainAt(work.in.now + kLookForRoom);
}

}  // namespace ringmaster::planner
