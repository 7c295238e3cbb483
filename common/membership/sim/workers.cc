// Simulated workers: they complete a step only if all ranks of a view take part.
#include <algorithm>
#include <utility>

#include "common/membership/sim/world.h"

namespace ringmaster::membership::sim {
namespace {

constexpr Micros kStepTime = 25 * kMs;

}  // namespace

// ---- From the sidecar

void World::ToWorkers(int pod, Command command, Epoch epoch) {
  SimPod& self = pods_[pod];
  self.to_workers = std::max(self.to_workers, events_.now() + random_.Between(50, 2 * kMs));
  for (int s = 0; s < job_.slots; ++s) {
    if (!self.workers[s].alive) continue;
    events_.At(self.to_workers, Kind::kToWorker, pod, s, epoch, self.workers[s].incarnation,
               command);
  }
}

void World::OnWorkerCommand(const SimEvent& event) {
  SimWorker& worker = pods_[event.a].workers[event.b];
  if (!worker.alive || worker.incarnation != event.y) return;
  Epoch epoch = event.x;
  if (event.command == Command::kStop) {
    worker.stopped = std::max(worker.stopped, epoch);
    SendFromWorker(event.a, event.b, Command::kStopped, worker.stopped);
  } else if (event.command == Command::kArm) {
    if (worker.boundary == epoch) {
      SendFromWorker(event.a, event.b, Command::kBoundary, epoch);
    } else if (worker.installed == epoch) {
      worker.armed = epoch;
    }
  } else if (event.command == Command::kView) {
    const View& view = *truth_.Of(epoch).view;
    bool member = view.FindMember(pods_[event.a].uid, pods_[event.a].pod.incarnation) >= 0 ||
                  options_.without.Has(Clause::kIncarnationMatches);
    int rank = member ? view.FindRank(pods_[event.a].uid, event.b, worker.incarnation) : -1;
    if (epoch < worker.newest) {
      if (rank < 0) return;  // the worker is not in it, so it ignores this older view
      journal_.Fail("I1: a worker of " + pods_[event.a].uid + " is given view " + EpochText(epoch) +
                    " after " + EpochText(worker.newest));
      return;
    }
    bool first = epoch > worker.newest;
    worker.newest = epoch;
    if (rank < 0) {
      worker.installed = 0;
      worker.holds = false;
      worker.ready = false;
      SendFromWorker(event.a, event.b, Command::kEnter, epoch);
    } else if (first && epoch > worker.stopped) {
      worker.installed = epoch;
      if (view.ranks[rank].joined) worker.holds = false;
      // The reason alone is not enough: a view that changes only `train` keeps its parent's reason.
      if (EpochNumber(epoch) == 1 && view.reason == Reason::kBootstrap)
        BootstrapWorker(view, &worker);
      worker.used = true;
      if (!std::exchange(truth_.Of(epoch).step_pending, true)) {
        events_.After(kStepTime, Kind::kStep, 0, 0, epoch);
      }
    }
  }
}

// ---- To the sidecar

void World::SendFromWorker(int pod, int slot, Command command, Epoch epoch) {
  SimPod& self = pods_[pod];
  self.from_workers = std::max(self.from_workers, events_.now() + random_.Between(50, 2 * kMs));
  // A message to a sidecar that dies meanwhile is lost with its socket.
  std::uint64_t sender = self.workers[slot].incarnation << 32 | self.life;
  events_.At(self.from_workers, Kind::kFromWorker, pod, slot, epoch, sender, command);
}

void World::OnWorkerMessage(const SimEvent& event) {
  SimPod& self = pods_[event.a];
  SimWorker& worker = self.workers[event.b];
  if (event.command == Command::kEnter) {
    if (worker.alive && worker.incarnation == event.y >> 32) worker.ready = true;
    if (self.up) WorkersSeen(event.a);
    return;
  }
  if (!self.up || self.life != static_cast<std::uint32_t>(event.y)) return;
  if (event.command == Command::kStopped) CheckStopped(event.a);
  if (event.command == Command::kBoundary) CheckBoundary(event.a);
  if (event.command == Command::kRan) StepMember(event.a, FirstOperationDone{event.x});
}

void World::WorkersSeen(int pod) {
  WorkersChanged changed;
  for (int s = 0; s < job_.slots; ++s) {
    const SimWorker& worker = pods_[pod].workers[s];
    if (!worker.alive) continue;
    changed.workers.push_back(
        {static_cast<std::uint32_t>(s), worker.incarnation, "", "", worker.ready, worker.used});
  }
  // A worker that connected after the `stop` was sent has not got it.
  if (pods_[pod].stop_wanted != 0) ToWorkers(pod, Command::kStop, pods_[pod].stop_wanted);
  StepMember(pod, changed);
  CheckStopped(pod);
}

void World::CheckStopped(int pod) {
  SimPod& self = pods_[pod];
  if (!self.up || self.stop_wanted == 0) return;
  for (const SimWorker& worker : self.workers) {
    if (worker.alive && worker.stopped < self.stop_wanted) return;
  }
  Epoch epoch = std::exchange(self.stop_wanted, 0);
  StepMember(pod, WorkersStopped{epoch});
}

void World::CheckBoundary(int pod) {
  SimPod& self = pods_[pod];
  Epoch epoch = self.arm_wanted;
  if (epoch == 0) return;
  const View& view = *truth_.Of(epoch).view;
  for (int s = 0; s < job_.slots; ++s) {
    const SimWorker& worker = self.workers[s];
    bool ranked = worker.alive && view.FindRank(self.uid, s, worker.incarnation) >= 0;
    if (ranked && worker.boundary != epoch) return;
  }
  self.arm_wanted = 0;
  StepMember(pod, BoundaryReached{epoch});
}

// ---- Life and death

// The first view of the job, or of a lineage that begins from the checkpoint.
void World::BootstrapWorker(const View& view, SimWorker* worker) {
  if (worker->used) {
    journal_.Fail("I5: in " + EpochText(view.epoch) +
                  " a worker that has been in a view is taken for a fresh one");
  }
  worker->holds = true;
  worker->step = 0;
  worker->hash = 0;
}

void World::KillWorker(int pod, int slot) {
  SimPod& self = pods_[pod];
  SimWorker& worker = self.workers[slot];
  if (!worker.alive) return;
  worker.alive = false;
  journal_.Trace([&] { return self.uid + " worker " + std::to_string(slot) + " dies"; });
  if (self.up) events_.After(random_.Between(50, 3 * kMs), Kind::kWorkersSeen, pod, 0, self.life);
  events_.After(random_.Between(1 * kMs, 600 * kMs), Kind::kStartWorker, pod, slot);
}

void World::StartWorker(int pod, int slot) {
  SimPod& self = pods_[pod];
  SimWorker& worker = self.workers[slot];
  if (self.gone || worker.alive) return;
  std::uint64_t incarnation = worker.incarnation + 1;
  worker = SimWorker{};
  worker.incarnation = incarnation;
  worker.ready = true;
  journal_.Trace([&] { return self.uid + " worker " + std::to_string(slot) + " starts"; });
  if (self.up) events_.After(random_.Between(50, 3 * kMs), Kind::kWorkersSeen, pod, 0, self.life);
}

// ---- Training

void World::TryStep(Epoch epoch) {
  const ViewPtr decided = truth_.Of(epoch).view;
  const View& view = *decided;
  std::vector<SimWorker*> workers;
  bool all = true, any = false;
  int first = -1;
  for (const RankEntry& rank : view.ranks) {
    int pod = IndexOf(view.pods[rank.pod].uid);
    SimWorker& worker = pods_[pod].workers[rank.slot];
    bool in = worker.alive && worker.incarnation == rank.incarnation && worker.installed == epoch &&
              worker.stopped < epoch;
    any = any || in;
    if (first < 0) first = pod;
    all = all && in && worker.boundary != epoch && pods_[pod].paused_until <= events_.now() &&
          network_.Connected(first, pod);
    workers.push_back(&worker);
  }
  if (all) CompleteStep(view, workers);
  truth_.Of(epoch).step_pending = any;
  if (any && !journal_.failed()) {
    events_.After(kStepTime + random_.Below(kStepTime), Kind::kStep, 0, 0, epoch);
  }
}

void World::CompleteStep(const View& view, const std::vector<SimWorker*>& workers) {
  journal_.Trace(
      [&] { return "step " + std::to_string(truth_.step() + 1) + " in " + EpochText(view.epoch); });
  if (truth_.Of(view.epoch + 1).view) {
    journal_.Fail("I3: view " + EpochText(view.epoch) +
                  " completes a step after its successor was decided");
  }
  if (EpochLineage(view.epoch) < EpochLineage(truth_.newest()->epoch)) {
    journal_.Fail("I3: view " + EpochText(view.epoch) + " completes a step after " +
                  EpochText(truth_.newest()->epoch) + " was decided");
  }
  if (view.epoch < truth_.trained()) {
    journal_.Fail("I3: view " + EpochText(view.epoch) + " completes a step after " +
                  EpochText(truth_.trained()));
  }
  bool holder = false;
  for (SimWorker* worker : workers) {
    if (!worker->holds) continue;
    holder = true;
    if (worker->step != truth_.step() || worker->hash != truth_.hash()) {
      journal_.Fail("I5: in view " + EpochText(view.epoch) + " a survivor has step " +
                    std::to_string(worker->step) + " of " + std::to_string(truth_.step()));
    }
  }
  if (!holder) {
    for (const SimPod& pod : pods_) {
      for (const SimWorker& worker : pod.workers) {
        if (worker.alive && worker.holds && worker.step == truth_.step()) {
          journal_.Fail("I5: view " + EpochText(view.epoch) +
                        " trains and nobody in it holds the state, " + "but " + pod.uid + " does");
        }
      }
    }
  }
  truth_.CompleteStep(view.epoch);
  ++journal_.coverage().steps;
  Decided& decided = truth_.Of(view.epoch);
  bool first = !std::exchange(decided.ran, true);
  decided.last_step = events_.now();
  bool armed = std::all_of(workers.begin(), workers.end(),
                           [&](const SimWorker* w) { return w->armed == view.epoch; });
  for (std::size_t r = 0; r < workers.size(); ++r) {
    SimWorker& worker = *workers[r];
    worker.step = truth_.step();
    worker.hash = truth_.hash();
    worker.holds = true;
    int pod = IndexOf(view.pods[view.ranks[r].pod].uid);
    int slot = static_cast<int>(view.ranks[r].slot);
    if (first) SendFromWorker(pod, slot, Command::kRan, view.epoch);
    if (armed) {
      worker.boundary = view.epoch;
      SendFromWorker(pod, slot, Command::kBoundary, view.epoch);
    }
  }
}

}  // namespace ringmaster::membership::sim
