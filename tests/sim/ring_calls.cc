#include "tests/sim/ring_calls.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ringmaster::app::sim {
namespace {

using engine::Kind;
using engine::Retained;

constexpr int kSlow = 120;           // per thousand: rings whose calls take their time
constexpr int kLostWithGiver = 400;  // what one has given that is gone now has not come
constexpr std::size_t kRecentKept = 16;

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  a = (a ^ (b + 0x9E3779B97F4A7C15ull + (a << 6) + (a >> 2))) * 0xBF58476D1CE4E5B9ull;
  return a ^ (a >> 29);
}

std::shared_ptr<engine::Buffer> BufferOf(std::uint64_t value) {
  auto buffer = engine::Buffer::Make(sizeof value);
  std::memcpy(buffer->data(), &value, sizeof value);
  return buffer;
}

std::uint64_t ValueOf(const std::shared_ptr<engine::Buffer>& buffer) {
  std::uint64_t value = 0;
  std::memcpy(&value, buffer->data(), sizeof value);
  return value;
}

engine::Response ResponseOf(Kind kind, std::uint64_t number) {
  engine::Request request;
  request.name = engine::KindName(kind);
  request.kind = kind;
  engine::Response response = engine::Response::Of({std::move(request)});
  response.number = number;
  return response;
}

Retained ResultOf(Kind kind, std::uint64_t number, std::shared_ptr<engine::Buffer> value) {
  Retained result{ResponseOf(kind, number), {}};
  result.parts.push_back({std::move(value), sizeof(std::uint64_t), {}});
  return result;
}

int RankIn(const membership::View& view, const std::string& uid, const Worker& worker) {
  return view.FindRank(uid, static_cast<std::uint32_t>(worker.slot), worker.incarnation);
}

}  // namespace

// ---- On the way

// The ranks go through calls until each of them waits for its script again.
void RingCalls::Go(Ring* ring, const std::vector<WorkerPtr>& ranks) {
  ring->slow = parts_.plan.waits() || parts_.random.Chance(kSlow);
  for (const WorkerPtr& worker : ranks) {
    worker->busy = true;
    if (ring->slow) AdvanceSoon(worker);
  }
  bool moved = !ring->slow;
  while (std::exchange(moved, false) && !parts_.journal.failed()) {
    for (const WorkerPtr& worker : ranks) moved = (worker->busy && Advance(worker)) || moved;
  }
}

void RingCalls::AdvanceSoon(const WorkerPtr& worker) {
  const Micros delay = parts_.random.Chance(150) ? parts_.random.Between(5 * kMs, 120 * kMs)
                                                 : parts_.random.Between(50, 3 * kMs);
  parts_.time.After(delay, [this, worker, turn = worker->turn] {
    parts_.pods.ToWorker(worker, [this, worker, turn] {
      if (worker->turn == turn && worker->busy) Advance(worker);
    });
  });
}

// What could not get through may do so now.
void RingCalls::Retry(const std::vector<WorkerPtr>& ranks) {
  for (const WorkerPtr& worker : ranks) {
    if (worker->busy && worker->in_call) AdvanceSoon(worker);
  }
}

// One move. False: the rank waits for others.
bool RingCalls::Advance(const WorkerPtr& worker) {
  Ring& ring = parts_.views.Of(worker->epoch).ring;
  if (!worker->in_call) {
    EnterCall(worker);
    if (parts_.journal.failed()) return false;
    const Stage& stage = ring.stages[worker->place];
    if (!ring.slow || !stage.ready) return true;
    // All that it needed: those that have been waiting, or this one alone.
    for (const WorkerPtr& other : parts_.pods.RanksOf(*worker->view)) {
      const bool waits = InView(other, worker->epoch) && other->busy && other->in_call &&
                         other->place == worker->place;
      if (waits) AdvanceSoon(other);
    }
    return true;
  }
  if (!MayLeave(worker, &ring.stages[worker->place])) return false;
  if (ring.slow) StrikeRing(worker);
  worker->in_call = false;
  const Stage stage = ring.stages[worker->place++];
  LeaveCall(worker, stage);
  if (ring.slow && worker->busy) AdvanceSoon(worker);
  return true;
}

void RingCalls::EnterCall(const WorkerPtr& worker) {
  const membership::View& view = *worker->view;
  // Nobody has said that it counts, so it never will.
  if (worker->call == Call::kVote) worker->log.DropPrepared();
  Given given = GivenBy(*worker);
  Stage call{worker->call, given.number};
  if (call.call == Call::kExchange || call.call == Call::kState || call.call == Call::kLoaded)
    call.number = 0;
  if (call.call == Call::kState) call.giver = worker->plan.donor;
  if (call.call == Call::kExchange) given.holding = parts_.recovery.HoldingOf(*worker);
  const int rank = RankIn(view, parts_.pods[worker->pod]->uid, *worker);
  if (call.call == Call::kHandover) {
    const auto& handover = worker->plan.handovers[worker->handover];
    call.number = handover.result.response.number;
    call.giver = handover.holder;
    const Retained* kept = worker->log.Find(call.number);
    if (rank == call.giver && kept == nullptr)
      return parts_.journal.Fail("I4: " + parts_.pods.NameOf(*worker) + " is to hand operation " +
                                 std::to_string(call.number) + " over and has not kept it");
    if (rank == call.giver && !kept->parts.empty()) given.result = kept->parts.front().data;
  }
  Ring& ring = parts_.views.Of(worker->epoch).ring;
  if (ring.stages.size() == worker->place) {
    ring.stages.push_back(call);
    ring.stages.back().given.resize(view.ranks.size());
  }
  Stage& stage = ring.stages[worker->place];
  if (stage.call != call.call || stage.number != call.number || stage.giver != call.giver) {
    return parts_.journal.Fail("I4: in " + membership::EpochText(view.epoch) + " " +
                               parts_.pods.NameOf(*worker) + " comes to call " +
                               std::to_string(static_cast<int>(call.call)) + " for operation " +
                               std::to_string(call.number) + " while others are in call " +
                               std::to_string(static_cast<int>(stage.call)) + " for operation " +
                               std::to_string(stage.number));
  }
  worker->in_call = true;
  stage.given[static_cast<std::size_t>(rank)] = std::move(given);
  const bool was_ready = stage.ready;
  stage.ready = stage.giver >= 0 ? stage.given[static_cast<std::size_t>(stage.giver)].there
                                 : std::all_of(stage.given.begin(), stage.given.end(),
                                               [](const Given& part) { return part.there; });
  if (was_ready || !stage.ready) return;
  if (stage.call == Call::kVote) parts_.invariants.CheckVote(stage, view);
  if (stage.call == Call::kReduce) Reduce(&stage, view);
}

// What others have given before they died or gave the view up may have come, or not.
bool RingCalls::MayLeave(const WorkerPtr& worker, Stage* stage) {
  if (!stage->ready) return false;
  if (!parts_.views.Of(worker->epoch).ring.slow) return true;
  bool gone = false;
  const membership::View& view = *worker->view;
  const std::vector<WorkerPtr> ranks = parts_.pods.RanksOf(view);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (stage->giver >= 0 && static_cast<std::size_t>(stage->giver) != r) continue;
    const bool in = InView(ranks[r], worker->epoch) && ranks[r]->phase != Phase::kBroken;
    if (in && !parts_.network.BothWays(worker->pod, ranks[r]->pod)) return false;
    gone = gone || !in;
  }
  if (!gone) return true;
  const int rank = RankIn(view, parts_.pods[worker->pod]->uid, *worker);
  std::optional<bool>& lost = stage->given[static_cast<std::size_t>(rank)].lost;
  if (!lost) lost = parts_.random.Chance(kLostWithGiver);
  return !*lost;
}

void RingCalls::LeaveCall(const WorkerPtr& worker, const Stage& stage) {
  switch (stage.call) {
    case Call::kExchange:
      return parts_.recovery.LeaveExchange(worker, stage);
    case Call::kHandover:
      return parts_.recovery.LeaveHandover(worker, stage);
    case Call::kState:
      parts_.recovery.TakeState(worker, stage);
      worker->call = Call::kLoaded;
      return;
    case Call::kLoaded:
      return parts_.recovery.Activate(worker);
    case Call::kVote:
      return LeaveVote(worker, stage);
    case Call::kReduce:
      return LeaveReduction(worker, stage);
    case Call::kConfirm:
      worker->ran = worker->epoch;
      Publish(worker, worker->log.AppendConfirmed(*std::exchange(worker->executed, {})));
      return NextOperation(worker);
  }
}

// It is out of the view, or the view has failed under it.
void RingCalls::Interrupt(Worker* worker) {
  ++worker->turn;
  if (worker->busy) ++parts_.journal.coverage().interrupted;
  if (worker->executed) {
    worker->log.Prepare(*std::exchange(worker->executed, {}));
    ++parts_.journal.coverage().unconfirmed;
  }
  worker->in_call = worker->busy = false;
}

// ---- Operations

void RingCalls::LeaveVote(const WorkerPtr& worker, const Stage& stage) {
  worker->log.Trim();  // all have come to this vote, so all have finished what came before
  worker->agreed = parts_.script.AskedFor(worker->done);
  worker->armed_round = std::all_of(stage.given.begin(), stage.given.end(),
                                    [](const Given& given) { return given.armed; });
  NextOperation(worker);
}

void RingCalls::NextOperation(const WorkerPtr& worker) {
  worker->call = Call::kVote;
  if (!worker->busy || worker->agreed == 0) return;
  --worker->agreed;
  worker->call = Call::kReduce;
  if (!parts_.script.EndsStep(worker->done)) return;
  // The vote was all that there is to it.
  worker->call = Call::kVote;
  worker->ran = worker->epoch;
  Retained ended{ResponseOf(Kind::kStepEnd, worker->log.next_number()), {}};
  ended.response.armed = worker->armed_round;
  Publish(worker, worker->log.Append(std::move(ended)));
}

// All ranks have given their part: this is what those get that leave the call.
void RingCalls::Reduce(Stage* stage, const membership::View& view) {
  std::uint64_t value = stage->number;
  std::string givers;
  for (const Given& given : stage->given) {
    const auto who = static_cast<std::uint64_t>(given.pod) << 40 |
                     static_cast<std::uint64_t>(given.slot) << 32 | given.incarnation;
    value = Mix(Mix(value, who), Mix(given.model, static_cast<std::uint64_t>(given.step)));
    givers += " " + NameOf(given);
  }
  stage->result = BufferOf(value);
  const std::string origin = "made in " + membership::EpochText(view.epoch) + " of" + givers;
  parts_.journal.coverage().repeated +=
      parts_.invariants.agreement().Reduced(stage->number, value, origin) ? 1 : 0;
  parts_.journal.Trace([&] { return "operation " + std::to_string(stage->number) + " " + origin; });
}

void RingCalls::LeaveReduction(const WorkerPtr& worker, const Stage& stage) {
  Retained result = ResultOf(parts_.script.Next(worker->done), stage.number, stage.result);
  if (result.response.needs_confirmation()) {
    worker->executed = std::move(result);
    worker->call = Call::kConfirm;
    return;
  }
  worker->ran = worker->epoch;
  Publish(worker, worker->log.Append(std::move(result)));
  NextOperation(worker);
}

// The script gets a result: one of its own ring, or one that was handed over.
void RingCalls::Publish(const WorkerPtr& worker, const engine::Retained& result) {
  const std::uint64_t number = result.response.number;
  const bool end = result.response.kind() == Kind::kStepEnd;
  const std::uint64_t value = end ? number : ValueOf(result.parts.front().data);
  worker->model = Mix(worker->model, Mix(number, value));
  worker->recent[number] = value;
  if (worker->recent.size() > kRecentKept) worker->recent.erase(worker->recent.begin());
  if (result.response.kind() != parts_.script.Next(worker->done)) {
    parts_.journal.Fail("I4: the script of " + parts_.pods.NameOf(*worker) +
                        " waits for operation " + std::to_string(worker->done) + " of step " +
                        std::to_string(worker->step + 1) + " and gets operation " +
                        std::to_string(number) + ", which is another");
  }
  ++worker->done;
  if (end) EndStep(worker, result.response.armed);
  if (!std::exchange(worker->rebuild_pending, false)) return;
  const bool waits = worker->done > 0 && parts_.script.AsksForEnd(worker->done);
  parts_.links.SendFrom(worker, {{"t", "rebuilt"},
                                 {"epoch", worker->epoch},
                                 {"step", worker->step},
                                 {"resumed", worker->step + (waits ? 1 : 0)},
                                 {"seconds", {{"stop", 0.001}}}});
}

void RingCalls::EndStep(const WorkerPtr& worker, bool armed) {
  ++worker->step;
  worker->done = 0;
  worker->holds = true;
  // In a recovery the boundary is released when that is over: a fault cancels the plan.
  worker->standing = armed || worker->phase != Phase::kActive;
  if (worker->phase != Phase::kActive) return;
  worker->busy = false;
  if (armed) ReachBoundary(worker);
}

// A fault that has waited for this moment.
void RingCalls::StrikeRing(const WorkerPtr& worker) {
  if (const FaultPlan::Strike strike = parts_.plan.Take())
    parts_.time.After(0, [strike, pod = worker->pod] { strike(pod); });
}

void RingCalls::ReachBoundary(const WorkerPtr& worker) {
  worker->boundary_epoch = worker->epoch;
  worker->boundary_step = worker->step;
  parts_.links.SendFrom(worker,
                        {{"t", "boundary"}, {"epoch", worker->epoch}, {"step", worker->step}});
}

}  // namespace ringmaster::app::sim
