#include "tests/sim/recovery.h"

#include <utility>

namespace ringmaster::app::sim {

using engine::Retained;

std::vector<std::byte> Recovery::HoldingOf(const Worker& worker) {
  engine::Holding holding;
  holding.has_state = worker.has_state;
  holding.at_boundary = worker.standing || !worker.entered;
  holding.next_number = worker.log.next_number();
  holding.step = static_cast<std::uint64_t>(worker.step);
  holding.results = worker.log.Holdings();
  return engine::WriteHolding(holding);
}

void Recovery::LeaveExchange(const WorkerPtr& worker, const Stage& stage) {
  std::vector<engine::Holding> by_rank(stage.given.size());
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    if (!engine::ReadHolding(stage.given[r].holding, &by_rank[r]))
      return parts_.journal.Fail("what a rank holds can't be read");
  }
  const Status planned = parts_.options.plan_recovery
                             ? parts_.options.plan_recovery(by_rank, &worker->plan)
                             : engine::PlanRecovery(by_rank, &worker->plan);
  if (!planned.ok())
    return parts_.journal.Fail("I4: in " + membership::EpochText(worker->epoch) + " " +
                               parts_.pods.NameOf(*worker) +
                               " can't recover: " + planned.message());
  worker->rebuild_pending = worker->entered;
  worker->handover = 0;
  NextHandover(worker);
}

// What each rank has a result of its own of is not sent: it counts from now on, or never.
void Recovery::NextHandover(const WorkerPtr& worker) {
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
      return parts_.journal.Fail("I4: operation " + std::to_string(response.number) +
                                 " counts elsewhere, and " + parts_.pods.NameOf(*worker) +
                                 " has never executed it");
    ++parts_.journal.coverage().committed;
    parts_.publish(worker, *own);
  }
  if (worker->plan.joiners.empty()) return Activate(worker);
  worker->call = Call::kState;
}

void Recovery::LeaveHandover(const WorkerPtr& worker, const Stage& stage) {
  const auto& what = worker->plan.handovers[worker->handover++].result;
  const bool lacking = worker->has_state && worker->log.next_number() <= what.response.number;
  if (lacking) {
    Retained handed{what.response, {}};
    if (!what.parts.empty()) {
      handed.parts.push_back(
          {stage.given[static_cast<std::size_t>(stage.giver)].result, sizeof(std::uint64_t), {}});
    }
    ++parts_.journal.coverage().handed_over;
    parts_.publish(worker, worker->log.Keep(std::move(handed)));
  }
  NextHandover(worker);
}

void Recovery::TakeState(const WorkerPtr& worker, const Stage& stage) {
  if (worker->has_state) return;
  const Given& donor = stage.given[static_cast<std::size_t>(stage.giver)];
  if (donor.done != 0)
    parts_.journal.Fail("torn: " + parts_.pods.NameOf(*worker) + " gets the state of " +
                        std::to_string(donor.done) + " operations after step " +
                        std::to_string(donor.step));
  worker->has_state = true;
  worker->held = worker->epoch;
  worker->log.Restart(worker->plan.next_number);
  worker->step = static_cast<std::int64_t>(worker->plan.step);
  worker->done = 0;
  worker->model = donor.model;
  worker->holds = donor.holds;
  worker->recent.clear();
}

void Recovery::Activate(const WorkerPtr& worker) {
  const membership::View& view = *worker->view;
  Ring& ring = parts_.views.Of(worker->epoch).ring;
  const Given given = GivenBy(*worker);
  if (ring.start) parts_.invariants.agreement().CheckSame(*ring.start, given, view.epoch);
  if (!ring.start) ring.start = given;
  worker->call = Call::kVote;
  worker->detached = worker->busy = false;
  worker->phase = Phase::kActive;
  if (!view.train && worker->plan.all_at_boundary) return parts_.reach_boundary(worker);
  worker->entered = true;
  worker->user_waits = worker->standing = false;
}

}  // namespace ringmaster::app::sim
