#include "tests/sim/end_check.h"

#include <algorithm>

namespace ringmaster::app::sim {
namespace {

using membership::EpochText;

constexpr Micros kPatience = 60 * kSecond;

}  // namespace

void EndCheck::Begin() {
  parts_.time.After(kSecond, [this] { Look(); });
}

void EndCheck::Look() {
  std::string why;
  const ViewPtr newest = parts_.views.newest();
  if (Healthy(&why)) {
    over_ = true;
  } else if (parts_.time.now() > *parts_.plan.healed_at() + kPatience) {
    TraceEnd();
    parts_.journal.Fail("liveness: a minute after the last fault " + why + "; newest: " +
                        (newest == nullptr ? "none" : membership::Describe(*newest)));
  } else {
    parts_.time.After(500 * kMs, [this] { Look(); });
  }
}

bool EndCheck::PodHealthy(const SimPod& pod, std::string* why) {
  const auto wrong = [&](const std::string& what) {
    *why = pod.uid + " " + what;
    return false;
  };
  if (pod.gone)
    return parts_.views.newest()->FindPod(pod.uid) < 0 || wrong("is gone and in the view");
  if (pod.leaving) return wrong("has not left");
  if (pod.agent == nullptr) return wrong("has no sidecar");
  if (parts_.pods.Asleep(pod)) return wrong("sleeps");
  for (int slot = 0; slot < parts_.job.slots; ++slot) {
    const auto& children = pod.launcher.children;
    const auto child = std::find_if(children.begin(), children.end(),
                                    [&](const Child& c) { return c.slot == slot; });
    const std::string name = "slot " + std::to_string(slot);
    if (child == children.end()) return wrong(name + " is empty");
    if (parts_.views.newest()->FindRank(pod.uid, static_cast<std::uint32_t>(slot),
                                        child->incarnation) < 0)
      return wrong(name + " is not in the newest view");
    if (child->worker->epoch != parts_.views.newest()->epoch ||
        child->worker->phase != Phase::kActive)
      return wrong(name + " has not installed the newest view");
    if (parts_.views.newest()->train && !pod.agent->Ready())
      return wrong("does not say that it is ready");
  }
  return true;
}

// What the API server has of it.
bool EndCheck::JobHealthy(std::string* why) {
  if (parts_.script.finished()) {
    *why = "the job is not said to have succeeded";
    return parts_.kubelets.JobIs("Succeeded");
  }
  const auto living = std::count_if(parts_.pods.begin(), parts_.pods.end(),
                                    [](const auto& pod) { return !pod->gone; });
  *why = std::to_string(living) + " pods live, not " + std::to_string(parts_.job.Pods());
  return living == parts_.job.Pods();
}

bool EndCheck::Healthy(std::string* why) {
  if (!JobHealthy(why)) return false;
  if (parts_.script.finished()) {
    for (const auto& pod : parts_.pods) {
      if (pod->gone || (pod->launcher.ended && pod->launcher.children.empty())) continue;
      *why = pod->uid + " has not ended with its job";
      return false;
    }
    return true;
  }
  if (parts_.views.newest() == nullptr) {
    *why = "there is no view";
    return false;
  }
  for (const auto& pod : parts_.pods) {
    if (!PodHealthy(*pod, why)) return false;
  }
  *why = "the newest view does not train";
  if (parts_.views.newest()->train !=
      parts_.job.Sizes().MayTrain(parts_.views.newest()->pods.size()))
    return false;
  if (parts_.views.newest()->train)
    return parts_.views.Of(parts_.views.newest()->epoch).last_step > parts_.time.now() - 500 * kMs;
  const auto ranks = parts_.pods.RanksOf(*parts_.views.newest());
  return std::all_of(ranks.begin(), ranks.end(), [&](const WorkerPtr& worker) {
    return worker->boundary_epoch == parts_.views.newest()->epoch;
  });
}

void EndCheck::TraceEnd() {
  parts_.journal.Trace([&] { return "status of the job: " + parts_.kubelets.JobStatus(); });
  for (const auto& pod : parts_.pods) {
    parts_.journal.Trace([&] {
      std::string text = pod->uid + (pod->gone ? " gone" : "") + (pod->leaving ? " leaving" : "");
      if (pod->agent != nullptr) text += " " + pod->agent->Status().dump();
      for (const Child& child : pod->launcher.children) {
        const Worker& w = *child.worker;
        text += "\n    " + parts_.pods.NameOf(w) + " role " +
                std::to_string(static_cast<int>(w.role)) + " phase " +
                std::to_string(static_cast<int>(w.phase)) + " epoch " + EpochText(w.epoch) +
                " stopped " + EpochText(w.stopped) + " boundary " + EpochText(w.boundary_epoch) +
                (w.welcomed ? " welcomed" : "") + (w.wants_to_enter ? " wants to enter" : "") +
                (w.detached ? " detached" : "") + (w.entered ? " entered" : "") +
                (w.standing ? " standing" : "") + (w.ended ? " ended" : "") +
                (parts_.pods.Frozen(w) ? " frozen" : "");
      }
      return text;
    });
  }
}

}  // namespace ringmaster::app::sim
