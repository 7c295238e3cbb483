// Phase 9: what the user sees.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "operator/api/labels.h"
#include "operator/planner/phases.h"

namespace ringmaster::planner {

void SetCondition(const Snapshot& in, DecisionDraft& out, const std::string& type, bool on,
                  std::string reason, std::string message) {
  auto& conditions = out.status.conditions;
  auto at = std::find_if(conditions.begin(), conditions.end(),
                         [&](const api::Condition& c) { return c.type == type; });
  if (at == conditions.end())
    at = conditions.insert(conditions.end(), api::Condition{.type = type});
  if (at->status != on || at->last_transition_time.empty()) {
    at->status = on;
    at->last_transition_time = api::FormatTime(in.now);
  }
  at->reason = std::move(reason);
  at->message = std::move(message);
  at->observed_generation = in.job.generation;
}

namespace {

// Ranks shown in the status: 100 KB of JSON. A status of megabytes would not fit into etcd.
constexpr std::size_t kMostRanks = 1000;

using membership::EpochText;

// Members of the newest view that are gone, or have not installed it yet. For a first view the
// latter don't count: it is only on its way to its members.
std::vector<std::string> NotInRing(const Snapshot& in) {
  std::vector<std::string> names;
  if (in.view == nullptr) return names;
  for (const membership::Pod& pod : in.view->pods) {
    const SidecarFacts* sidecar = FindSidecar(in, pod.uid);
    const bool behind = in.view->reason != membership::Reason::kBootstrap && sidecar != nullptr &&
                        sidecar->connected && sidecar->epoch < in.view->epoch;
    if (behind || IsGone(in, pod.uid)) names.push_back(pod.name);
  }
  return names;
}

std::string WhySuspended(const Snapshot& in, const JobState& state) {
  if (state.gives_all) return "all pods leave for a more important job: see condition Preempted";
  const api::Spec& spec = in.job.spec;
  if (state.queued) return in.queue->message;
  const char* pods = in.pods.empty() ? "the job has no pods" : "its pods are being removed";
  if (spec.run_policy.suspend) return fmt::format("runPolicy.suspend is true: {}", pods);
  if (spec.worker.replicas == 0) return fmt::format("worker.replicas is 0: {}", pods);
  if (state.outdated) {
    return "worker.template or collectives were changed while the job was suspended, and pods of "
           "before still run: they are being removed, and others will be made";
  }
  return "the job is not suspended any more; the pods of before are waited for, they still end";
}

// The smaller view has an event already; that it is too small to train is another one.
void SetHeld(const Snapshot& in, DecisionDraft& out, const std::string& message) {
  constexpr char kReason[] = "BelowMinReplicas";
  const api::Condition* before = in.job.status.Find("Running");
  if (before == nullptr || before->reason != kReason) out.AddEvent(true, kReason, message);
  SetCondition(in, out, "Running", false, kReason, message);
}

// Workers that don't call init() are reported only when enough pods have run for a moment: before,
// they are just starting.
void SetBeginning(const Snapshot& in, const JobState& state, const PodSets& pods,
                  DecisionDraft& out) {
  constexpr char kReason[] = "WaitingForInit";
  const std::string message = WaitingForInit(in, state, pods, out);
  const api::Condition* before = in.job.status.Find("Running");
  const bool said = before != nullptr && !before->status && before->reason == kReason;
  const bool runs = EnoughHaveRun(in, pods, out);
  if (runs && !said) out.AddEvent(false, kReason, message);
  SetCondition(in, out, "Running", false, runs ? kReason : "Starting", message);
}

void SetRunning(const Snapshot& in, const JobState& state, const PodSets& pods, const Stall& stall,
                DecisionDraft& out) {
  const membership::ViewPtr& view = in.view;
  if (state.outcome.ended()) {
    return SetCondition(in, out, "Running", false, "JobEnded", state.outcome.message);
  }
  if (state.suspended) {
    return SetCondition(in, out, "Running", false, SuspendedReason(in, state),
                        WhySuspended(in, state));
  }
  if (!stall.reason.empty()) {
    return SetCondition(in, out, "Running", false, stall.reason, stall.message);
  }
  if (view == nullptr) return SetBeginning(in, state, pods, out);
  const std::string size = fmt::format("{} and {} in epoch {}", Plural(view->pods.size(), "pod"),
                                       Plural(view->ranks.size(), "rank"), EpochText(view->epoch));
  const std::size_t smaller = GoesOnWith(in);
  if (smaller > 0) {
    return SetCondition(in, out, "Running", false, "Resizing",
                        fmt::format("{} are held at the step boundary: {} of the pods go on, as "
                                    "allowedSizes says",
                                    size, smaller));
  }
  if (!view->train) {
    return SetHeld(in, out,
                   fmt::format("{} are held at the step boundary: {} is {}", size, LeastName(in),
                               LeastTogether(in)));
  }
  SetCondition(in, out, "Running", true, "Training", size);
}

// What a recovery from quorum loss waits for is also emitted as an event, once.
bool SetStalled(const Snapshot& in, const Stall& stall, DecisionDraft& out) {
  if (stall.reason.empty()) return false;
  const api::Condition* before = in.job.status.Find("Rebuilding");
  const bool news = before == nullptr || !before->status || before->message != stall.message;
  if (news && stall.reason != kQuorumLost && stall.reason != kStalled) {
    out.AddEvent(true, stall.reason, stall.message);
  }
  SetCondition(in, out, "Rebuilding", true, stall.reason, stall.message);
  return true;
}

void SetRebuilding(const Snapshot& in, const JobState& state, const Stall& stall,
                   DecisionDraft& out) {
  if (SetStalled(in, stall, out)) return;
  std::vector<std::string> names;
  if (!state.outcome.ended() && !state.suspended && !state.finishing) names = NotInRing(in);
  const api::Condition* before = out.status.Find("Rebuilding");
  if (names.empty() && before == nullptr) return;
  if (names.empty()) {
    return SetCondition(in, out, "Rebuilding", false, "AllIn",
                        "every member is in the newest view");
  }
  SetCondition(
      in, out, "Rebuilding", true, std::string(ReasonText(in.view->reason)),
      fmt::format("epoch {} is not in use yet by {}", EpochText(in.view->epoch), Names(names)));
}

// Ranks that others wait for. They may compute for a long time, or never submit the tensor.
void SetRanksMissing(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  constexpr char kType[] = "RanksMissing";
  const bool runs = !state.outcome.ended() && !state.suspended && !state.finishing;
  const auto stalls = runs ? DescribeStalls(in) : std::vector<std::string>();
  const bool before = out.status.Is(kType);
  if (stalls.empty()) {
    if (before && runs) {
      SetCondition(in, out, kType, false, "AllCame", "no rank is waited for any more");
    } else if (before) {
      SetCondition(in, out, kType, false, "NotRunning", "the job trains no more");
    }
    return;
  }
  const std::string message = Listed(stalls, "; ");
  SetCondition(in, out, kType, true, kType, message);
  if (!before) out.AddEvent(true, kType, message);
}

void SetSuspended(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  const bool before = out.status.Is("Suspended");
  const bool suspended = state.suspended && !state.gives_all;
  if (!suspended && !before) return;
  if (JobHasEnded(in))
    return SetCondition(in, out, "Suspended", false, "JobEnded", "the job has ended");
  const std::string reason = suspended  ? SuspendedReason(in, state)
                             : in.queue ? "Admitted"
                                        : "Resumed";
  const std::string message = suspended  ? WhySuspended(in, state)
                              : in.queue ? in.queue->message
                                         : "the job is not suspended any more";
  SetCondition(in, out, "Suspended", suspended, reason, message);
  if (suspended != before) out.AddEvent(IsQueueTrouble(in, state), reason, message);
}

void SetEnd(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  if (!state.outcome.ended()) return;
  api::Status& status = out.status;
  const std::string type = state.outcome.succeeded ? "Succeeded" : "Failed";
  if (status.Is(type)) return;
  SetCondition(in, out, type, true, state.outcome.reason, state.outcome.message);
  status.completion_time = api::FormatTime(in.now);
  out.AddEvent(state.outcome.failed, state.outcome.succeeded ? "Succeeded" : state.outcome.reason,
               state.outcome.message);
  // The job's time to live begins now, so the next reconcile has to see it.
  if (in.job.spec.run_policy.ttl_seconds_after_finished) out.LookAgainAt(in.now);
}

// Describes a drain that could not wait for the end of a step any longer, which costs as much as a
// loss. Empty if the newest view was not caused by one.
std::string HowTorn(const Snapshot& in) {
  const membership::ViewPtr& view = in.view;
  if (view->planned || view->reason != membership::Reason::kPodDrained) return "";
  const api::Condition* why = in.job.status.Find(kNoStepEnds);
  return "; who left did so in the middle of a step" +
         (why != nullptr && why->status ? " (" + why->message + ")" : "");
}

// Whom the newest view has lost and won since the ring of the status; empty where the status or the
// view has too many ranks to tell.
std::string WhoChanged(const Snapshot& in) {
  const api::Status& known = in.job.status;
  if (known.ring.empty() || known.ring_omitted > 0 || in.view->ranks.size() > kMostRanks) return "";
  // As sidecars name workers in /status.
  const bool many = in.job.spec.slots_per_worker > 1;
  const auto name = [many](const std::string& pod, int slot) {
    return many ? fmt::format("{}/{}", pod, slot) : pod;
  };
  std::set<std::string> before, now;
  for (const api::RingEntry& entry : known.ring) before.insert(name(entry.pod, entry.slot));
  for (const membership::RankEntry& entry : in.view->ranks) {
    now.insert(name(in.view->pods[entry.pod].name, static_cast<int>(entry.slot)));
  }
  std::vector<std::string> left, joined;
  std::set_difference(before.begin(), before.end(), now.begin(), now.end(),
                      std::back_inserter(left));
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(),
                      std::back_inserter(joined));
  return (left.empty() ? "" : "; gone: " + Names(left)) +
         (joined.empty() ? "" : "; joined: " + Names(joined));
}

void SetRing(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  api::Status& status = out.status;
  const membership::ViewPtr& view = in.view;
  if (state.suspended) {
    // Its members are told that all leave (PodsStillEnd).
    if (view != nullptr) status.epoch = std::max(status.epoch, view->epoch);
    status.world_size = status.ring_omitted = 0;
    status.ring.clear();
    return;
  }
  if (view == nullptr || state.outcome.ended()) return;
  if (view->epoch > status.epoch) {
    const bool loss = !view->planned && (view->reason == membership::Reason::kWorkerLost ||
                                         view->reason == membership::Reason::kPodLost ||
                                         view->reason == membership::Reason::kLinkBroken ||
                                         view->reason == membership::Reason::kQuorumRecovered);
    const std::string torn = HowTorn(in);
    out.AddEvent(loss || !torn.empty(), std::string(ReasonText(view->reason)),
                 fmt::format("epoch {}: world size {}, before {}{}{}", EpochText(view->epoch),
                             view->ranks.size(), status.world_size, torn, WhoChanged(in)));
  }
  // A recovery from quorum loss has already written its new lineage.
  status.epoch = std::max(status.epoch, view->epoch);
  status.world_size = static_cast<int>(view->ranks.size());
  status.ring.clear();
  const std::size_t shown = std::min(view->ranks.size(), kMostRanks);
  status.ring_omitted = static_cast<int>(view->ranks.size() - shown);
  for (std::size_t rank = 0; rank < shown; ++rank) {
    const membership::RankEntry& entry = view->ranks[rank];
    const membership::Pod& pod = view->pods[entry.pod];
    status.ring.push_back(
        {static_cast<int>(rank), pod.name, static_cast<int>(entry.slot), pod.node});
  }
}

// The job's deadline counts from the moment when as many pods run as the job needs to train.
// Waiting in a queue or for images does not count.
void SetRunningSince(const Snapshot& in, const JobState& state, const PodSets& pods,
                     DecisionDraft& out) {
  api::Status& status = out.status;
  if (state.suspended || !status.running_since.empty()) return;
  int running = 0;
  std::optional<Time> since;
  for (const PodFacts* pod : pods.active) {
    if (!pod->running_since) continue;
    ++running;
    // An operator of an earlier version, which did not record the start, saw this pod train.
    if (InView(in, pod->uid)) since = std::min(since.value_or(in.now), *pod->running_since);
  }
  if (!since && running < LeastTogether(in)) return;
  const Time start = api::ParseTime(status.start_time).value_or(in.now);
  const Time begin = since ? std::max(*since, start) : in.now;
  status.running_since = api::FormatTime(begin);
  const auto& deadline = in.job.spec.run_policy.active_deadline_seconds;
  if (deadline) out.LookAgainAt(begin + std::chrono::seconds(*deadline));
}

void SetRebuilds(const Snapshot& in, DecisionDraft& out) {
  api::Status& status = out.status;
  for (const job::Rebuild& rebuild : in.rebuilds) {
    const std::uint64_t last = status.last_rebuild ? status.last_rebuild->epoch : 0;
    if (rebuild.epoch < last) continue;
    // Each sidecar tells what it knows of: who knows less takes nothing back.
    const api::LastRebuild told =
        rebuild.epoch == last ? *status.last_rebuild : api::LastRebuild{.epoch = rebuild.epoch};
    const std::int64_t lost = std::max(rebuild.steps_lost, told.steps_lost);
    status.steps_lost += lost - told.steps_lost;
    if (lost > told.steps_lost) {
      out.AddEvent(
          true, "StepsLost",
          fmt::format("epoch {} ({}) goes on {} before the newest that a lost worker is known "
                      "to have completed",
                      EpochText(rebuild.epoch), rebuild.reason,
                      Plural(static_cast<std::size_t>(lost), "step")));
    }
    status.last_rebuild =
        api::LastRebuild{rebuild.epoch, rebuild.reason,
                         std::max(told.seconds, job::TotalSeconds(rebuild.seconds)), lost};
  }
}

void CountPods(const Snapshot& in, const JobState& state, const PodSets& pods, DecisionDraft& out) {
  api::Status& status = out.status;
  int running = 0, succeeded = 0;
  for (const PodFacts& pod : in.pods) {
    running += !pod.ended() && pod.phase == PodPhase::kRunning ? 1 : 0;
    succeeded += pod.phase == PodPhase::kSucceeded && (state.finishing || !pod.leaving()) ? 1 : 0;
  }
  status.worker.active = running;
  // Deleting succeeded pods must not lower the number.
  status.worker.succeeded =
      state.outcome.ended() ? std::max(status.worker.succeeded, succeeded) : succeeded;
  status.replicas = static_cast<int>(pods.active.size());
  status.selector = fmt::format("{}={},{}={}", api::kJobUidLabel, in.job.uid, api::kJobRoleLabel,
                                api::kWorkerRole);
}

std::string StateWord(const Snapshot& in, const JobState& state, const DecisionDraft& out) {
  if (state.outcome.ended()) return state.outcome.succeeded ? "Succeeded" : "Failed";
  if (state.queued) return "Queued";
  if (state.gives_all || WaitsSincePreempted(out.status)) return "Pending";
  if (state.suspended) return "Suspended";
  if (state.finishing) return "Finishing";
  if (in.view == nullptr) return out.status.Is("Scheduled") ? "Starting" : "Pending";
  if (out.status.Is("Rebuilding")) return "Rebuilding";
  return in.view->train ? "Running" : "Held";
}

}  // namespace

std::vector<std::string> DescribeStalls(const Snapshot& in) {
  std::vector<std::string> texts;
  for (const SidecarFacts& sidecar : in.sidecars) {
    if (!sidecar.connected || in.view == nullptr || sidecar.epoch != in.view->epoch) continue;
    for (const job::Stall& stall : sidecar.stalls) {
      const Time since = sidecar.stalls_at - std::chrono::milliseconds(stall.waited_ms);
      const std::string what = job::Describe(stall);
      const bool told = std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
        // Reported by a rank that has waited less long.
        return text.rfind(what + ", since ", 0) == 0;
      });
      if (!told) texts.push_back(what + ", since " + api::FormatTime(since));
    }
  }
  return texts;
}

std::string SuspendedReason(const Snapshot& in, const JobState& state) {
  if (state.queued) return in.queue->reason;
  if (state.gives_all) return kPreempted;
  // Pods from before still end, for the reason that was reported then.
  const api::Condition* before = in.job.status.Find("Suspended");
  const bool anew = in.job.Suspended() || state.outdated || before == nullptr;
  return anew ? "Suspended" : before->reason;
}

void WriteStatus(const Snapshot& in, const JobState& state, const PodSets& pods,
                 const WaitReasons& why, const Stall& stall, DecisionDraft& out) {
  api::Status& status = out.status;
  status.observed_generation = in.job.generation;
  if (status.Find("Created") == nullptr) {
    SetCondition(in, out, "Created", true, "Accepted", "the operator has taken up the job");
  }
  if (state.suspended) {
    if (!state.gives_all) status.start_time.clear();  // its place in the line stays its own
    status.running_since.clear();
    status.times_given_back = 0;
    status.last_given_back_time.clear();
  } else if (status.start_time.empty() && !JobHasEnded(in)) {
    status.start_time = api::FormatTime(in.now);
  }
  SetRunningSince(in, state, pods, out);
  // The number of pods that have a node means nothing once the pods end.
  if (!state.outcome.ended() && !state.suspended && !state.finishing)
    SetStarting(in, state, pods, why, out);
  if (state.suspended) {  // what its pods lack does not matter: they get deleted
    std::erase_if(status.conditions, [&](const auto& c) {
      return (c.type == "Scheduled" && !state.queued) || c.type == "Started";
    });
  }
  SetQueued(in, state, out);
  SetRebuilding(in, state, stall, out);
  SetRunning(in, state, pods, stall, out);
  SetRanksMissing(in, state, out);
  SetCantJoin(in, state, out);
  SetNoStepEnds(in, state, pods, out);
  SetPreempted(in, state, pods, why, out);
  SetSuspended(in, state, out);
  SetEnd(in, state, out);
  SetRing(in, state, out);
  SetRebuilds(in, out);
  CountPods(in, state, pods, out);
  status.state = StateWord(in, state, out);
}

}  // namespace ringmaster::planner
