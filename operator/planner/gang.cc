// Phase 5: which pods may start. Pods are made with a scheduling gate; it is lifted for minReplicas
// of them together, and for the others as capacity appears, so that half a job never holds what
// another needs.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/plan_context.h"

namespace ringmaster::planner {
namespace {

// Capacity appears by other jobs' pods and by nodes, which don't wake this job.
constexpr std::chrono::seconds kLookForCapacity{2};
// So long after a pod was asked for, its start is still the answer to that; later it is a growth of
// the operator's own choice.
constexpr std::chrono::seconds kAnswer{10};

std::vector<const PodFacts*> Gated(const PlanContext& plan) {
  std::vector<const PodFacts*> gated;
  for (const PodFacts* pod : plan.active) {
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

// The end of the time in which a job that trains doesn't grow because capacity has appeared.
std::optional<Time> NextGrowth(const PlanContext& plan) {
  const auto last = api::ParseTime(plan.in.job.status.last_growth_time);
  if (!last) return std::nullopt;
  return *last + std::chrono::seconds(plan.in.job.spec.elastic_policy.resize_interval_seconds);
}

}  // namespace

void Admit(PlanContext& plan) {
  const std::vector<const PodFacts*> gated = Gated(plan);
  if (gated.empty()) return;
  // Nobody counts the nodes any more: the gates of an earlier operator must not stay.
  const int fit = plan.in.gang_fit ? plan.in.gang_fit->fit : static_cast<int>(gated.size());
  const int started = static_cast<int>(plan.active.size() - gated.size());
  const int least = plan.in.job.spec.elastic_policy.min_replicas;
  const int before = plan.in.view == nullptr ? 0 : static_cast<int>(plan.in.view->pods.size());
  const auto next_growth = NextGrowth(plan);
  const bool may_grow = !next_growth || plan.in.now >= *next_growth;
  int admitted = 0;
  bool grew = false, held_back = false;
  for (int i = 0; started + fit >= least && i < fit; ++i) {
    // Up to the size that it had, a pod replaces one that is lost.
    const bool growth = plan.in.gang_fit && plan.in.view != nullptr &&
                        started + admitted >= before && plan.in.now - gated[i]->created > kAnswer;
    if (growth && !may_grow) {
      held_back = true;
      break;
    }
    grew = grew || growth;
    plan.out.admits.push_back({gated[i]->name, gated[i]->uid});
    ++admitted;
  }
  if (grew) plan.out.status.last_growth_time = api::FormatTime(plan.in.now);
  const std::size_t left = gated.size() - static_cast<std::size_t>(admitted);
  if (left == 0) return;
  if (held_back) {
    plan.gated_why =
        fmt::format("{} wait until resizeIntervalSeconds ({}) have passed since the job last grew",
                    Plural(left, "pod"), plan.in.job.spec.elastic_policy.resize_interval_seconds);
    return plan.LookAgainAt(*next_growth);
  }
  if (static_cast<int>(plan.active.size()) < least) {
    plan.gated_why = fmt::format("minReplicas is {}, so that many have to fit together, and {}",
                                 least, OnlySoMany(plan.active.size()));
    return plan.LookAgainAt(plan.in.now + kLookForCapacity);
  }
  plan.no_capacity = true;
  plan.gated_why =
      started + fit >= least
          ? fmt::format("{} wait for room: {}", Plural(left, "pod"), plan.in.gang_fit->why)
          : fmt::format("minReplicas is {}, so that many have to fit together, and {} do: {}",
                        least, started + fit, plan.in.gang_fit->why);
  plan.LookAgainAt(plan.in.now + kLookForCapacity);
}

}  // namespace ringmaster::planner
