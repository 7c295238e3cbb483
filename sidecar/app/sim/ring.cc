// The ring of a view: its ranks connect, bring each other to the same point, and complete steps, if
// all of them take part.
#include <algorithm>
#include <utility>

#include "sidecar/app/sim/world.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kStep = 50 * kMs;

}  // namespace

std::vector<WorkerPtr> World::RanksOf(const membership::View& view) const {
  std::vector<WorkerPtr> ranks;
  for (const membership::RankEntry& rank : view.ranks) {
    ranks.push_back(FindProcess(IndexOf(view.pods[rank.pod].uid), static_cast<int>(rank.slot),
                                rank.incarnation));
  }
  return ranks;
}

bool World::InView(const WorkerPtr& worker, Epoch epoch) const {
  return worker != nullptr && worker->alive && worker->epoch == epoch &&
         worker->phase != Phase::kNoView;
}

void World::TickSoon(Epoch epoch) {
  Decided& decided = Of(epoch);
  if (decided.view == nullptr || std::exchange(decided.ticking, true)) return;
  time_.After(random_.Between(2 * kMs, 20 * kMs), [this, epoch] { Tick(epoch); });
}

void World::Tick(Epoch epoch) {
  const ViewPtr view = Of(epoch).view;
  Of(epoch).ticking = false;
  const std::vector<WorkerPtr> ranks = RanksOf(*view);
  const auto in = [&](const WorkerPtr& worker) { return InView(worker, epoch); };
  if (std::none_of(ranks.begin(), ranks.end(), in)) return;
  Of(epoch).ticking = true;
  time_.After(kStep + random_.Below(kStep), [this, epoch] { Tick(epoch); });
  const bool all = std::all_of(ranks.begin(), ranks.end(), [&](const WorkerPtr& worker) {
    return in(worker) && worker->phase != Phase::kBroken && !Frozen(*worker) &&
           BothWays(ranks.front()->pod, worker->pod);
  });
  if (!all) return LookForBroken(*view, ranks);
  const auto phase = [&](Phase wanted) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const WorkerPtr& worker) { return worker->phase == wanted; });
  };
  if (phase(Phase::kConnecting)) return ConnectRanks(ranks);
  if (phase(Phase::kConnected)) return RecoverRanks(*view, ranks);
  const bool stand = std::any_of(ranks.begin(), ranks.end(), [](const WorkerPtr& worker) {
    return worker->standing || !worker->entered;
  });
  if (!stand) CompleteStep(*view, ranks);
}

void World::ConnectRanks(const std::vector<WorkerPtr>& ranks) {
  for (const WorkerPtr& worker : ranks) {
    if (worker->phase != Phase::kConnecting) continue;
    worker->phase = Phase::kConnected;
    worker->reported_installed = worker->epoch;
    worker->wants_to_enter = false;
    WorkerSend(worker,
               {{"t", "installed"}, {"epoch", worker->epoch}, {"seconds", {{"connect", 0.01}}}});
  }
}

void World::RecoverRanks(const membership::View& view, const std::vector<WorkerPtr>& ranks) {
  WorkerPtr donor;
  bool at_boundary = true;
  std::int64_t step = 0;
  for (const WorkerPtr& worker : ranks) {
    if (!worker->has_state) continue;
    if (donor == nullptr) donor = worker;
    step = std::max(step, worker->step);
    at_boundary = at_boundary && (worker->standing || !worker->entered);
  }
  if (donor == nullptr) {
    Fail("no worker of " + membership::EpochText(view.epoch) + " has the state");
    return;
  }
  for (const WorkerPtr& worker : ranks) {
    worker->rebuild_pending = worker->entered;
    if (!std::exchange(worker->has_state, true)) {
      worker->holds = donor->holds;
      worker->hash = donor->hash;
    }
    worker->step = std::max(worker->step, step);
    worker->detached = false;
    worker->phase = Phase::kActive;
    if (!view.train && at_boundary) {
      ReachBoundary(worker);
      continue;
    }
    worker->entered = true;
    worker->user_waits = worker->standing = false;
  }
}

void World::CheckStep(const membership::View& view, const std::vector<WorkerPtr>& ranks) {
  const std::string name = membership::EpochText(view.epoch);
  const auto later = decided_.upper_bound(view.epoch);
  if (later != decided_.end() && later->second.view != nullptr) {
    Fail("I3: " + name + " completes a step after " + membership::EpochText(later->first) +
         " was decided");
  }
  if (view.epoch < trained_)
    Fail("I3: " + name + " completes a step after " + membership::EpochText(trained_));
  bool holder = false;
  for (const WorkerPtr& worker : ranks) {
    if (worker->stopped >= view.epoch) Fail(Name(*worker) + " steps in a view that it has stopped");
    if (!worker->holds) continue;
    holder = true;
    if (worker->hash != hash_)
      Fail("I5: in " + name + " " + Name(*worker) + " has step " + std::to_string(worker->step) +
           " of " + std::to_string(step_));
  }
  if (step_ == 0) return;  // what the job begins with is everybody's
  for (const auto& pod : pods_) {
    for (const Child& child : pod->launcher.children) {
      if (!holder && child.worker->alive && child.worker->holds && child.worker->hash == hash_)
        Fail("I5: " + name + " trains and nobody in it holds the state, but " +
             Name(*child.worker) + " does");
    }
  }
}

void World::CompleteStep(const membership::View& view, const std::vector<WorkerPtr>& ranks) {
  CheckStep(view, ranks);
  Decided& decided = Of(view.epoch);
  decided.ran = true;
  decided.last_step = time_.now();
  trained_ = view.epoch;
  ++step_;
  ++coverage_.steps;
  hash_ = (hash_ + view.epoch) * 0x9E3779B97F4A7C15ull + static_cast<std::uint64_t>(step_);
  Trace(
      [&] { return "step " + std::to_string(step_) + " in " + membership::EpochText(view.epoch); });
  // Below minReplicas every step is the last one until there are enough.
  const bool armed =
      !view.train || std::all_of(ranks.begin(), ranks.end(),
                                 [&](const auto& worker) { return worker->armed == view.epoch; });
  for (const WorkerPtr& worker : ranks) {
    worker->step = step_;
    worker->hash = hash_;
    worker->holds = true;
    worker->ran = view.epoch;
    worker->standing = armed;
    if (std::exchange(worker->rebuild_pending, false)) {
      WorkerSend(worker, {{"t", "rebuilt"},
                          {"epoch", view.epoch},
                          {"step", worker->step},
                          {"resumed", worker->step},
                          {"seconds", {{"stop", 0.001}}}});
    }
    if (armed) ReachBoundary(worker);
  }
  if (!armed && finish_at_ >= 0 && step_ >= finish_at_) FinishJob(view, ranks);
}

// Their scripts have ended: all ranks agree to end.
void World::FinishJob(const membership::View& view, const std::vector<WorkerPtr>& ranks) {
  finishing_ = true;
  ++coverage_.finished;
  for (const WorkerPtr& worker : ranks) {
    worker->finished = view.epoch;
    LeaveView(worker.get());
    worker->ended = true;
    WorkerSend(worker, {{"t", "finished"}, {"epoch", view.epoch}});
    ExitWhenHeard(worker, time_.now());
  }
}

// A connection to a process that has died or given the view up is reset. What is only silent is not
// noticed here.
void World::LookForBroken(const membership::View& view, const std::vector<WorkerPtr>& ranks) {
  for (const WorkerPtr& worker : ranks) {
    if (!InView(worker, view.epoch) || Frozen(*worker) || worker->phase == Phase::kBroken) continue;
    const bool connected = worker->phase != Phase::kConnecting;
    bool given_up = false;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const WorkerPtr& other = ranks[r];
      const int pod = IndexOf(view.pods[view.ranks[r].pod].uid);
      if (!BothWays(worker->pod, pod) || pods_[pod]->gone) continue;
      const bool dead = other == nullptr || !other->alive;
      // One that is stopped by a signal doesn't answer a probe, but nothing of it is closed.
      if (!dead && Frozen(*other)) continue;
      if (dead) Suspect(worker, static_cast<int>(r));
      const bool left = !dead && !InView(other, view.epoch) && other->stopped >= view.epoch;
      given_up = given_up || left ||
                 (!dead && InView(other, view.epoch) && other->phase == Phase::kBroken);
    }
    if (!worker->suspected.empty() || (connected && given_up)) SayBroken(worker, -1);
  }
}

// A connection to a worker of another pod is reset, though both live. One end sees it first, mostly
// both do before they give the view up.
void World::BreakRing(const WorkerPtr& worker) {
  if (worker->phase != Phase::kActive || Frozen(*worker)) return;
  const std::vector<WorkerPtr> ranks = RanksOf(*worker->view);
  const auto own = static_cast<int>(std::find(ranks.begin(), ranks.end(), worker) - ranks.begin());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const WorkerPtr& other = ranks[r];
    if (!InView(other, worker->epoch) || other->pod == worker->pod || Frozen(*other)) continue;
    SayBroken(worker, static_cast<int>(r));
    if (random_.Chance(700)) SayBroken(other, own);
    return;
  }
}

void World::Suspect(const WorkerPtr& worker, int rank) {
  if (!worker->suspected.insert(rank).second) return;
  WorkerSend(worker,
             {{"t", "suspect"}, {"epoch", worker->epoch}, {"rank", rank}, {"reason", "closed"}});
}

void World::SayBroken(const WorkerPtr& worker, int rank) {
  worker->phase = Phase::kBroken;
  worker->broken = rank;
  WorkerSend(worker,
             {{"t", "broken"}, {"epoch", worker->epoch}, {"rank", rank}, {"reason", "reset"}});
}

}  // namespace ringmaster::app::sim
