// Phase 5: decides which of the wanted pods are created: minReplicas of them together, and the
// others as capacity appears, so that no job holds pods without being able to train. The others are
// kept back: they don't exist before their turn comes.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

// The admission loop wakes the job when its turn comes; this is how often to look in case that is
// missed.
constexpr std::chrono::seconds kLookForCapacity{30};
// For this long after pods were wanted, their start is the response to that; later it counts as a
// growth that the operator chooses.
constexpr std::chrono::seconds kAnswer{10};

// If the scheduler refuses an admitted pod for this long, it blocks those pods of the job that have
// a node. Before that, nodes may still be on their way.
constexpr std::chrono::seconds kPlacePatience{60};
constexpr std::chrono::seconds kFirstPause{60};

// Some pods have the job's state. The record with its view outlives the pods, so it doesn't decide:
// a job that was suspended, or has lost all pods, starts as a gang again.
bool HasMembers(const Snapshot& in) {
  return std::any_of(in.pods.begin(), in.pods.end(), [&](const PodFacts& pod) {
    return !pod.ended() && !pod.deleting && InView(in, pod.uid);
  });
}

// Until then a training job doesn't grow because capacity has appeared.
std::optional<Time> NextGrowth(const Snapshot& in) {
  const auto last = api::ParseTime(in.job.status.last_growth_time);
  if (!last) return std::nullopt;
  return *last + std::chrono::seconds(in.job.spec.elastic_policy.resize_interval_seconds);
}

bool IsAllowed(const Snapshot& in, int pods) {
  const std::vector<int>& sizes = in.job.spec.elastic_policy.allowed_sizes;
  return sizes.empty() || std::find(sizes.begin(), sizes.end(), pods) != sizes.end();
}

// The job has stood in line since its pods were first wanted, or since it had to give back what it
// had.
Time InLineSince(const Snapshot& in) {
  const api::Status& status = in.job.status;
  // In whole seconds, as in the status, so that a repeated request is identical.
  const Time now = std::chrono::floor<std::chrono::seconds>(in.now);
  const Time start = api::ParseTime(status.start_time).value_or(now);
  return std::max(start, api::ParseTime(status.last_given_back_time).value_or(start));
}

// Pods that are created when their turn comes.
struct Candidates {
  std::size_t count = 0;
  int started = 0;            // pods that are there already
  int stay = 0;               // of those: that will be there tomorrow, too
  bool join_members = false;  // some of these have the job's state
  bool late = false;          // wanted for so long that their start is no response to that
};

// Since when the job has had fewer pods with a node than it wants.
Time WantedSince(const Snapshot& in) {
  const api::Condition* scheduled = in.job.status.Find("Scheduled");
  if (scheduled == nullptr || scheduled->status) return in.now;
  return api::ParseTime(scheduled->last_transition_time).value_or(in.now);
}

Candidates CandidatesOf(const Snapshot& in, const PodSets& pods, const DecisionDraft& out) {
  const bool begun = HasMembers(in);
  // Before the first view a pod of which nobody hears is none to begin with.
  const auto counts = [&](const PodFacts* pod) { return begun || !pods.away.contains(pod->uid); };
  const auto stays = [&](const PodFacts* pod) { return pods.Stays(*pod); };
  const auto& active = pods.active;
  return {.count = out.creates.size(),
          .started = static_cast<int>(std::count_if(active.begin(), active.end(), counts)),
          .stay = static_cast<int>(std::count_if(active.begin(), active.end(), stays)),
          .join_members = begun,
          .late = in.now - WantedSince(in) > kAnswer};
}

// A growth that the operator chooses, and not the response to a user or the replacement of a lost
// pod.
bool IsGrowth(const Snapshot& in, const Candidates& candidates, std::size_t i) {
  return candidates.join_members && candidates.late && i < candidates.count &&
         candidates.started + i >= in.view->pods.size();
}

// The numbers of candidates that are of use together, ascending.
std::vector<int> SizesOfUse(const Snapshot& in, const Candidates& candidates, bool may_grow) {
  std::vector<int> sizes;
  for (std::size_t i = 0; i < candidates.count; ++i) {
    if (!may_grow && IsGrowth(in, candidates, i)) break;
    const int more = static_cast<int>(i) + 1;
    // With those that replace pods on nodes that are to go it has more for a while.
    if (candidates.started + more >= LeastTogether(in) && IsAllowed(in, candidates.stay + more))
      sizes.push_back(more);
  }
  return sizes;
}

// The pods of one growth may be created over several looks: some are there, and not in the view
// yet.
bool GrowsStill(const Snapshot& in, const Candidates& candidates) {
  const auto last = api::ParseTime(in.job.status.last_growth_time);
  return last && in.now < *last + kAnswer && candidates.join_members &&
         static_cast<std::size_t>(candidates.started) > in.view->pods.size();
}

// The first `count` candidates are created where room is held for them.
void LetStart(const Snapshot& in, const PodSets& pods, DecisionDraft& out,
              const Candidates& candidates, int count) {
  const auto booking = BookingOf(in, pods);
  bool grows = false;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    out.creates[at].domain = in.gang_fit->domain;
    if (booking != nullptr && i < booking->pods) out.creates[at].booking = booking;
    grows = grows || IsGrowth(in, candidates, at);
  }
  if (grows && !GrowsStill(in, candidates)) out.status.last_growth_time = api::FormatTime(in.now);
}

// How many of the candidates are created now: those that fit, else those for which an autoscaler
// makes nodes.
int CountCreated(const Snapshot& in, const PodSets& pods, WaitReasons& why, DecisionDraft& out,
                 const Candidates& candidates) {
  const auto above =
      std::upper_bound(out.gang_sizes.begin(), out.gang_sizes.end(), in.gang_fit->fit);
  if (above != out.gang_sizes.begin()) {
    LetStart(in, pods, out, candidates, *(above - 1));
    return *(above - 1);
  }
  if (out.gang_sizes.empty()) return 0;
  const int least = out.gang_sizes.front();
  return in.requests ? RequestNodes(in, pods, why, out, least) : CallForNodes(in, why, out, least);
}

void KeepBack(DecisionDraft& out, int from) {
  out.kept_back = static_cast<int>(out.creates.size()) - from;
  out.creates.resize(static_cast<std::size_t>(from));
}

// Sets how many of the creates must succeed, and which pods are deleted if they don't. Members of a
// view are kept, because they have the job's state.
void SetLeastCreates(const Snapshot& in, const PodSets& pods, DecisionDraft& out,
                     const Candidates& candidates) {
  if (out.creates.empty()) return;
  out.least_creates = std::max(0, LeastTogether(in) - candidates.started);
  if (out.least_creates == 0 || candidates.join_members || in.now < HeardAllBy(in)) return;
  for (const PodFacts* pod : pods.active) {
    out.useless_alone.push_back({pod->name, pod->uid, "NotAllCouldBeMade"});
  }
}

// "in rack=b: " if the pods have to be in one domain; else empty.
std::string InItsDomain(const Snapshot& in) {
  const api::TopologyPolicy& topology = in.job.spec.run_policy.scheduling_policy.topology;
  const std::string& domain = in.gang_fit->domain;
  if (!topology.required || domain.empty()) return "";
  return fmt::format("in {}={}: ", topology.label, domain);
}

void ExplainWhatIsKept(const Snapshot& in, WaitReasons& why, DecisionDraft& out,
                       const Candidates& candidates, bool held_back) {
  const auto left = static_cast<std::size_t>(out.kept_back);
  const int least = LeastTogether(in);
  if (held_back) {
    why.kept_why =
        fmt::format("{} wait until resizeIntervalSeconds ({}) have passed since the job last grew",
                    Plural(left, "pod"), in.job.spec.elastic_policy.resize_interval_seconds);
    return out.LookAgainAt(*NextGrowth(in));
  }
  out.LookAgainAt(in.now + kLookForCapacity);
  why.no_capacity = in.gang_fit->decided;
  if (!in.gang_fit->leavers.empty()) why.leavers = WhoLeaves(in);
  if (!why.no_capacity) {
    why.kept_why = fmt::format("{} {}: the job stands in line", Plural(left, "pod"),
                               left == 1 ? "waits" : "wait");
    return;
  }
  const int fit = in.gang_fit->tried;
  why.kept_why = in.gang_fit->fit >= least - candidates.started
                     ? fmt::format("{} {} for room: {}{}", Plural(left, "pod"),
                                   left == 1 ? "waits" : "wait", InItsDomain(in), in.gang_fit->why)
                     : fmt::format("{} is {}, so that many have to fit together, and {} do: {}{}",
                                   LeastName(in), least, candidates.started + fit, InItsDomain(in),
                                   in.gang_fit->why);
}

// The capacity cache saw room that the Kubernetes scheduler doesn't see. The second time in a row
// that is no accident, so the pauses between tries grow.
std::optional<Time> NextTry(const Snapshot& in) {
  const api::Status& status = in.job.status;
  const auto last = api::ParseTime(status.last_given_back_time);
  if (!last || status.times_given_back < 2) return std::nullopt;
  const int doublings = std::min(status.times_given_back - 2, 5);
  return *last + kFirstPause * (1 << doublings);
}

void ExplainPause(const Snapshot& in, WaitReasons& why, std::size_t left) {
  why.kept_why =
      fmt::format("{} wait: not all of the job's pods can be made now: see condition {}",
                  Plural(left, "pod"), in.job.status.epoch == 0 ? "Created" : "Degraded");
}

// An autoscaler takes minutes to make nodes.
std::chrono::seconds PatienceFor(const Snapshot& in, const std::vector<const PodFacts*>& pods) {
  const bool calls = std::any_of(pods.begin(), pods.end(),
                                 [](const PodFacts* pod) { return pod->calls_for_nodes; });
  return calls ? in.nodes_within.value_or(kPlacePatience) : kPlacePatience;
}

bool IsUnschedulable(const PodFacts& pod) { return pod.waiting.rfind("Unschedulable", 0) == 0; }

// The pods that are there: all of them were let start.
struct LetStartPods {
  std::vector<const PodFacts*> pods;
  int placed = 0;
  Time since;                       // since then all of them may
  const PodFacts* stuck = nullptr;  // one that finds no node; null: none
};

LetStartPods WhoWasLetStart(const PodSets& pods) {
  LetStartPods started;
  for (const PodFacts* pod : pods.active) {
    started.pods.push_back(pod);
    started.placed += pod->scheduled ? 1 : 0;
    started.since = std::max(started.since, pod->created);
    // A job whose pods wait for nodes has limited time, whatever the scheduler says, because other
    // jobs wait for their turn to call.
    if (!pod->scheduled && (pod->calls_for_nodes || IsUnschedulable(*pod))) started.stuck = pod;
  }
  return started;
}

// The status counts that these were given back, and whoever wrote that has not deleted all of them:
// they had waited for long by then. Those that were let start afterwards had not, even where clocks
// differ.
bool IsWrittenAsGivenBack(const Snapshot& in, const LetStartPods& started) {
  const auto last = api::ParseTime(in.job.status.last_given_back_time);
  return last && started.since + std::min(kPlacePatience, PatienceFor(in, started.pods)) <= *last;
}

void TakeBack(const LetStartPods& started, PodSets& pods, DecisionDraft& out) {
  out.deletes_are_one = true;
  for (const PodFacts* pod : started.pods) {
    std::erase(pods.active, pod);
    out.deletes.push_back({pod->name, pod->uid, "GivenBack"});
  }
}

}  // namespace

int LeastTogether(const Snapshot& in) { return in.job.LeastPods(); }

const char* LeastName(const Snapshot& in) {
  return LeastTogether(in) == in.job.spec.elastic_policy.min_replicas ? "minReplicas"
                                                                      : "the least of allowedSizes";
}

bool GiveBack(const Snapshot& in, const JobState& state, PodSets& pods, DecisionDraft& out) {
  if (!in.gang_fit || state.finishing || HasMembers(in)) return false;
  const LetStartPods started = WhoWasLetStart(pods);
  if (started.pods.empty() || started.placed >= LeastTogether(in)) return false;
  if (IsWrittenAsGivenBack(in, started)) {
    TakeBack(started, pods, out);
    return true;
  }
  // Pods of a view that this operator doesn't know yet may have the job's state.
  if (in.now < HeardAllBy(in)) {
    out.LookAgainAt(HeardAllBy(in));
    return false;
  }
  // Some pods are gone, and there is no room for others.
  const api::Condition* scheduled = in.job.status.Find("Scheduled");
  const bool no_room = static_cast<int>(started.pods.size()) < LeastTogether(in) &&
                       scheduled != nullptr && scheduled->reason == "WaitingForRoom";
  if (started.stuck == nullptr && !no_room) return false;
  const std::chrono::seconds patience = PatienceFor(in, started.pods);
  if (in.now < started.since + patience) {
    out.LookAgainAt(started.since + patience);
    return false;
  }
  api::Status& status = out.status;
  ++status.times_given_back;
  status.last_given_back_time = api::FormatTime(in.now);
  out.status_first = true;
  const PodFacts* stuck = started.stuck;
  out.AddEvent(true, "GivenBack",
               fmt::format("{} were let start and {} of them found a node within {} s: they give "
                           "back what they hold, and the job stands in line again; {}: {}",
                           Plural(started.pods.size(), "pod"), started.placed, patience.count(),
                           stuck == nullptr ? "now" : stuck->name,
                           stuck == nullptr         ? scheduled->message
                           : stuck->waiting.empty() ? "no scheduler has looked at it"
                                                    : stuck->waiting));
  TakeBack(started, pods, out);
  return true;
}

void Admit(const Snapshot& in, const PodSets& pods, WaitReasons& why, DecisionDraft& out) {
  const Candidates candidates = CandidatesOf(in, pods, out);
  if (candidates.join_members) out.status.times_given_back = 0;
  SetShields(in, pods, out, candidates.join_members);
  ObserveNodeCalls(in, pods, why, out, candidates.join_members);
  ObserveRequest(in, pods, why, out, candidates.join_members);
  if (candidates.count == 0 || !in.gang_fit) return;
  // Pods that can't be created now must not hold capacity that others could use.
  if (in.creation_waits) {
    ExplainPause(in, why, candidates.count);
    return KeepBack(out, 0);
  }
  if (const auto next_try = NextTry(in); next_try && in.now < *next_try) {
    why.kept_why = fmt::format(
        "{} times the pods were let start and did not all find a node; the next time is at {}",
        in.job.status.times_given_back, api::FormatTime(*next_try));
    out.LookAgainAt(*next_try);
    return KeepBack(out, 0);
  }
  const auto next_growth = NextGrowth(in);
  const bool may_grow = !next_growth || in.now >= *next_growth || GrowsStill(in, candidates);
  out.gang_sizes = SizesOfUse(in, candidates, may_grow);
  out.in_line_since = InLineSince(in);
  out.gang_state = candidates.started == 0                  ? scheduler::GangState::kWaits
                   : candidates.started < LeastTogether(in) ? scheduler::GangState::kShort
                                                            : scheduler::GangState::kRuns;
  const int created = CountCreated(in, pods, why, out, candidates);
  KeepBack(out, created);
  SetLeastCreates(in, pods, out, candidates);
  if (out.kept_back == 0) return;
  // All pods that may start now do, and the others wait for the next growth.
  const bool held_back = !may_grow && IsGrowth(in, candidates, static_cast<std::size_t>(created));
  ExplainWhatIsKept(in, why, out, candidates, held_back);
}

}  // namespace ringmaster::planner
