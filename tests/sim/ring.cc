// The ring of a view: its ranks connect, bring each other to the same point (recovery.cc), and run
// the operations of steps (reductions.cc), if all of them take part; or they find that it is
// broken.
#include <algorithm>
#include <utility>

#include "tests/sim/world.h"

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
  Decided& decided = views_.Of(epoch);
  if (decided.view == nullptr || std::exchange(decided.ticking, true)) return;
  time_.After(random_.Between(2 * kMs, 20 * kMs), [this, epoch] { Tick(epoch); });
}

void World::Tick(Epoch epoch) {
  const ViewPtr view = views_.Of(epoch).view;
  views_.Of(epoch).ticking = false;
  const std::vector<WorkerPtr> ranks = RanksOf(*view);
  const auto in = [&](const WorkerPtr& worker) { return InView(worker, epoch); };
  if (std::none_of(ranks.begin(), ranks.end(), in)) return;
  views_.Of(epoch).ticking = true;
  time_.After(kStep + random_.Below(kStep), [this, epoch] { Tick(epoch); });
  const bool all = std::all_of(ranks.begin(), ranks.end(), [&](const WorkerPtr& worker) {
    return in(worker) && worker->phase != Phase::kBroken && !Frozen(*worker) &&
           network_.BothWays(ranks.front()->pod, worker->pod);
  });
  if (!all) return LookForBroken(*view, ranks);
  const auto phase = [&](Phase wanted) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const WorkerPtr& worker) { return worker->phase == wanted; });
  };
  if (phase(Phase::kConnecting)) return ConnectRanks(ranks);
  const bool busy =
      std::any_of(ranks.begin(), ranks.end(), [](const WorkerPtr& worker) { return worker->busy; });
  if (busy) return Retry(ranks);
  if (phase(Phase::kConnected)) return Go(&views_.Of(epoch).ring, ranks);
  const bool stand = std::any_of(ranks.begin(), ranks.end(), [](const WorkerPtr& worker) {
    return worker->standing || !worker->entered;
  });
  if (stand) return;
  const bool done = script_.IsOver(ranks.front()->step, ranks.front()->done);
  done ? FinishJob(*view, ranks) : Go(&views_.Of(epoch).ring, ranks);
}

void World::ConnectRanks(const std::vector<WorkerPtr>& ranks) {
  for (const WorkerPtr& worker : ranks) {
    if (worker->phase != Phase::kConnecting) continue;
    worker->phase = Phase::kConnected;
    worker->call = Call::kExchange;
    worker->place = 0;
    worker->reported_installed = worker->epoch;
    worker->wants_to_enter = false;
    WorkerSend(worker,
               {{"t", "installed"}, {"epoch", worker->epoch}, {"seconds", {{"connect", 0.01}}}});
  }
}

// Their scripts have ended: all ranks agree to end.
void World::FinishJob(const membership::View& view, const std::vector<WorkerPtr>& ranks) {
  script_.Finish();
  ++journal_.coverage().finished;
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
      if (!network_.BothWays(worker->pod, pod) || pods_[pod]->gone) continue;
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
  Interrupt(worker.get());
  worker->phase = Phase::kBroken;
  worker->broken = rank;
  WorkerSend(worker,
             {{"t", "broken"}, {"epoch", worker->epoch}, {"rank", rank}, {"reason", "reset"}});
}

}  // namespace ringmaster::app::sim
