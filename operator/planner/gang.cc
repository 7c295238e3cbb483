// Phase 5: decides which pods may start: minReplicas of them together, and the others as capacity
// appears, so that no job holds pods without being able to train. A pod that may start at once is
// created without a gate; the others get a gate, which is removed when their turn comes.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/plan_context.h"

namespace ringmaster::planner {
namespace {

// The admission loop wakes the job when its turn comes; this is how often to look in case that is
// missed.
constexpr std::chrono::seconds kLookForCapacity{30};
// For this long after a pod was wanted, its start is the response to that; later it counts as a
// growth that the operator chooses.
constexpr std::chrono::seconds kAnswer{10};

// If the scheduler refuses an admitted pod for this long, it blocks those pods of the job that have
// a node. Before that, nodes may still be on their way.
constexpr std::chrono::seconds kPlacePatience{60};
constexpr std::chrono::seconds kFirstPause{60};

// Some pods have the job's state. The record with its view outlives the pods, so it doesn't decide:
// a job that was suspended, or has lost all pods, starts as a gang again.
bool HasMembers(const PlanContext& plan) {
  return std::any_of(plan.in.pods.begin(), plan.in.pods.end(), [&](const PodFacts& pod) {
    return !pod.ended() && !pod.deleting && InView(plan.in, pod.uid);
  });
}

std::vector<const PodFacts*> Gated(const PlanContext& plan) {
  std::vector<const PodFacts*> gated;
  for (const PodFacts* pod : plan.active) {
    if (pod->gated) gated.push_back(pod);
  }
  std::sort(gated.begin(), gated.end(),
            [](const PodFacts* a, const PodFacts* b) { return a->index < b->index; });
  return gated;
}

// Until then a training job doesn't grow because capacity has appeared.
std::optional<Time> NextGrowth(const PlanContext& plan) {
  const auto last = api::ParseTime(plan.in.job.status.last_growth_time);
  if (!last) return std::nullopt;
  return *last + std::chrono::seconds(plan.in.job.spec.elastic_policy.resize_interval_seconds);
}

bool IsAllowed(const PlanContext& plan, int pods) {
  const std::vector<int>& sizes = plan.in.job.spec.elastic_policy.allowed_sizes;
  return sizes.empty() || std::find(sizes.begin(), sizes.end(), pods) != sizes.end();
}

const char* LeastName(const PlanContext& plan) {
  return LeastTogether(plan) == plan.in.job.spec.elastic_policy.min_replicas
             ? "minReplicas"
             : "the least of allowedSizes";
}

// The job has stood in line since its pods were first wanted, or since it had to give back what it
// had.
Time InLineSince(const PlanContext& plan) {
  const api::Status& status = plan.in.job.status;
  // In whole seconds, as in the status, so that a repeated request is identical.
  const Time now = std::chrono::floor<std::chrono::seconds>(plan.in.now);
  const Time start = api::ParseTime(status.start_time).value_or(now);
  return std::max(start, api::ParseTime(status.last_given_back_time).value_or(start));
}

// Pods that may start when their turn comes: gated pods, then those to be created.
struct Candidates {
  std::vector<const PodFacts*> gated;
  std::size_t creates = 0;
  int started = 0;
  bool join_members = false;  // other pods of the job have its state
  std::size_t size() const { return gated.size() + creates; }
};

// A growth that the operator chooses, and not the response to a user or the replacement of a lost
// pod.
bool IsGrowth(const PlanContext& plan, const Candidates& candidates, std::size_t i) {
  if (!candidates.join_members || i >= candidates.gated.size()) return false;
  if (candidates.started + i < plan.in.view->pods.size()) return false;
  return plan.in.now - candidates.gated[i]->created > kAnswer;
}

// The numbers of candidates that are of use together, ascending.
std::vector<int> SizesOfUse(const PlanContext& plan, const Candidates& candidates, bool may_grow) {
  std::vector<int> sizes;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!may_grow && IsGrowth(plan, candidates, i)) break;
    const int pods = candidates.started + static_cast<int>(i) + 1;
    if (pods >= LeastTogether(plan) && IsAllowed(plan, pods))
      sizes.push_back(static_cast<int>(i) + 1);
  }
  return sizes;
}

// Lets the first `count` candidates start; returns true if that is a growth.
bool LetStart(PlanContext& plan, const Candidates& candidates, int count) {
  bool grew = false;
  const std::string domain = plan.in.gang_fit ? plan.in.gang_fit->domain : "";
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (at < candidates.gated.size()) {
      plan.out.admits.push_back({candidates.gated[at]->name, candidates.gated[at]->uid, domain});
      grew = grew || IsGrowth(plan, candidates, at);
    } else {
      PodCreate& create = plan.out.creates[at - candidates.gated.size()];
      create.granted = true;
      create.domain = domain;
    }
  }
  return grew;
}

// Sets how many of the creates must succeed, and which pods are deleted if they don't. Members of a
// view are kept, because they have the job's state.
void SetLeastCreates(PlanContext& plan, const Candidates& candidates, int admitted) {
  const int gated = std::min(admitted, static_cast<int>(candidates.gated.size()));
  plan.out.least_creates = std::max(0, LeastTogether(plan) - candidates.started - gated);
  if (plan.out.least_creates == 0 || candidates.join_members) return;
  for (const PodFacts* pod : plan.active) {
    if (!pod->gated) plan.out.useless_alone.push_back({pod->name, pod->uid, "NotAllCouldBeMade"});
  }
}

// "in rack=b: " if the pods have to be in one domain; else empty.
std::string InItsDomain(const PlanContext& plan) {
  const api::TopologyPolicy& topology = plan.in.job.spec.run_policy.scheduling_policy.topology;
  const std::string& domain = plan.in.gang_fit->domain;
  if (!topology.required || domain.empty()) return "";
  return fmt::format("in {}={}: ", topology.label, domain);
}

void ExplainGates(PlanContext& plan, const Candidates& candidates, std::size_t left,
                  bool held_back) {
  const int least = LeastTogether(plan);
  if (held_back) {
    plan.gated_why =
        fmt::format("{} wait until resizeIntervalSeconds ({}) have passed since the job last grew",
                    Plural(left, "pod"), plan.in.job.spec.elastic_policy.resize_interval_seconds);
    return plan.LookAgainAt(*NextGrowth(plan));
  }
  plan.LookAgainAt(plan.in.now + kLookForCapacity);
  plan.no_capacity = plan.in.gang_fit->decided;
  if (!plan.in.gang_fit->leavers.empty()) plan.leavers = WhoLeaves(plan.in);
  if (!plan.no_capacity) {
    plan.gated_why = fmt::format("{} wait: the job stands in line", Plural(left, "pod"));
    return;
  }
  const int fit = plan.in.gang_fit->tried;
  plan.gated_why = plan.in.gang_fit->fit >= least - candidates.started
                       ? fmt::format("{} wait for room: {}{}", Plural(left, "pod"),
                                     InItsDomain(plan), plan.in.gang_fit->why)
                       : fmt::format("{} is {}, so that many have to fit together, and {} do: {}{}",
                                     LeastName(plan), least, candidates.started + fit,
                                     InItsDomain(plan), plan.in.gang_fit->why);
}

// The capacity cache saw room that the Kubernetes scheduler doesn't see. The second time in a row
// that is no accident, so the pauses between tries grow.
std::optional<Time> NextTry(const PlanContext& plan) {
  const api::Status& status = plan.in.job.status;
  const auto last = api::ParseTime(status.last_given_back_time);
  if (!last || status.times_given_back < 2) return std::nullopt;
  const int doublings = std::min(status.times_given_back - 2, 5);
  return *last + kFirstPause * (1 << doublings);
}

void ExplainPause(PlanContext& plan, const Candidates& candidates) {
  if (candidates.gated.empty()) return;
  plan.gated_why = fmt::format(
      "{} wait: not all of the job's pods can be made and let start now: see condition {}",
      Plural(candidates.gated.size(), "pod"),
      plan.in.job.status.epoch == 0 ? "Created" : "Degraded");
}

// An autoscaler takes minutes to make nodes.
std::chrono::seconds PatienceFor(const PlanContext& plan,
                                 const std::vector<const PodFacts*>& pods) {
  const bool calls = std::any_of(pods.begin(), pods.end(),
                                 [](const PodFacts* pod) { return pod->calls_for_nodes; });
  return calls ? plan.in.nodes_within.value_or(kPlacePatience) : kPlacePatience;
}

bool IsUnschedulable(const PodFacts& pod) { return pod.waiting.rfind("Unschedulable", 0) == 0; }

}  // namespace

int LeastTogether(const PlanContext& plan) { return plan.in.job.LeastPods(); }

bool GiveBack(PlanContext& plan) {
  if (!plan.in.gang_fit || plan.finishing || HasMembers(plan)) return false;
  std::vector<const PodFacts*> started;
  const PodFacts* stuck = nullptr;
  Time since;
  int placed = 0;
  for (const PodFacts* pod : plan.active) {
    if (pod->gated) continue;
    started.push_back(pod);
    placed += pod->scheduled ? 1 : 0;
    since = std::max(since, pod->admitted_at.value_or(pod->created));
    // A job whose pods wait for nodes has limited time, whatever the scheduler says, because other
    // jobs wait for their turn to call.
    if (!pod->scheduled && (pod->calls_for_nodes || IsUnschedulable(*pod))) stuck = pod;
  }
  // Some pods are gone, and there is no room for others.
  const api::Condition* scheduled = plan.in.job.status.Find("Scheduled");
  const bool no_room = !started.empty() && static_cast<int>(started.size()) < LeastTogether(plan) &&
                       scheduled != nullptr && scheduled->reason == "WaitingForRoom";
  if (placed >= LeastTogether(plan) || (stuck == nullptr && !no_room)) return false;
  const std::chrono::seconds patience = PatienceFor(plan, started);
  if (plan.in.now < since + patience) {
    plan.LookAgainAt(since + patience);
    return false;
  }
  api::Status& status = plan.out.status;
  ++status.times_given_back;
  status.last_given_back_time = api::FormatTime(plan.in.now);
  plan.AddEvent(true, "GivenBack",
                fmt::format("{} were let start and {} of them found a node within {} s: they give "
                            "back what they hold, and the job stands in line again; {}: {}",
                            Plural(started.size(), "pod"), placed, patience.count(),
                            stuck == nullptr ? "now" : stuck->name,
                            stuck == nullptr         ? scheduled->message
                            : stuck->waiting.empty() ? "no scheduler has looked at it"
                                                     : stuck->waiting));
  for (const PodFacts* pod : started) {
    std::erase(plan.active, pod);
    plan.out.deletes.push_back({pod->name, pod->uid, "GivenBack"});
  }
  return true;
}

void Admit(PlanContext& plan) {
  Candidates candidates{.gated = Gated(plan)};
  candidates.started = static_cast<int>(plan.active.size() - candidates.gated.size());
  candidates.join_members = HasMembers(plan);
  if (candidates.join_members) plan.out.status.times_given_back = 0;
  SetShields(plan, candidates.join_members);
  ObserveNodeCalls(plan, candidates.join_members);
  // If pods did not find the nodes that were counted for them, the stored pods may differ from the
  // template: then pods are first created with a gate and counted as stored.
  const bool by_template = !plan.in.gang_fit || plan.out.status.times_given_back == 0;
  if (by_template) candidates.creates = plan.out.creates.size();
  if (candidates.size() == 0) return;
  if (!plan.in.gang_fit) {
    // Free capacity is not tracked any more, so the gates of an earlier operator have to go.
    (void)LetStart(plan, candidates, static_cast<int>(candidates.size()));
    return;
  }
  // Pods that can't be created or admitted now must not hold capacity that others could use, and
  // gated pods are of no use without the rest.
  if (plan.in.creation_waits) return ExplainPause(plan, candidates);
  if (const auto next_try = NextTry(plan); next_try && plan.in.now < *next_try) {
    plan.gated_why = fmt::format(
        "{} times the pods were let start and did not all find a node; the next time is at {}",
        plan.in.job.status.times_given_back, api::FormatTime(*next_try));
    return plan.LookAgainAt(*next_try);
  }
  const auto next_growth = NextGrowth(plan);
  const bool may_grow = !next_growth || plan.in.now >= *next_growth;
  plan.out.gang_sizes = SizesOfUse(plan, candidates, may_grow);
  plan.out.in_line_since = InLineSince(plan);
  plan.out.gang_standing = candidates.started == 0                    ? scheduler::Standing::kWaits
                           : candidates.started < LeastTogether(plan) ? scheduler::Standing::kShort
                                                                      : scheduler::Standing::kRuns;
  int admitted = 0;
  for (const int size : plan.out.gang_sizes) {
    if (size <= plan.in.gang_fit->fit) admitted = size;
  }
  if (LetStart(plan, candidates, admitted)) {
    plan.out.status.last_growth_time = api::FormatTime(plan.in.now);
  }
  if (admitted == 0 && !plan.out.gang_sizes.empty()) {
    CallForNodes(plan, candidates.gated, plan.out.gang_sizes.front());
  }
  SetLeastCreates(plan, candidates, admitted);
  const std::size_t left = candidates.size() - static_cast<std::size_t>(admitted);
  if (left == 0) return;
  // All pods that may start now have started, and the others wait for the next growth.
  const bool held_back =
      !may_grow && IsGrowth(plan, candidates, static_cast<std::size_t>(admitted));
  ExplainGates(plan, candidates, left, held_back);
}

}  // namespace ringmaster::planner
