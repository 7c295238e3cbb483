// Part of phase 9: what pods wait for before they run, first a node and then their containers.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

// A scheduler says within this time that it has seen a pod.
constexpr std::chrono::seconds kSchedulerIsSilent{30};
// A pod's containers may take this long to start before anything is reported.
constexpr std::chrono::seconds kUsualStart{30};
// A worker may take this long until init() before anything is reported.
constexpr std::chrono::seconds kUsualInit{5};
constexpr std::size_t kTexts = 3;

// Collects which pods wait for what, in the order of the pods.
class Waiting {
 public:
  // Pods with the same `what` form a group, with the first pod's `message`.
  void Add(const std::string& pod, const std::string& what, const std::string& message = "") {
    auto at = std::find_if(groups_.begin(), groups_.end(),
                           [&](const Group& group) { return group.what == what; });
    if (at == groups_.end()) at = groups_.insert(at, {what, message, {}});
    at->pods.push_back(pod);
  }
  bool empty() const { return groups_.empty(); }
  // "a, b: what: message; c: ..."
  std::string Text() const {
    return Joined("; ", [](const Group& group) {
      return fmt::format("{}: {}{}{}", Names(group.pods), group.what,
                         group.message.empty() ? "" : ": ", group.message);
    });
  }
  // "a, b (what), c (...)"
  std::string InBrackets() const {
    return Joined(", ", [](const Group& group) {
      return fmt::format("{} ({})", Names(group.pods), group.what);
    });
  }

 private:
  struct Group {
    std::string what;
    std::string message;
    std::vector<std::string> pods;
  };
  template <class F>
  std::string Joined(const char* separator, F one) const {
    std::string text;
    for (std::size_t i = 0; i < std::min(groups_.size(), kTexts); ++i) {
      text += (i == 0 ? "" : separator) + one(groups_[i]);
    }
    if (groups_.size() > kTexts) {
      text += fmt::format("{}and {} more reasons", separator, groups_.size() - kTexts);
    }
    return text;
  }
  std::vector<Group> groups_;
};

// An event reports the beginning of a problem; the condition shows its course.
bool IsNews(const Snapshot& in, const std::string& type, const std::string& reason) {
  const api::Condition* before = in.job.status.Find(type);
  return before == nullptr || before->status || before->reason != reason;
}

void SetScheduled(const Snapshot& in, const JobState& state, const PodSets& pods,
                  const WaitReasons& why, DecisionDraft& out) {
  std::size_t scheduled = 0;
  Waiting waiting, unseen;
  for (const PodFacts* pod : pods.active) {
    if (pod->scheduled) {
      ++scheduled;
    } else if (!pod->waiting.empty()) {
      waiting.Add(pod->name, pod->waiting);
    } else if (in.now < pod->created + kSchedulerIsSilent) {
      out.LookAgainAt(pod->created + kSchedulerIsSilent);
    } else {
      unseen.Add(pod->name, "no scheduler says anything", "is there one of its schedulerName?");
    }
  }
  const bool all = scheduled >= static_cast<std::size_t>(state.wanted);
  const std::string reason = all                      ? "AllPodsScheduled"
                             : !why.leavers.empty()   ? "Preempting"
                             : !why.for_nodes.empty() ? "WaitingForNodes"
                             : !why.no_nodes.empty()  ? "ProvisioningFailed"
                             : why.no_capacity        ? "WaitingForRoom"
                             : waiting.empty()        ? "WaitingForPods"
                                                      : "Unschedulable";
  std::string message = fmt::format("pods with a node: {} of {}", scheduled, state.wanted);
  if (!waiting.empty()) message += "; " + waiting.Text();
  if (!unseen.empty()) message += "; " + unseen.Text();
  if (!why.for_nodes.empty()) message += "; " + why.for_nodes;
  if (!why.no_nodes.empty()) message += "; " + why.no_nodes;
  if (!why.kept_why.empty()) message += "; " + why.kept_why;
  if (!why.leavers.empty()) message += "; " + why.leavers;
  if (const std::string fewer = FewerByQueue(in); !fewer.empty()) message += "; " + fewer;
  if (reason == "Preempting" && IsNews(in, "Scheduled", reason)) {
    out.AddEvent(false, reason, why.leavers);
  }
  if (reason == "WaitingForNodes" && IsNews(in, "Scheduled", reason)) {
    out.AddEvent(false, reason, message);
  }
  const bool trouble =
      reason == "Unschedulable" || reason == "WaitingForRoom" || reason == "ProvisioningFailed";
  if (trouble && IsNews(in, "Scheduled", reason)) out.AddEvent(true, reason, message);
  SetCondition(in, out, "Scheduled", all, reason, std::move(message));
}

// True once as many pods run as the job needs to train; False while a problem keeps containers from
// starting.
void SetStarted(const Snapshot& in, const PodSets& pods, DecisionDraft& out) {
  Waiting waiting;
  std::string reason;
  for (const PodFacts* pod : pods.active) {
    if (!pod->unstartable) continue;
    if (reason.empty()) reason = pod->unstartable.reason;
    waiting.Add(pod->name, pod->unstartable.what, pod->unstartable.message);
  }
  if (!waiting.empty()) {
    if (IsNews(in, "Started", reason)) out.AddEvent(true, reason, waiting.Text());
    return SetCondition(in, out, "Started", false, reason, waiting.Text());
  }
  const api::Condition* before = in.job.status.Find("Started");
  // A pod that is being prepared may wait for a reason that is not known yet, so the condition is
  // not cleared before all pods are prepared.
  const bool waits = std::any_of(pods.active.begin(), pods.active.end(),
                                 [](const PodFacts* pod) { return pod->preparing; });
  if (before != nullptr && !waits) {
    const char* message = before->status ? "" : "no container is kept from starting any more";
    return SetCondition(in, out, "Started", true, "AllStarted",
                        *message != 0 ? message : before->message);
  }
  const auto running = std::count_if(pods.active.begin(), pods.active.end(),
                                     [](const PodFacts* pod) { return pod->running_since; });
  if (before != nullptr || running < LeastTogether(in)) return;
  SetCondition(in, out, "Started", true, "AllStarted", "the containers of minReplicas pods run");
}

std::string WhatKeeps(const Snapshot& in, DecisionDraft& out, const PodFacts& pod,
                      const SidecarFacts* sidecar) {
  if (pod.running_since) return WhatIsMissing(sidecar);
  if (pod.unstartable) return pod.unstartable.what;
  const std::optional<Time> since = pod.accepted_at;
  if (!since || in.now < *since + kUsualStart) {
    if (since) out.LookAgainAt(*since + kUsualStart);
    return "its containers are being made";
  }
  return "its containers don't start: kubectl describe pod says why, mostly the pull of a "
         "large image";
}

}  // namespace

std::string WaitingForInit(const Snapshot& in, const JobState& state, const PodSets& pods,
                           DecisionDraft& out) {
  Waiting waiting;
  std::size_t ready = 0;
  for (const PodFacts* pod : pods.active) {
    const SidecarFacts* sidecar = FindSidecar(in, pod->uid);
    if (sidecar != nullptr && sidecar->ready) {
      ++ready;
    } else if (pod->scheduled) {
      waiting.Add(pod->name, WhatKeeps(in, out, *pod, sidecar));
    }
  }
  return fmt::format("{} of {} ready, at least {} needed{}{}", ready,
                     Plural(static_cast<std::size_t>(state.wanted), "pod"), LeastTogether(in),
                     waiting.empty() ? "" : "; waiting for ", waiting.InBrackets());
}

bool EnoughHaveRun(const Snapshot& in, const PodSets& pods, DecisionDraft& out) {
  std::vector<Time> since;
  for (const PodFacts* pod : pods.active) {
    if (pod->running_since) since.push_back(*pod->running_since);
  }
  const auto needed = static_cast<std::size_t>(std::max(1, LeastTogether(in)));
  if (since.size() < needed) return false;
  std::nth_element(since.begin(), since.begin() + (needed - 1), since.end());
  const Time usual = since[needed - 1] + kUsualInit;
  if (in.now < usual) out.LookAgainAt(usual);
  return in.now >= usual;
}

void SetStarting(const Snapshot& in, const JobState& state, const PodSets& pods,
                 const WaitReasons& why, DecisionDraft& out) {
  SetScheduled(in, state, pods, why, out);
  SetStarted(in, pods, out);
}

}  // namespace ringmaster::planner
