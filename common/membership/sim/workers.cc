#include "common/membership/sim/workers.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership::sim {
namespace {

constexpr Micros kStepTime = 25 * kMs;

}  // namespace

// ---- From the sidecar

void Workers::Tell(int pod, Command command, Epoch epoch) {
  SimPod& self = parts_.pods[pod];
  self.to_workers =
      std::max(self.to_workers, parts_.events.now() + parts_.random.Between(50, 2 * kMs));
  for (int s = 0; s < parts_.job.slots; ++s) {
    if (!self.workers[s].alive) continue;
    parts_.events.At(self.to_workers, Kind::kToWorker, pod, s, epoch, self.workers[s].incarnation,
                     command);
  }
}

void Workers::OnCommand(const SimEvent& event) {
  SimWorker& worker = parts_.pods[event.a].workers[event.b];
  if (!worker.alive || worker.incarnation != event.y) return;
  Epoch epoch = event.x;
  if (event.command == Command::kStop) {
    worker.stopped = std::max(worker.stopped, epoch);
    SendFrom(event.a, event.b, Command::kStopped, worker.stopped);
  } else if (event.command == Command::kArm) {
    if (worker.boundary == epoch) {
      SendFrom(event.a, event.b, Command::kBoundary, epoch);
    } else if (worker.installed == epoch) {
      worker.armed = epoch;
    }
  } else if (event.command == Command::kView) {
    OnView(event, &worker);
  }
}

void Workers::OnView(const SimEvent& event, SimWorker* worker) {
  const Epoch epoch = event.x;
  const View& view = *parts_.truth.Of(epoch).view;
  bool member =
      view.FindMember(parts_.pods[event.a].uid, parts_.pods[event.a].pod.incarnation) >= 0 ||
      parts_.options.without.Has(Clause::kIncarnationMatches);
  int rank = member ? view.FindRank(parts_.pods[event.a].uid, event.b, worker->incarnation) : -1;
  if (epoch < worker->newest) {
    if (rank < 0) return;  // the worker is not in it, so it ignores this older view
    parts_.journal.Fail("I1: a worker of " + parts_.pods[event.a].uid + " is given view " +
                        EpochText(epoch) + " after " + EpochText(worker->newest));
    return;
  }
  bool first = epoch > worker->newest;
  worker->newest = epoch;
  if (rank < 0) {
    worker->installed = 0;
    worker->holds = false;
    worker->ready = false;
    SendFrom(event.a, event.b, Command::kEnter, epoch);
  } else if (first && epoch > worker->stopped) {
    worker->installed = epoch;
    if (view.ranks[rank].joined) worker->holds = false;
    // The reason alone is not enough: a view that changes only `train` keeps its parent's reason.
    if (EpochNumber(epoch) == 1 && view.reason == Reason::kBootstrap) BeginWith(view, worker);
    worker->used = true;
    if (!std::exchange(parts_.truth.Of(epoch).step_pending, true)) {
      parts_.events.After(kStepTime, Kind::kStep, 0, 0, epoch);
    }
  }
}

// ---- To the sidecar

void Workers::SendFrom(int pod, int slot, Command command, Epoch epoch) {
  SimPod& self = parts_.pods[pod];
  self.from_workers =
      std::max(self.from_workers, parts_.events.now() + parts_.random.Between(50, 2 * kMs));
  // A message to a sidecar that dies meanwhile is lost with its socket.
  std::uint64_t sender = self.workers[slot].incarnation << 32 | self.life;
  parts_.events.At(self.from_workers, Kind::kFromWorker, pod, slot, epoch, sender, command);
}

void Workers::OnMessage(const SimEvent& event) {
  SimPod& self = parts_.pods[event.a];
  SimWorker& worker = self.workers[event.b];
  if (event.command == Command::kEnter) {
    if (worker.alive && worker.incarnation == event.y >> 32) worker.ready = true;
    if (self.up) ShowSidecar(event.a);
    return;
  }
  if (!self.up || self.life != static_cast<std::uint32_t>(event.y)) return;
  if (event.command == Command::kStopped) CheckStopped(event.a);
  if (event.command == Command::kBoundary) CheckBoundary(event.a);
  if (event.command == Command::kRan) parts_.step(event.a, FirstOperationDone{event.x});
}

void Workers::ShowSidecar(int pod) {
  WorkersChanged changed;
  for (int s = 0; s < parts_.job.slots; ++s) {
    const SimWorker& worker = parts_.pods[pod].workers[s];
    if (!worker.alive) continue;
    changed.workers.push_back(
        {static_cast<std::uint32_t>(s), worker.incarnation, "", "", worker.ready, worker.used});
  }
  // A worker that connected after the `stop` was sent has not got it.
  if (parts_.pods[pod].stop_wanted != 0) Tell(pod, Command::kStop, parts_.pods[pod].stop_wanted);
  parts_.step(pod, changed);
  CheckStopped(pod);
}

void Workers::CheckStopped(int pod) {
  SimPod& self = parts_.pods[pod];
  if (!self.up || self.stop_wanted == 0) return;
  for (const SimWorker& worker : self.workers) {
    if (worker.alive && worker.stopped < self.stop_wanted) return;
  }
  Epoch epoch = std::exchange(self.stop_wanted, 0);
  parts_.step(pod, WorkersStopped{epoch});
}

void Workers::CheckBoundary(int pod) {
  SimPod& self = parts_.pods[pod];
  Epoch epoch = self.arm_wanted;
  if (epoch == 0) return;
  const View& view = *parts_.truth.Of(epoch).view;
  for (int s = 0; s < parts_.job.slots; ++s) {
    const SimWorker& worker = self.workers[s];
    bool ranked = worker.alive && view.FindRank(self.uid, s, worker.incarnation) >= 0;
    if (ranked && worker.boundary != epoch) return;
  }
  self.arm_wanted = 0;
  parts_.step(pod, BoundaryReached{epoch});
}

// ---- Life and death

// The first view of the job, or of a lineage that begins from the checkpoint.
void Workers::BeginWith(const View& view, SimWorker* worker) {
  if (worker->used) {
    parts_.journal.Fail("I5: in " + EpochText(view.epoch) +
                        " a worker that has been in a view is taken for a fresh one");
  }
  worker->holds = true;
  worker->step = 0;
  worker->hash = 0;
}

void Workers::Kill(int pod, int slot) {
  SimPod& self = parts_.pods[pod];
  SimWorker& worker = self.workers[slot];
  if (!worker.alive) return;
  worker.alive = false;
  parts_.journal.Trace([&] { return self.uid + " worker " + std::to_string(slot) + " dies"; });
  if (self.up)
    parts_.events.After(parts_.random.Between(50, 3 * kMs), Kind::kWorkersSeen, pod, 0, self.life);
  parts_.events.After(parts_.random.Between(1 * kMs, 600 * kMs), Kind::kStartWorker, pod, slot);
}

void Workers::Start(int pod, int slot) {
  SimPod& self = parts_.pods[pod];
  SimWorker& worker = self.workers[slot];
  if (self.gone || worker.alive) return;
  std::uint64_t incarnation = worker.incarnation + 1;
  worker = SimWorker{};
  worker.incarnation = incarnation;
  worker.ready = true;
  parts_.journal.Trace([&] { return self.uid + " worker " + std::to_string(slot) + " starts"; });
  if (self.up)
    parts_.events.After(parts_.random.Between(50, 3 * kMs), Kind::kWorkersSeen, pod, 0, self.life);
}

// ---- Training

void Workers::TryStep(Epoch epoch) {
  const ViewPtr decided = parts_.truth.Of(epoch).view;
  const View& view = *decided;
  std::vector<SimWorker*> workers;
  bool all = true, any = false;
  int first = -1;
  for (const RankEntry& rank : view.ranks) {
    int pod = IndexOf(view.pods[rank.pod].uid);
    SimWorker& worker = parts_.pods[pod].workers[rank.slot];
    bool in = worker.alive && worker.incarnation == rank.incarnation && worker.installed == epoch &&
              worker.stopped < epoch;
    any = any || in;
    if (first < 0) first = pod;
    all = all && in && worker.boundary != epoch &&
          parts_.pods[pod].paused_until <= parts_.events.now() &&
          parts_.network.Connected(first, pod);
    workers.push_back(&worker);
  }
  if (all) CompleteStep(view, workers);
  parts_.truth.Of(epoch).step_pending = any;
  if (any && !parts_.journal.failed()) {
    parts_.events.After(kStepTime + parts_.random.Below(kStepTime), Kind::kStep, 0, 0, epoch);
  }
}

void Workers::CheckStep(const View& view, const std::vector<SimWorker*>& workers) {
  if (parts_.truth.Of(view.epoch + 1).view) {
    parts_.journal.Fail("I3: view " + EpochText(view.epoch) +
                        " completes a step after its successor was decided");
  }
  if (EpochLineage(view.epoch) < EpochLineage(parts_.truth.newest()->epoch)) {
    parts_.journal.Fail("I3: view " + EpochText(view.epoch) + " completes a step after " +
                        EpochText(parts_.truth.newest()->epoch) + " was decided");
  }
  if (view.epoch < parts_.truth.trained()) {
    parts_.journal.Fail("I3: view " + EpochText(view.epoch) + " completes a step after " +
                        EpochText(parts_.truth.trained()));
  }
  bool holder = false;
  for (SimWorker* worker : workers) {
    if (!worker->holds) continue;
    holder = true;
    if (worker->step != parts_.truth.step() || worker->hash != parts_.truth.hash()) {
      parts_.journal.Fail("I5: in view " + EpochText(view.epoch) + " a survivor has step " +
                          std::to_string(worker->step) + " of " +
                          std::to_string(parts_.truth.step()));
    }
  }
  if (!holder) {
    for (const SimPod& pod : parts_.pods) {
      for (const SimWorker& worker : pod.workers) {
        if (worker.alive && worker.holds && worker.step == parts_.truth.step()) {
          parts_.journal.Fail("I5: view " + EpochText(view.epoch) +
                              " trains and nobody in it holds the state, " + "but " + pod.uid +
                              " does");
        }
      }
    }
  }
}

void Workers::CompleteStep(const View& view, const std::vector<SimWorker*>& workers) {
  parts_.journal.Trace([&] {
    return "step " + std::to_string(parts_.truth.step() + 1) + " in " + EpochText(view.epoch);
  });
  CheckStep(view, workers);
  parts_.truth.CompleteStep(view.epoch);
  ++parts_.journal.coverage().steps;
  Decided& decided = parts_.truth.Of(view.epoch);
  bool first = !std::exchange(decided.ran, true);
  decided.last_step = parts_.events.now();
  bool armed = std::all_of(workers.begin(), workers.end(),
                           [&](const SimWorker* w) { return w->armed == view.epoch; });
  for (std::size_t r = 0; r < workers.size(); ++r) {
    SimWorker& worker = *workers[r];
    worker.step = parts_.truth.step();
    worker.hash = parts_.truth.hash();
    worker.holds = true;
    int pod = IndexOf(view.pods[view.ranks[r].pod].uid);
    int slot = static_cast<int>(view.ranks[r].slot);
    if (first) SendFrom(pod, slot, Command::kRan, view.epoch);
    if (armed) {
      worker.boundary = view.epoch;
      SendFrom(pod, slot, Command::kBoundary, view.epoch);
    }
  }
}

}  // namespace ringmaster::membership::sim
