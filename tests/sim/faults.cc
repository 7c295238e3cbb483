// What goes wrong, and how it ends.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "operator/api/labels.h"
#include "tests/sim/world.h"

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

int World::RandomPod() {
  for (int tries = 0; tries < 20 && !pods_.empty(); ++tries) {
    const int pod = static_cast<int>(random_.Below(static_cast<std::int64_t>(pods_.size())));
    if (!pods_[pod]->gone) return pod;
  }
  return -1;
}

WorkerPtr World::RandomWorker(int pod) {
  const auto& children = pods_[pod]->launcher.children;
  if (children.empty()) return nullptr;
  return children[random_.Below(static_cast<std::int64_t>(children.size()))].worker;
}

void World::InjectFault() {
  if (!faults_.TakeNext()) return Heal();
  // Faults come together: the second while the first is being dealt with.
  const Micros pause = random_.Chance(500)   ? random_.Between(kMs, 60 * kMs)
                       : random_.Chance(800) ? random_.Between(60 * kMs, 1500 * kMs)
                                             : random_.Between(kSecond, 12 * kSecond);
  time_.After(pause, [this] { InjectFault(); });
  const Weights& weights = options_.at_operators ? kAtOperators : kOfAll;
  auto roll = static_cast<int>(random_.Below(std::accumulate(weights.begin(), weights.end(), 0)));
  std::size_t drawn = 0;
  while (roll >= weights[drawn]) roll -= weights[drawn++];
  const int pod = RandomPod();
  if (pod < 0) return;
  ++journal_.coverage().faults[drawn];
  const auto fault = static_cast<Fault>(drawn);
  if (!random_.Chance(400)) return Strike(fault, pod);
  // It waits until the ranks of a view are in the middle of something.
  const std::uint64_t number = faults_.Wait(
      [this, fault, pod](int where) { Strike(fault, random_.Chance(500) ? where : pod); });
  time_.After(kStrikePatience, [this, number, pod] {
    if (const FaultPlan::Strike strike = faults_.Take(number)) strike(pod);
  });
}

void World::Strike(Fault fault, int pod) {
  if (faults_.healed_at() || pods_[pod]->gone) return;
  journal_.Trace([&] { return std::string("FAULT ") + FaultName(fault) + " " + pods_[pod]->uid; });
  Inject(fault, pod);
}

void World::Inject(Fault fault, int index) {
  SimPod& pod = *pods_[index];
  const auto restart = [this, index] {
    const Micros away = random_.Chance(850) ? random_.Between(5 * kMs, 800 * kMs)
                                            : random_.Between(kSecond, 13 * kSecond);
    time_.After(away, [this, index] { StartSidecar(index); });
  };
  switch (fault) {
    case Fault::kKillWorker:
      if (const WorkerPtr worker = RandomWorker(index)) Exit(worker, 137, 9);
      return;
    case Fault::kStopWorker:
      if (const WorkerPtr worker = RandomWorker(index)) {
        const Micros length = random_.Chance(700) ? random_.Between(50 * kMs, 3 * kSecond)
                                                  : random_.Between(3 * kSecond, 14 * kSecond);
        worker->stopped_until = time_.now() + length;
        TellHalt(worker);
        time_.After(length, [this, worker] {
          TellHalt(worker);
          Thaw(worker);
        });
      }
      return;
    case Fault::kKillSidecar:
      if (pod.agent == nullptr || pod.terminated) return;
      CrashSidecar(index, "killed");
      return restart();
    case Fault::kCrashMidway:
      if (pod.agent != nullptr && !pod.terminated) {
        pod.crash_after = static_cast<int>(random_.Below(10));
        time_.After(3 * kSecond, [this, index] { StartSidecar(index); });
      }
      return;
    case Fault::kLoseFile:
      if (pod.agent == nullptr || pod.terminated) return;
      CrashSidecar(index, "killed, and its file is lost");
      pod.disk.reset();
      return restart();
    case Fault::kDiskFails:
      pod.disk_fails = true;
      return;
    case Fault::kPauseSidecar:
    case Fault::kPauseMachine:
      return Pause(index,
                   random_.Chance(750) ? random_.Between(20 * kMs, 3 * kSecond)
                                       : random_.Between(3 * kSecond, 14 * kSecond),
                   fault == Fault::kPauseMachine);
    case Fault::kCutLauncher:
      return CloseBySidecar(pod.launcher.stream);
    case Fault::kCutWorker:
      if (const WorkerPtr worker = RandomWorker(index)) CloseBySidecar(worker->stream);
      return;
    case Fault::kBreakRing:
      if (const WorkerPtr worker = RandomWorker(index)) {
        // Mostly once; now and then it is a link that keeps breaking.
        const int times = random_.Chance(700) ? 1 : 4;
        for (int i = 0; i < times; ++i)
          time_.After(i * 3 * kSecond, [=, this] { BreakRing(worker); });
      }
      return;
    case Fault::kKillPod:
      if (pod.placed) KillPod(index, "killed");
      return;
    case Fault::kPartition:
      return Partition();
    case Fault::kCutOneWay: {
      const int other = RandomPod();
      if (other < 0 || other == index) return;
      network_.CutOneWay(index, other);
      time_.After(random_.Between(100 * kMs, 6 * kSecond),
                  [this, index, other] { network_.MendOneWay(index, other); });
      return;
    }
    case Fault::kSuspectWrongly: {
      const int other = RandomPod();
      if (other < 0 || other == index || pod.watched.count(pods_[other]->uid) == 0) return;
      const std::string uid = pods_[other]->uid;
      return ToAgent(index, pod.life, [this, index, uid](Agent& agent) {
        pods_[index]->watched[uid].suspected = true;
        agent.peers().OnSuspect(uid, "wrongly");
      });
    }
    case Fault::kDrain:
      return Drain(index);
    case Fault::kTerminate:
      // By force: nobody asks its kubelet.
      if (random_.Chance(250)) {
        (void)api_.Delete(kube::Pods(), pod.name, {.grace_period_seconds = 0, .uid = pod.uid});
      } else {
        (void)api_.Delete(kube::Pods(), pod.name, {.uid = pod.uid});
      }
      return;
    case Fault::kJoin:
      return PatchJob({{"worker", {{"replicas", std::min(job_.wanted + 1, kMostReplicas)}}}});
    case Fault::kOperatorAway:
      if (options_.at_operators) return operators_.Stop(random_.Between(kMs, 300 * kMs), true);
      return operators_.Stop(random_.Between(50 * kMs, 8 * kSecond), random_.Chance(500));
    case Fault::kTarget:
      return PatchJob(
          {{"elasticPolicy", {{"minReplicas", random_.Between(1, std::min(job_.wanted, 3))}}}});
    case Fault::kClockStep:
      pod.wall_step += random_.Between(-3600 * kSecond, 3600 * kSecond);
      return;
    case Fault::kRecordDeleted:
      (void)api_.Delete(kube::ConfigMaps(), "job-record", {});
      return;
    case Fault::kApiFails:
      operators_.FailCalls(time_.now() + random_.Between(50 * kMs, 5 * kSecond));
      return;
    case Fault::kCount:
      return;
  }
}

void World::KillPod(int index, const std::string& why) {
  SimPod& pod = *pods_[index];
  if (pod.gone) return;
  journal_.Trace([&] { return pod.uid + " is gone: " + why; });
  if (pod.leaving) ++journal_.coverage().left;
  // Of a pod that is killed nobody may hear for a while: its node is lost.
  const bool told = pod.launcher.ended || faults_.healed_at() || random_.Chance(850);
  if (!pod.launcher.ended) pod.exit_code = 137;
  pod.gone = true;
  for (const Child& child : std::vector<Child>(pod.launcher.children)) Exit(child.worker, 137, 9);
  pod.launcher.children.clear();
  CrashSidecar(index, why);
  if (told) time_.After(random_.Below(2 * kSecond), [this, index] { TellEnd(index); });
}

// By hand, with or without one in its place.
void World::Drain(int index) {
  if (random_.Chance(500))
    PatchJob({{"worker",
               {{"replicas", std::max({job_.wanted - 1, 1, static_cast<int>(job_.min_pods)})}}}});
  (void)api_.Patch(
      kube::Pods(), pods_[index]->name,
      {{"metadata",
        {{"uid", pods_[index]->uid}, {"annotations", {{api::kDrainAnnotation, "drained"}}}}}},
      "");
}

void World::Partition() {
  network_.Split();
  time_.After(random_.Between(100 * kMs, 7 * kSecond), [this] { network_.Join(); });
}

// From now on nothing fails any more, and what is not gone runs.
void World::Heal() {
  journal_.Trace([] { return std::string("HEALED"); });
  faults_.Heal(time_.now());
  network_.Heal();
  operators_.FailCalls(0);
  operators_.Start();
  for (const auto& pod : pods_) {
    pod->crash_after = -1;
    pod->disk_fails = false;
    if (pod->gone) {
      TellEnd(pod->index);
      continue;
    }
    if (Asleep(*pod)) {
      pod->paused_until = pod->machine_until = time_.now();
      WakeUp(pod->index, 0);
    }
    StartSidecar(pod->index);
    for (const Child& child : std::vector<Child>(pod->launcher.children)) {
      if (child.worker->stopped_until <= time_.now()) continue;
      child.worker->stopped_until = time_.now();
      TellHalt(child.worker);
      Thaw(child.worker);
    }
  }
  time_.After(kSecond, [this] { CheckEnd(); });
}

}  // namespace ringmaster::app::sim
