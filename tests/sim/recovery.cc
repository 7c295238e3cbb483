// Rule 14: when all ranks of a view have installed it, each says what it holds, what one holds is
// handed to those without it, and joiners get the state. In the order of EngineLoop::Recover; what
// follows from the holdings is the product's PlanRecovery.
#include <algorithm>
#include <utility>

#include "tests/sim/world.h"

namespace ringmaster::app::sim {

using engine::Retained;

std::vector<std::byte> World::HoldingOf(const Worker& worker) {
  engine::Holding holding;
  holding.has_state = worker.has_state;
  holding.at_boundary = worker.standing || !worker.entered;
  holding.next_number = worker.log.next_number();
  holding.step = static_cast<std::uint64_t>(worker.step);
  holding.results = worker.log.Holdings();
  return engine::WriteHolding(holding);
}

void World::LeaveExchange(const WorkerPtr& worker, const Stage& stage) {
  std::vector<engine::Holding> by_rank(stage.given.size());
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    if (!engine::ReadHolding(stage.given[r].holding, &by_rank[r]))
      return journal_.Fail("what a rank holds can't be read");
  }
  const Status planned = options_.plan_recovery ? options_.plan_recovery(by_rank, &worker->plan)
                                                : engine::PlanRecovery(by_rank, &worker->plan);
  if (!planned.ok())
    return journal_.Fail("I4: in " + membership::EpochText(worker->epoch) + " " + Name(*worker) +
                         " can't recover: " + planned.message());
  worker->rebuild_pending = worker->entered;
  worker->handover = 0;
  NextHandover(worker);
}

// What each rank has a result of its own of is not sent: it counts from now on, or never.
void World::NextHandover(const WorkerPtr& worker) {
  for (; worker->handover < worker->plan.handovers.size(); ++worker->handover) {
    const auto& handover = worker->plan.handovers[worker->handover];
    const engine::Response& response = handover.result.response;
    if (!response.needs_confirmation()) {
      worker->call = Call::kHandover;
      return;
    }
    if (!worker->has_state || worker->log.next_number() > response.number) continue;
    const Retained* own = worker->log.Commit(response.number);
    if (own == nullptr)
      return journal_.Fail("I4: operation " + std::to_string(response.number) +
                           " counts elsewhere, and " + Name(*worker) + " has never executed it");
    ++journal_.coverage().committed;
    Publish(worker, *own);
  }
  if (worker->plan.joiners.empty()) return Activate(worker);
  worker->call = Call::kState;
}

void World::LeaveHandover(const WorkerPtr& worker, const Stage& stage) {
  const auto& what = worker->plan.handovers[worker->handover++].result;
  const bool lacking = worker->has_state && worker->log.next_number() <= what.response.number;
  if (lacking) {
    Retained handed{what.response, {}};
    if (!what.parts.empty()) {
      handed.parts.push_back(
          {stage.given[static_cast<std::size_t>(stage.giver)].result, sizeof(std::uint64_t), {}});
    }
    ++journal_.coverage().handed_over;
    Publish(worker, worker->log.Keep(std::move(handed)));
  }
  NextHandover(worker);
}

void World::TakeState(const WorkerPtr& worker, const Stage& stage) {
  if (worker->has_state) return;
  const Given& donor = stage.given[static_cast<std::size_t>(stage.giver)];
  if (donor.done != 0)
    journal_.Fail("torn: " + Name(*worker) + " gets the state of " + std::to_string(donor.done) +
                  " operations after step " + std::to_string(donor.step));
  worker->has_state = true;
  worker->held = worker->epoch;
  worker->log.Restart(worker->plan.next_number);
  worker->step = static_cast<std::int64_t>(worker->plan.step);
  worker->done = 0;
  worker->model = donor.model;
  worker->holds = donor.holds;
  worker->recent.clear();
}

void World::Activate(const WorkerPtr& worker) {
  const membership::View& view = *worker->view;
  Ring& ring = views_.Of(worker->epoch).ring;
  const Given given = GivenBy(*worker);
  if (ring.start) agreement_.CheckSame(*ring.start, given, view.epoch);
  if (!ring.start) ring.start = given;
  worker->call = Call::kVote;
  worker->detached = worker->busy = false;
  worker->phase = Phase::kActive;
  if (!view.train && worker->plan.all_at_boundary) return ReachBoundary(worker);
  worker->entered = true;
  worker->user_waits = worker->standing = false;
}

}  // namespace ringmaster::app::sim
