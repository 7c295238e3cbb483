#include "tests/sim/rings.h"

#include <algorithm>
#include <utility>

namespace ringmaster::app::sim {
namespace {

constexpr Micros kStep = 50 * kMs;

}  // namespace

void Rings::TickSoon(Epoch epoch) {
  Decided& decided = parts_.views.Of(epoch);
  if (decided.view == nullptr || std::exchange(decided.ticking, true)) return;
  parts_.time.After(parts_.random.Between(2 * kMs, 20 * kMs), [this, epoch] { Tick(epoch); });
}

void Rings::Tick(Epoch epoch) {
  const ViewPtr view = parts_.views.Of(epoch).view;
  parts_.views.Of(epoch).ticking = false;
  const std::vector<WorkerPtr> ranks = parts_.pods.RanksOf(*view);
  const auto in = [&](const WorkerPtr& worker) { return InView(worker, epoch); };
  if (std::none_of(ranks.begin(), ranks.end(), in)) return;
  parts_.views.Of(epoch).ticking = true;
  parts_.time.After(kStep + parts_.random.Below(kStep), [this, epoch] { Tick(epoch); });
  const bool all = std::all_of(ranks.begin(), ranks.end(), [&](const WorkerPtr& worker) {
    return in(worker) && worker->phase != Phase::kBroken && !parts_.pods.Frozen(*worker) &&
           parts_.network.BothWays(ranks.front()->pod, worker->pod);
  });
  if (!all) return LookForBroken(*view, ranks);
  const auto phase = [&](Phase wanted) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const WorkerPtr& worker) { return worker->phase == wanted; });
  };
  if (phase(Phase::kConnecting)) return ConnectRanks(ranks);
  const bool busy =
      std::any_of(ranks.begin(), ranks.end(), [](const WorkerPtr& worker) { return worker->busy; });
  if (busy) return parts_.calls.Retry(ranks);
  if (phase(Phase::kConnected)) return parts_.calls.Go(&parts_.views.Of(epoch).ring, ranks);
  const bool stand = std::any_of(ranks.begin(), ranks.end(), [](const WorkerPtr& worker) {
    return worker->standing || !worker->entered;
  });
  if (stand) return;
  const bool done = parts_.script.IsOver(ranks.front()->step, ranks.front()->done);
  done ? FinishJob(*view, ranks) : parts_.calls.Go(&parts_.views.Of(epoch).ring, ranks);
}

void Rings::ConnectRanks(const std::vector<WorkerPtr>& ranks) {
  for (const WorkerPtr& worker : ranks) {
    if (worker->phase != Phase::kConnecting) continue;
    worker->phase = Phase::kConnected;
    worker->call = Call::kExchange;
    worker->place = 0;
    worker->reported_installed = worker->epoch;
    worker->wants_to_enter = false;
    parts_.links.SendFrom(
        worker, {{"t", "installed"}, {"epoch", worker->epoch}, {"seconds", {{"connect", 0.01}}}});
  }
}

// Their scripts have ended: all ranks agree to end.
void Rings::FinishJob(const membership::View& view, const std::vector<WorkerPtr>& ranks) {
  parts_.script.Finish();
  ++parts_.journal.coverage().finished;
  for (const WorkerPtr& worker : ranks) {
    worker->finished = view.epoch;
    LeaveView(worker.get());
    worker->ended = true;
    parts_.links.SendFrom(worker, {{"t", "finished"}, {"epoch", view.epoch}});
    parts_.exit_when_heard(worker, parts_.time.now());
  }
}

// A connection to a process that has died or given the view up is reset. What is only silent is not
// noticed here.
void Rings::LookForBroken(const membership::View& view, const std::vector<WorkerPtr>& ranks) {
  for (const WorkerPtr& worker : ranks) {
    if (!InView(worker, view.epoch) || parts_.pods.Frozen(*worker) ||
        worker->phase == Phase::kBroken)
      continue;
    const bool connected = worker->phase != Phase::kConnecting;
    bool given_up = false;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const WorkerPtr& other = ranks[r];
      const int pod = IndexOf(view.pods[view.ranks[r].pod].uid);
      if (!parts_.network.BothWays(worker->pod, pod) || parts_.pods[pod]->gone) continue;
      const bool dead = other == nullptr || !other->alive;
      // One that is stopped by a signal doesn't answer a probe, but nothing of it is closed.
      if (!dead && parts_.pods.Frozen(*other)) continue;
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
void Rings::BreakRing(const WorkerPtr& worker) {
  if (worker->phase != Phase::kActive || parts_.pods.Frozen(*worker)) return;
  const std::vector<WorkerPtr> ranks = parts_.pods.RanksOf(*worker->view);
  const auto own = static_cast<int>(std::find(ranks.begin(), ranks.end(), worker) - ranks.begin());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const WorkerPtr& other = ranks[r];
    if (!InView(other, worker->epoch) || other->pod == worker->pod || parts_.pods.Frozen(*other))
      continue;
    SayBroken(worker, static_cast<int>(r));
    if (parts_.random.Chance(700)) SayBroken(other, own);
    return;
  }
}

void Rings::Suspect(const WorkerPtr& worker, int rank) {
  if (!worker->suspected.insert(rank).second) return;
  parts_.links.SendFrom(
      worker, {{"t", "suspect"}, {"epoch", worker->epoch}, {"rank", rank}, {"reason", "closed"}});
}

void Rings::SayBroken(const WorkerPtr& worker, int rank) {
  parts_.calls.Interrupt(worker.get());
  worker->phase = Phase::kBroken;
  worker->broken = rank;
  parts_.links.SendFrom(
      worker, {{"t", "broken"}, {"epoch", worker->epoch}, {"rank", rank}, {"reason", "reset"}});
}

void Rings::LeaveView(Worker* worker) {
  // The others' connections to it are closed.
  if (worker->phase != Phase::kNoView) TickSoon(worker->epoch);
  parts_.calls.Interrupt(worker);
  worker->phase = Phase::kNoView;
}

}  // namespace ringmaster::app::sim
