#include "operator/controllers/preparation_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "operator/api/time.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using planner::PodFacts;
using planner::Unstartable;
using std::chrono::milliseconds;

constexpr char kNoVolume[] = "VolumeNotMounted";

struct Cause {
  const char* event;   // reason of the kubelet's or the attach controller's event
  const char* reason;  // of our condition; empty: volumes and sandbox are ready
  const char* what;
};
constexpr Cause kCauses[] = {
    {"FailedMount", kNoVolume, "a volume can't be mounted"},
    {"FailedMapVolume", kNoVolume, "a volume can't be mounted"},
    {"FailedAttachVolume", kNoVolume, "a volume can't be attached to the node"},
    {"FailedCreatePodSandBox", "ContainerNotStarted", "its sandbox can't be made"},
    {"Pulling", "", ""},
    {"Pulled", "", ""},
};

// This event covers all volumes, after two minutes; the event about a single volume says more.
bool IsSummary(const std::string& note) {
  return note.rfind("Unable to attach or mount volumes", 0) == 0;
}

planner::Time LastSeen(const Json& event) {
  planner::Time last;
  for (const std::string& text :
       {fields::Text(event, "eventTime"), fields::Text(event, "deprecatedLastTimestamp"),
        fields::Text(fields::Member(event, "series"), "lastObservedTime")}) {
    last = std::max(last, api::ParseTime(text).value_or(planner::Time()));
  }
  return last;
}

// Chooses the newest informative event; a summary only if there is no other.
Unstartable Read(const std::vector<Json>& events) {
  Unstartable found;
  std::tuple<bool, planner::Time, bool> best;
  for (const Json& event : events) {
    const auto cause = std::find_if(std::begin(kCauses), std::end(kCauses), [&](const Cause& c) {
      return fields::Text(event, "reason") == c.event;
    });
    if (cause == std::end(kCauses)) continue;
    Unstartable told{cause->reason, cause->what, fields::Text(event, "note")};
    // Times of events are whole seconds: within one second, the successful event is the later one.
    const std::tuple rank(!IsSummary(told.message), LastSeen(event), !told);
    if (rank <= best) continue;
    best = rank;
    found = std::move(told);
  }
  return found;
}

bool IsPreparing(const PodFacts& pod) { return pod.preparing && !pod.leaving() && !pod.ended(); }

}  // namespace

std::optional<milliseconds> PreparationProblems::Explain(const std::string& job_key,
                                                         const std::string& ns,
                                                         std::vector<PodFacts>* pods,
                                                         Clock::time_point now) {
  Waits before, after;
  {
    const sync::MutexLock lock(&mu_);
    if (const auto at = waits_.find(job_key); at != waits_.end()) before = at->second;
  }
  std::optional<milliseconds> again;
  for (PodFacts& pod : *pods) {
    if (!IsPreparing(pod) || after.size() == kAsked) continue;
    const auto known = before.find(pod.uid);
    Wait wait = known != before.end() ? known->second : Wait{patience_, now + patience_, {}};
    if (wait.look_at <= now) {
      Look(ns, pod, &wait);
      wait.pause = std::min<milliseconds>(2 * wait.pause, kRarest);
      wait.look_at = now + wait.pause;
    }
    pod.unstartable = wait.found;
    const auto left = std::chrono::ceil<milliseconds>(wait.look_at - now);
    again = std::min(again.value_or(left), left);
    after.emplace(pod.uid, std::move(wait));
  }
  const sync::MutexLock lock(&mu_);
  if (after.empty()) {
    waits_.erase(job_key);
  } else {
    waits_[job_key] = std::move(after);
  }
  return again;
}

void PreparationProblems::Look(const std::string& ns, const PodFacts& pod, Wait* wait) const {
  const auto events = api_->ListAll(kube::Events(), ns,
                                    {.field_selector = fmt::format("regarding.uid={}", pod.uid)});
  if (events) {
    wait->found = Read(events->items);
    return;
  }
  logging::Warn("events of a pod not read pod={}/{} error={}", ns, pod.name,
                logging::Value(events.error().message));
}

void PreparationProblems::Forget(const std::string& job_key) {
  const sync::MutexLock lock(&mu_);
  waits_.erase(job_key);
}

}  // namespace ringmaster::controllers
