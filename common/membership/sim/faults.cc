// The faults of the simulation, and how they end.
#include <algorithm>

#include "common/membership/sim/world.h"

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

int World::RandomPod() {
  for (int tries = 0; tries < 20; ++tries) {
    int pod = static_cast<int>(random_.Below(static_cast<std::int64_t>(pods_.size())));
    if (!pods_[pod].gone) return pod;
  }
  return -1;
}

void World::Reset(int pod) {
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    bool notified = static_cast<int>(i) != pod && pods_[i].up && network_.TellsOfDeath();
    if (notified)
      events_.After(random_.Between(200, 5 * kMs), Kind::kReset, static_cast<int>(i), pod);
  }
}

// Draws whether and when there is a proof that the pod is dead. `chance`: per thousand.
void World::ProveLater(int pod, int chance) {
  if (random_.Chance(chance)) pods_[pod].proven_at = events_.now() + random_.Below(3000 * kMs);
}

// Kills so many pods at once that those that are left have no majority; now and then all of them.
void World::KillMost() {
  std::vector<int> alive;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (!pods_[i].gone) alive.push_back(static_cast<int>(i));
  }
  auto count = static_cast<int>(alive.size());
  int kill = random_.Chance(150) ? count : std::min(count - 1, (count + 1) / 2);
  if (pods_.size() > 100) return;
  for (int i = 0; i < kill; ++i) {
    auto at = static_cast<std::size_t>(random_.Below(static_cast<std::int64_t>(alive.size())));
    KillPod(alive[at]);
    alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
    if (random_.Chance(400) || (i == 0 && kill == count)) {
      events_.After(random_.Below(800 * kMs), Kind::kStartSidecar, AddPod(false));
    }
  }
}

void World::KillPod(int pod) {
  CrashSidecar(pod);
  pods_[pod].gone = true;
  ProveLater(pod, 900);
  for (SimWorker& worker : pods_[pod].workers) worker.alive = false;
  journal_.Trace([&] { return pods_[pod].uid + " is gone for good"; });
  Reset(pod);
}

void World::InjectFault() {
  const Fault fault = DrawFault(profile_, &random_);
  const int pod = RandomPod();
  if (pod < 0) return;
  ++journal_.coverage().faults[static_cast<int>(fault)];
  journal_.Trace([&] { return std::string("FAULT ") + FaultName(fault) + " " + pods_[pod].uid; });
  Inject(fault, pod);
}

void World::Inject(Fault fault, int pod) {
  switch (fault) {
    case Fault::kKillWorker:
      return KillWorker(pod, static_cast<int>(random_.Below(job_.slots)));
    case Fault::kKillPod:
      return KillOne(pod);
    case Fault::kRestartSidecar:
      if (!random_.Chance(500)) return RestartSidecar(pod, false);
      pods_[pod].crash_after = static_cast<int>(random_.Below(8));  // in the middle of its actions
      return;
    case Fault::kLoseFile:
      return RestartSidecar(pod, true);
    case Fault::kPause: {
      Micros& until = pods_[pod].paused_until;
      until = std::max(until, events_.now() + random_.Between(20 * kMs, 2500 * kMs));
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
      int count = random_.Chance(300) ? 2 : 1;
      for (int i = 0; i < count && pods_.size() < 100; ++i) {
        events_.After(random_.Below(20 * kMs), Kind::kStartSidecar, AddPod(false));
      }
      return;
    }
    case Fault::kOperatorOutage:
      return StopOperators();
    case Fault::kStaleOperator:
      // The other operator writes for a while; this one goes on with what it remembers.
      operators_[random_.Below(2)].down_until =
          events_.now() + random_.Between(10 * kMs, 800 * kMs);
      return;
    case Fault::kTarget:
      job_.min_pods = static_cast<std::uint32_t>(random_.Between(1, job_.wanted));
      return;  // NotifyView sends it to all pods
    case Fault::kKillMost:
      return KillMost();
    case Fault::kRecover:
      return RecoverForNoReason();
    case Fault::kBreakLink:
      return BreakLink(pod);
    case Fault::kDeleteRecord:
      record_.Delete();
      return;
    case Fault::kCount:
      return;
  }
}

// Kills the pod unless it is the last one. Mostly a new pod takes its place.
void World::KillOne(int pod) {
  int left = 0;
  for (const SimPod& other : pods_) left += other.gone ? 0 : 1;
  if (left < 2 || pods_.size() > 100) return;
  KillPod(pod);
  if (random_.Chance(600)) {
    events_.After(random_.Below(800 * kMs), Kind::kStartSidecar, AddPod(false));
  }
}

void World::RestartSidecar(int pod, bool lose_file) {
  CrashSidecar(pod);
  if (lose_file) pods_[pod].disk.reset();
  Reset(pod);
  events_.After(random_.Between(5 * kMs, 900 * kMs), Kind::kStartSidecar, pod);
}

void World::Partition(int pod) {
  network_.Split(pod);
  events_.After(random_.Between(300 * kMs, 2500 * kMs), Kind::kEndCut, pod, pod);
}

void World::CutLink(int pod) {
  int other = RandomPod();
  if (other < 0 || other == pod) return;
  network_.Cut(pod, other);
  events_.After(random_.Between(300 * kMs, 2500 * kMs), Kind::kEndCut, pod, other);
}

void World::SuspectWrongly() {
  int times = static_cast<int>(random_.Between(1, 3));
  for (int i = 0; i < times; ++i) {
    int accuser = RandomPod(), accused = RandomPod();
    if (accuser >= 0 && accused >= 0) {
      events_.After(random_.Below(4 * kMs), Kind::kReset, accuser, accused);
    }
  }
}

// A link between the workers of two pods breaks. Each end mostly reports it, and now and then
// reports that it breaks again and again.
void World::BreakLink(int pod) {
  const int other = RandomPod();
  if (other < 0 || other == pod) return;
  const bool again = random_.Chance(400);
  for (const auto& [from, to] : {std::pair(pod, other), std::pair(other, pod)}) {
    SimPod& end = pods_[from];
    if (!end.up || end.paused_until > events_.now() || random_.Chance(200)) continue;
    const ViewPtr view = end.member->current();
    if (view == nullptr) continue;
    LinkBroken broken{view->epoch, {}};
    if (again) broken.accused.push_back(pods_[to].uid);
    StepMember(from, broken);
  }
}

// Tells the pod and the coordinator that the pod leaves, if they run.
void World::Drain(int pod) {
  SimPod& victim = pods_[pod];
  int staying = 0;
  for (const SimPod& other : pods_) staying += !other.gone && !other.leaving ? 1 : 0;
  if (staying < 2 || victim.leaving) return;
  victim.leaving = true;
  std::optional<TimePoint> deadline;
  if (random_.Chance(400)) {
    deadline = events_.time_point() + std::chrono::milliseconds(random_.Between(20, 1500));
  }
  if (victim.paused_until <= events_.now()) StepMember(pod, DrainRequested{{victim.uid}, deadline});
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    bool hears =
        static_cast<int>(i) != pod && pods_[i].up && pods_[i].paused_until <= events_.now();
    if (hears && pods_[i].member->is_coordinator()) {
      StepMember(static_cast<int>(i), DrainRequested{{victim.uid}, std::nullopt});
    }
  }
}

void World::StopOperators() {
  Micros until = events_.now() + random_.Between(100 * kMs, 3000 * kMs);
  operators_[0].down_until = until;
  if (random_.Chance(700)) operators_[1].down_until = until;
}

void World::RecoverForNoReason() {
  for (int op = 0; op < 2; ++op) {
    if (op == 0 || random_.Chance(400)) {
      operators_[op].at_once = true;
      events_.After(random_.Below(20 * kMs), Kind::kRecovery, 0, op, 1);
    }
  }
}

// The end of all faults: from now on the network delivers and every pod that is not gone runs.
void World::Heal() {
  journal_.Trace([] { return std::string("HEALED"); });
  network_.Heal();
  operators_[0].down_until = operators_[1].down_until = 0;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    SimPod& pod = pods_[i];
    pod.crash_after = -1;
    if (pod.gone) continue;
    if (!pod.up) events_.After(random_.Below(50 * kMs), Kind::kStartSidecar, static_cast<int>(i));
    for (int s = 0; s < job_.slots; ++s) {
      if (!pod.workers[s].alive) {
        events_.After(random_.Below(100 * kMs), Kind::kStartWorker, static_cast<int>(i), s);
      }
    }
  }
  end_ = events_.now() + 40000 * kMs;
  events_.After(200 * kMs, Kind::kCheck);
}

}  // namespace ringmaster::membership::sim
