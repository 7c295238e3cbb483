#include "common/membership/sim/faults.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership::sim {
namespace {

// Weights of the faults by profile, in the order of Fault.
constexpr int kWeights[6][static_cast<int>(Fault::kCount)] = {
    // worker pod restart file pause part cut wrong drain join opout stale target most recover
    // broken deleted
    {14, 8, 10, 5, 8, 10, 6, 8, 8, 8, 5, 5, 3, 4, 4, 6, 3},    // mixed
    {4, 3, 10, 3, 12, 16, 16, 30, 2, 2, 2, 8, 0, 0, 1, 0, 0},  // contended
    {50, 4, 10, 2, 4, 6, 6, 14, 2, 2, 2, 4, 0, 0, 1, 0, 0},    // resigning
    {8, 4, 30, 24, 4, 6, 4, 16, 2, 2, 2, 8, 0, 0, 1, 0, 0},    // forgetful
    {8, 4, 5, 1, 3, 3, 3, 3, 30, 36, 2, 2, 10, 0, 1, 0, 0},    // planned
    {6, 14, 8, 2, 5, 8, 3, 8, 4, 12, 3, 6, 2, 16, 30, 0, 12},  // recovered
};

Fault DrawFault(Profile profile, Random* random) {
  const int* weights = kWeights[static_cast<int>(profile)];
  int total = 0;
  for (int i = 0; i < static_cast<int>(Fault::kCount); ++i) total += weights[i];
  std::int64_t roll = random->Below(total);
  int drawn = 0;
  while (roll >= weights[drawn]) roll -= weights[drawn++];
  return static_cast<Fault>(drawn);
}

}  // namespace

const char* FaultName(Fault fault) {
  static const char* const kNames[] = {
      "worker killed",  "pod killed",       "sidecar restarted", "file lost",
      "paused",         "partitioned",      "link cut",          "wrongly suspected",
      "drained",        "joined",           "operator down",     "stale operator",
      "target changed", "most pods killed", "recovered wrongly", "link broken",
      "record deleted"};
  return kNames[static_cast<int>(fault)];
}

const char* ProfileName(Profile profile) {
  static const char* const kNames[] = {"mixed",     "contended", "resigning",
                                       "forgetful", "planned",   "recovered"};
  return kNames[static_cast<int>(profile)];
}

int Faults::RandomPod() {
  for (int tries = 0; tries < 20; ++tries) {
    int pod = static_cast<int>(parts_.random.Below(static_cast<std::int64_t>(parts_.pods.size())));
    if (!parts_.pods[pod].gone) return pod;
  }
  return -1;
}

void Faults::Reset(int pod) {
  for (std::size_t i = 0; i < parts_.pods.size(); ++i) {
    bool notified =
        static_cast<int>(i) != pod && parts_.pods[i].up && parts_.network.TellsOfDeath();
    if (notified)
      parts_.events.After(parts_.random.Between(200, 5 * kMs), Kind::kReset, static_cast<int>(i),
                          pod);
  }
}

// Kills so many pods at once that those that are left have no majority; now and then all of them.
void Faults::KillMost() {
  std::vector<int> alive;
  for (std::size_t i = 0; i < parts_.pods.size(); ++i) {
    if (!parts_.pods[i].gone) alive.push_back(static_cast<int>(i));
  }
  auto count = static_cast<int>(alive.size());
  int kill = parts_.random.Chance(150) ? count : std::min(count - 1, (count + 1) / 2);
  if (parts_.pods.size() > 100) return;
  for (int i = 0; i < kill; ++i) {
    auto at =
        static_cast<std::size_t>(parts_.random.Below(static_cast<std::int64_t>(alive.size())));
    KillPod(alive[at]);
    alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
    if (parts_.random.Chance(400) || (i == 0 && kill == count)) {
      parts_.events.After(parts_.random.Below(800 * kMs), Kind::kStartSidecar,
                          parts_.sidecars.AddPod(false));
    }
  }
}

void Faults::KillPod(int pod) {
  parts_.sidecars.Crash(pod);
  parts_.pods[pod].gone = true;
  parts_.pods[pod].ProveLater(900, parts_.events.now(), &parts_.random);
  for (SimWorker& worker : parts_.pods[pod].workers) worker.alive = false;
  parts_.journal.Trace([&] { return parts_.pods[pod].uid + " is gone for good"; });
  Reset(pod);
}

void Faults::InjectNext() {
  const Fault fault = DrawFault(parts_.profile, &parts_.random);
  const int pod = RandomPod();
  if (pod < 0) return;
  ++parts_.journal.coverage().faults[static_cast<int>(fault)];
  parts_.journal.Trace(
      [&] { return std::string("FAULT ") + FaultName(fault) + " " + parts_.pods[pod].uid; });
  Inject(fault, pod);
}

void Faults::Inject(Fault fault, int pod) {
  switch (fault) {
    case Fault::kKillWorker:
      return parts_.workers.Kill(pod, static_cast<int>(parts_.random.Below(parts_.job.slots)));
    case Fault::kKillPod:
      return KillOne(pod);
    case Fault::kRestartSidecar:
      if (!parts_.random.Chance(500)) return RestartSidecar(pod, false);
      parts_.pods[pod].crash_after =
          static_cast<int>(parts_.random.Below(8));  // in the middle of its actions
      return;
    case Fault::kLoseFile:
      return RestartSidecar(pod, true);
    case Fault::kPause: {
      Micros& until = parts_.pods[pod].paused_until;
      until = std::max(until, parts_.events.now() + parts_.random.Between(20 * kMs, 2500 * kMs));
      return;
    }
    case Fault::kPartition:
      return Partition(pod);
    case Fault::kCutLink:
      return CutLink(pod);
    case Fault::kSuspectWrongly:
      return SuspectWrongly();
    case Fault::kDrain:
      return Drain(pod);
    case Fault::kJoin: {
      int count = parts_.random.Chance(300) ? 2 : 1;
      for (int i = 0; i < count && parts_.pods.size() < 100; ++i) {
        parts_.events.After(parts_.random.Below(20 * kMs), Kind::kStartSidecar,
                            parts_.sidecars.AddPod(false));
      }
      return;
    }
    case Fault::kOperatorOutage:
      return StopOperators();
    case Fault::kStaleOperator:
      // The other operator writes for a while; this one goes on with what it remembers.
      return StopOneOperator();
    case Fault::kTarget:
      parts_.job.min_pods = static_cast<std::uint32_t>(parts_.random.Between(1, parts_.job.wanted));
      return;  // NotifyView sends it to all pods
    case Fault::kKillMost:
      return KillMost();
    case Fault::kRecover:
      return RecoverForNoReason();
    case Fault::kBreakLink:
      return BreakLink(pod);
    case Fault::kDeleteRecord:
      parts_.record.Delete();
      return;
    case Fault::kCount:
      return;
  }
}

// Kills the pod unless it is the last one. Mostly a new pod takes its place.
void Faults::KillOne(int pod) {
  int left = 0;
  for (const SimPod& other : parts_.pods) left += other.gone ? 0 : 1;
  if (left < 2 || parts_.pods.size() > 100) return;
  KillPod(pod);
  if (parts_.random.Chance(600)) {
    parts_.events.After(parts_.random.Below(800 * kMs), Kind::kStartSidecar,
                        parts_.sidecars.AddPod(false));
  }
}

void Faults::RestartSidecar(int pod, bool lose_file) {
  parts_.sidecars.Crash(pod);
  if (lose_file) parts_.pods[pod].disk.reset();
  Reset(pod);
  parts_.events.After(parts_.random.Between(5 * kMs, 900 * kMs), Kind::kStartSidecar, pod);
}

void Faults::Partition(int pod) {
  parts_.network.Split(pod);
  parts_.events.After(parts_.random.Between(300 * kMs, 2500 * kMs), Kind::kEndCut, pod, pod);
}

void Faults::CutLink(int pod) {
  int other = RandomPod();
  if (other < 0 || other == pod) return;
  parts_.network.Cut(pod, other);
  parts_.events.After(parts_.random.Between(300 * kMs, 2500 * kMs), Kind::kEndCut, pod, other);
}

void Faults::SuspectWrongly() {
  int times = static_cast<int>(parts_.random.Between(1, 3));
  for (int i = 0; i < times; ++i) {
    int accuser = RandomPod(), accused = RandomPod();
    if (accuser >= 0 && accused >= 0) {
      parts_.events.After(parts_.random.Below(4 * kMs), Kind::kReset, accuser, accused);
    }
  }
}

// A link between the workers of two pods breaks. Each end mostly reports it, and now and then
// reports that it breaks again and again.
void Faults::BreakLink(int pod) {
  const int other = RandomPod();
  if (other < 0 || other == pod) return;
  const bool again = parts_.random.Chance(400);
  for (const auto& [from, to] : {std::pair(pod, other), std::pair(other, pod)}) {
    SimPod& end = parts_.pods[from];
    if (!end.up || end.paused_until > parts_.events.now() || parts_.random.Chance(200)) continue;
    const ViewPtr view = end.member->current();
    if (view == nullptr) continue;
    LinkBroken broken{view->epoch, {}};
    if (again) broken.accused.push_back(parts_.pods[to].uid);
    parts_.sidecars.Step(from, broken);
  }
}

// Tells the pod and the coordinator that the pod leaves, if they run.
void Faults::Drain(int pod) {
  SimPod& victim = parts_.pods[pod];
  int staying = 0;
  for (const SimPod& other : parts_.pods) staying += !other.gone && !other.leaving ? 1 : 0;
  if (staying < 2 || victim.leaving) return;
  victim.leaving = true;
  std::optional<TimePoint> deadline;
  if (parts_.random.Chance(400)) {
    deadline =
        parts_.events.time_point() + std::chrono::milliseconds(parts_.random.Between(20, 1500));
  }
  if (victim.paused_until <= parts_.events.now())
    parts_.sidecars.Step(pod, DrainRequested{{victim.uid}, deadline});
  for (std::size_t i = 0; i < parts_.pods.size(); ++i) {
    bool hears = static_cast<int>(i) != pod && parts_.pods[i].up &&
                 parts_.pods[i].paused_until <= parts_.events.now();
    if (hears && parts_.pods[i].member->is_coordinator()) {
      parts_.sidecars.Step(static_cast<int>(i), DrainRequested{{victim.uid}, std::nullopt});
    }
  }
}

void Faults::StopOneOperator() {
  const Micros until = parts_.events.now() + parts_.random.Between(10 * kMs, 800 * kMs);
  parts_.operators.Stop(static_cast<int>(parts_.random.Below(Operators::kCount)), until);
}

void Faults::StopOperators() {
  const Micros until = parts_.events.now() + parts_.random.Between(100 * kMs, 3000 * kMs);
  parts_.operators.Stop(0, until);
  if (parts_.random.Chance(700)) parts_.operators.Stop(1, until);
}

void Faults::RecoverForNoReason() {
  for (int op = 0; op < Operators::kCount; ++op) {
    if (op == 0 || parts_.random.Chance(400)) {
      parts_.operators.RecoverForNoReason(op);
      parts_.events.After(parts_.random.Below(20 * kMs), Kind::kRecovery, 0, op, 1);
    }
  }
}

void Faults::Heal() {
  parts_.journal.Trace([] { return std::string("HEALED"); });
  parts_.network.Heal();
  parts_.operators.Heal();
  for (std::size_t i = 0; i < parts_.pods.size(); ++i) {
    SimPod& pod = parts_.pods[i];
    pod.crash_after = -1;
    if (pod.gone) continue;
    if (!pod.up)
      parts_.events.After(parts_.random.Below(50 * kMs), Kind::kStartSidecar, static_cast<int>(i));
    for (int s = 0; s < parts_.job.slots; ++s) {
      if (!pod.workers[s].alive) {
        parts_.events.After(parts_.random.Below(100 * kMs), Kind::kStartWorker, static_cast<int>(i),
                            s);
      }
    }
  }
}

}  // namespace ringmaster::membership::sim
