#include "tests/sim/faults.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "operator/api/labels.h"
#include "operator/kube/resources.h"

namespace ringmaster::app::sim {
namespace {

using Weights = std::array<int, static_cast<int>(Fault::kCount)>;

constexpr Weights kOfAll = {
    14,  // worker killed
    6,   // worker stopped
    12,  // sidecar killed
    10,  // in the middle
    3,   // file lost
    3,   // disk fails
    6,   // sidecar paused
    4,   // machine paused
    5,   // launcher cut
    6,   // worker cut
    5,   // ring broken
    6,   // pod killed
    5,   // partition
    5,   // one way
    7,   // wrong suspicion
    5,   // drain
    4,   // terminate
    6,   // join
    4,   // operator
    3,   // target
    2,   // clock
    2,   // record deleted
    3,   // api fails
};
constexpr Weights kAtOperators = {
    4,   // worker killed
    0,   // worker stopped
    6,   // sidecar killed
    4,   // in the middle
    8,   // file lost
    0,   // disk fails
    0,   // sidecar paused
    3,   // machine paused
    0,   // launcher cut
    0,   // worker cut
    0,   // ring broken
    12,  // pod killed
    16,  // partition
    4,   // one way
    6,   // wrong suspicion
    2,   // drain
    4,   // terminate
    6,   // join
    20,  // operator
    0,   // target
    0,   // clock
    8,   // record deleted
    8,   // api fails
};
constexpr int kMostReplicas = 8;
constexpr Micros kStrikePatience = 1500 * kMs;

}  // namespace

const char* FaultName(Fault fault) {
  static const char* const kNames[] = {
      "worker killed",    "worker stopped",   "sidecar killed",    "sidecar dies midway",
      "file lost",        "disk fails",       "sidecar paused",    "machine paused",
      "launcher cut off", "worker cut off",   "ring broken",       "pod killed",
      "partition",        "link cut one way", "wrongly suspected", "drained",
      "terminated",       "joined",           "operator away",     "target changed",
      "clock steps",      "record deleted",   "API server fails"};
  return kNames[static_cast<int>(fault)];
}

int Faults::RandomPod() {
  for (int tries = 0; tries < 20 && parts_.pods.size() > 0; ++tries) {
    const int pod =
        static_cast<int>(parts_.random.Below(static_cast<std::int64_t>(parts_.pods.size())));
    if (!parts_.pods[pod]->gone) return pod;
  }
  return -1;
}

WorkerPtr Faults::RandomWorker(int pod) {
  const auto& children = parts_.pods[pod]->launcher.children;
  if (children.empty()) return nullptr;
  return children[parts_.random.Below(static_cast<std::int64_t>(children.size()))].worker;
}

void Faults::InjectNext() {
  if (!parts_.plan.TakeNext()) return Heal();
  // Faults come together: the second while the first is being dealt with.
  const Micros pause = parts_.random.Chance(500)   ? parts_.random.Between(kMs, 60 * kMs)
                       : parts_.random.Chance(800) ? parts_.random.Between(60 * kMs, 1500 * kMs)
                                                   : parts_.random.Between(kSecond, 12 * kSecond);
  parts_.time.After(pause, [this] { InjectNext(); });
  const Weights& weights = parts_.options.at_operators ? kAtOperators : kOfAll;
  auto roll =
      static_cast<int>(parts_.random.Below(std::accumulate(weights.begin(), weights.end(), 0)));
  std::size_t drawn = 0;
  while (roll >= weights[drawn]) roll -= weights[drawn++];
  const int pod = RandomPod();
  if (pod < 0) return;
  ++parts_.journal.coverage().faults[drawn];
  const auto fault = static_cast<Fault>(drawn);
  if (!parts_.random.Chance(400)) return Strike(fault, pod);
  // It waits until the ranks of a view are in the middle of something.
  const std::uint64_t number = parts_.plan.Wait(
      [this, fault, pod](int where) { Strike(fault, parts_.random.Chance(500) ? where : pod); });
  parts_.time.After(kStrikePatience, [this, number, pod] {
    if (const FaultPlan::Strike strike = parts_.plan.Take(number)) strike(pod);
  });
}

void Faults::Strike(Fault fault, int pod) {
  if (parts_.plan.healed_at() || parts_.pods[pod]->gone) return;
  parts_.journal.Trace(
      [&] { return std::string("FAULT ") + FaultName(fault) + " " + parts_.pods[pod]->uid; });
  Inject(fault, pod);
}

void Faults::Inject(Fault fault, int index) {
  SimPod& pod = *parts_.pods[index];
  const auto restart = [this, index] {
    const Micros away = parts_.random.Chance(850) ? parts_.random.Between(5 * kMs, 800 * kMs)
                                                  : parts_.random.Between(kSecond, 13 * kSecond);
    parts_.time.After(away, [this, index] { parts_.sidecars.Start(index); });
  };
  switch (fault) {
    case Fault::kKillWorker:
      if (const WorkerPtr worker = RandomWorker(index)) parts_.workers.Exit(worker, 137, 9);
      return;
    case Fault::kStopWorker:
      if (const WorkerPtr worker = RandomWorker(index)) {
        const Micros length = parts_.random.Chance(700)
                                  ? parts_.random.Between(50 * kMs, 3 * kSecond)
                                  : parts_.random.Between(3 * kSecond, 14 * kSecond);
        worker->stopped_until = parts_.time.now() + length;
        parts_.launchers.TellHalt(worker);
        parts_.time.After(length, [this, worker] {
          parts_.launchers.TellHalt(worker);
          parts_.workers.Thaw(worker);
        });
      }
      return;
    case Fault::kKillSidecar:
      if (pod.agent == nullptr || pod.terminated) return;
      parts_.sidecars.Crash(index, "killed");
      return restart();
    case Fault::kCrashMidway:
      if (pod.agent != nullptr && !pod.terminated) {
        pod.crash_after = static_cast<int>(parts_.random.Below(10));
        parts_.time.After(3 * kSecond, [this, index] { parts_.sidecars.Start(index); });
      }
      return;
    case Fault::kLoseFile:
      if (pod.agent == nullptr || pod.terminated) return;
      parts_.sidecars.Crash(index, "killed, and its file is lost");
      pod.disk.reset();
      return restart();
    case Fault::kDiskFails:
      pod.disk_fails = true;
      return;
    case Fault::kPauseSidecar:
    case Fault::kPauseMachine:
      return parts_.sidecars.Pause(index,
                                   parts_.random.Chance(750)
                                       ? parts_.random.Between(20 * kMs, 3 * kSecond)
                                       : parts_.random.Between(3 * kSecond, 14 * kSecond),
                                   fault == Fault::kPauseMachine);
    case Fault::kCutLauncher:
      return parts_.links.CloseBySidecar(pod.launcher.stream);
    case Fault::kCutWorker:
      if (const WorkerPtr worker = RandomWorker(index)) parts_.links.CloseBySidecar(worker->stream);
      return;
    case Fault::kBreakRing:
      if (const WorkerPtr worker = RandomWorker(index)) {
        // Mostly once; now and then it is a link that keeps breaking.
        const int times = parts_.random.Chance(700) ? 1 : 4;
        for (int i = 0; i < times; ++i)
          parts_.time.After(i * 3 * kSecond, [=, this] { parts_.rings.BreakRing(worker); });
      }
      return;
    case Fault::kKillPod:
      if (pod.placed) parts_.kubelets.KillPod(index, "killed");
      return;
    case Fault::kPartition:
      return Partition();
    case Fault::kCutOneWay: {
      const int other = RandomPod();
      if (other < 0 || other == index) return;
      parts_.network.CutOneWay(index, other);
      parts_.time.After(parts_.random.Between(100 * kMs, 6 * kSecond),
                        [this, index, other] { parts_.network.MendOneWay(index, other); });
      return;
    }
    case Fault::kSuspectWrongly: {
      const int other = RandomPod();
      if (other < 0 || other == index || pod.watched.count(parts_.pods[other]->uid) == 0) return;
      const std::string uid = parts_.pods[other]->uid;
      return parts_.sidecars.ToAgent(index, pod.life, [this, index, uid](Agent& agent) {
        parts_.pods[index]->watched[uid].suspected = true;
        agent.peers().OnSuspect(uid, "wrongly");
      });
    }
    case Fault::kDrain:
      return Drain(index);
    case Fault::kTerminate:
      // By force: nobody asks its kubelet.
      if (parts_.random.Chance(250)) {
        (void)parts_.api.Delete(kube::Pods(), pod.name,
                                {.grace_period_seconds = 0, .uid = pod.uid});
      } else {
        (void)parts_.api.Delete(kube::Pods(), pod.name, {.uid = pod.uid});
      }
      return;
    case Fault::kJoin:
      return parts_.kubelets.PatchJob(
          {{"worker", {{"replicas", std::min(parts_.job.wanted + 1, kMostReplicas)}}}});
    case Fault::kOperatorAway:
      if (parts_.options.at_operators)
        return parts_.operators.Stop(parts_.random.Between(kMs, 300 * kMs), true);
      return parts_.operators.Stop(parts_.random.Between(50 * kMs, 8 * kSecond),
                                   parts_.random.Chance(500));
    case Fault::kTarget: {
      const int most = std::min(parts_.job.wanted, parts_.job.allowed.empty() ? 3 : 2);
      return parts_.kubelets.PatchJob(
          {{"elasticPolicy", {{"minReplicas", parts_.random.Between(1, most)}}}});
    }
    case Fault::kClockStep:
      pod.wall_step += parts_.random.Between(-3600 * kSecond, 3600 * kSecond);
      return;
    case Fault::kRecordDeleted:
      (void)parts_.api.Delete(kube::ConfigMaps(), "job-record", {});
      return;
    case Fault::kApiFails:
      parts_.operators.FailCalls(parts_.time.now() + parts_.random.Between(50 * kMs, 5 * kSecond));
      return;
    case Fault::kCount:
      return;
  }
}

// By hand, with or without one in its place.
void Faults::Drain(int index) {
  if (parts_.random.Chance(500))
    parts_.kubelets.PatchJob(
        {{"worker",
          {{"replicas", std::max({parts_.job.wanted - 1, parts_.job.allowed.empty() ? 1 : 2,
                                  static_cast<int>(parts_.job.min_pods)})}}}});
  (void)parts_.api.Patch(
      kube::Pods(), parts_.pods[index]->name,
      {{"metadata",
        {{"uid", parts_.pods[index]->uid}, {"annotations", {{api::kDrainAnnotation, "drained"}}}}}},
      "");
}

void Faults::Partition() {
  parts_.network.Split();
  parts_.time.After(parts_.random.Between(100 * kMs, 7 * kSecond),
                    [this] { parts_.network.Join(); });
}

// From now on nothing fails any more, and what is not gone runs.
void Faults::Heal() {
  parts_.journal.Trace([] { return std::string("HEALED"); });
  parts_.plan.Heal(parts_.time.now());
  parts_.network.Heal();
  parts_.operators.FailCalls(0);
  parts_.operators.Start();
  for (const auto& pod : parts_.pods) {
    pod->crash_after = -1;
    pod->disk_fails = false;
    if (pod->gone) {
      parts_.kubelets.TellEnd(pod->index);
      continue;
    }
    if (parts_.pods.Asleep(*pod)) {
      pod->paused_until = pod->machine_until = parts_.time.now();
      parts_.sidecars.WakeUp(pod->index, 0);
    }
    parts_.sidecars.Start(pod->index);
    for (const Child& child : std::vector<Child>(pod->launcher.children)) {
      if (child.worker->stopped_until <= parts_.time.now()) continue;
      child.worker->stopped_until = parts_.time.now();
      parts_.launchers.TellHalt(child.worker);
      parts_.workers.Thaw(child.worker);
    }
  }
  parts_.healed();
}

}  // namespace ringmaster::app::sim
