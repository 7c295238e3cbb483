#include "collectives/engine/engine_loop.h"

#include <algorithm>
#include <new>
#include <utility>

#include "collectives/engine/cpu_backend.h"
#include "collectives/engine/state_transfer.h"

namespace ringmaster::engine {
namespace {

// The shortest and the longest time after which a rank that has asked for nothing enters a round
// all the same, because other ranks may wait for it.
constexpr std::chrono::milliseconds kIdleAtLeast{50}, kIdleAtMost{5000};

uint64_t BytesOf(const Retained& result) {
  uint64_t bytes = 0;
  for (const Part& part : result.parts) bytes += part.bytes;
  return bytes;
}

// After it a rank means another worker within a step: the broadcast failed because the worker that
// it meant is gone, and the scripts go on with those that are left; or the scripts begin again. All
// ranks execute it between the same operations, so their calls mean the same before and after.
bool RenamesRanks(const Response& response) {
  const Request& request = response.requests.front();
  if (request.name == kWakeName) return response.error == RM_OK;
  return response.error == RM_ERR_ROOT_LOST && request.kind != Kind::kTransfer &&
         request.process_set == 0;
}

bool HasCome(const std::optional<EngineLoop::Clock::time_point>& due) {
  return due && *due <= EngineLoop::Clock::now();
}

}  // namespace

EngineLoop::EngineLoop(EngineOptions options, Inbox* inbox, UserTasks* users, EngineInfo* info,
                       HostCommunicator* host)
    : options_(std::move(options)),
      inbox_(inbox),
      users_(users),
      info_(info),
      connection_(host, options_.communicators, options_.listener),
      participation_(options_.has_state, info),
      asked_(inbox, users, &info->work),
      pipeline_(options_.make_backend ? options_.make_backend()
                                      : std::make_unique<CpuBackend>(options_.direct),
                options_.fusion_bytes, &asked_.pending()),
      gate_(&connection_, options_.listener, users, info),
      stalls_(options_.stall),
      trace_(options_.timeline) {}

void EngineLoop::Run() {
  for (bool open = true; open;) {
    Messages messages;
    try {
      messages = Await();
      open = Turn(messages);
    } catch (const std::bad_alloc&) {
      // This worker can't go on; the others learn of it when its process exits.
      const Status why(RM_ERR_OUT_OF_MEMORY, "no memory to agree with the other ranks");
      for (const auto& operation : messages.submitted) operation->Complete(why);
      End(why);
    }
  }
  End({RM_ERR_SHUTDOWN, "the library was shut down"});
}

bool EngineLoop::Turn(const Messages& messages) {
  if (messages.end) End(*messages.end);
  if (messages.stop) HandleStop(messages);
  if (messages.dropped) Detach(*messages.dropped);
  gate_.Obey(messages.armed);
  const auto check = [this](int32_t set) { return pipeline_.CheckSet(set); };
  if (asked_.Take(messages.submitted, check)) rounds_.Submitted();
  if (messages.close) return false;
  if (messages.view) Install(*messages.view, messages.view_at);
  if (HasCome(RoundDue())) Round();
  return true;
}

// ---- What was posted

Messages EngineLoop::Await() {
  const auto due = RoundDue();
  if (HasCome(due)) {
    info_->busy = true;
    return inbox_->Take();
  }
  info_->busy = !connection_.active();
  Messages messages = inbox_->Wait(due);
  info_->busy = true;
  return messages;
}

void EngineLoop::HandleStop(const Messages& messages) {
  const uint64_t epoch = *messages.stop;
  if (connection_.Stop(epoch)) {
    LeaveView();
    rebuild_.Stopped(messages.stop_at, Clock::now());
  }
  options_.listener->OnStopped(epoch);
}

void EngineLoop::End(const Status& why) {
  LeaveView();
  asked_.End(why);
  gate_.Fail(why);
}

void EngineLoop::Detach(const std::string& why) {
  LeaveView();
  connection_.Forgo();
  if (!participation_.Drop()) return;  // still waits to be in a view
  pipeline_.DropResults();
  asked_.Drop(why);
  gate_.Fail({RM_ERR_DROPPED, why});
}

// ---- A round

std::optional<EngineLoop::Clock::time_point> EngineLoop::RoundDue() const {
  if (!connection_.active() || gate_.waits() || inbox_->refusals().rests()) return std::nullopt;
  // A round needs all ranks. Where operations of some ranks are possible (process sets, transfers),
  // a rank with nothing pending must enter rounds, too, or those that have something wait for it.
  const bool wanted = !asked_.idle() || pipeline_.sets().HasOutsiders();
  if (wanted) return rounds_.urgent() ? Clock::time_point::min() : rounds_.due();
  if (stalls_.on() && connection_.view().size() > 1)
    return rounds_.IdleDue(std::clamp(options_.stall.tell / 4, kIdleAtLeast, kIdleAtMost));
  // Two other ranks may want the job's first transfer, of which nobody else knows before a round.
  return connection_.view().size() > 2 ? std::optional(rounds_.IdleDue(kIdleAtMost)) : std::nullopt;
}

void EngineLoop::Round() {
  options_.Reach(FaultPoint::kBeforeNegotiation, pipeline_.next_number());
  rounds_.Begin(Clock::now());
  trace_.RoundBegins();
  RoundResult result;
  const auto long_ago = stalls_.LongAgo(Clock::now());
  if (Status s = pipeline_.Agree(gate_.closes(), long_ago, &result); !s.ok()) return Break(s);
  trace_.RoundEnds(result);
  options_.Reach(FaultPoint::kAfterNegotiation, pipeline_.next_number());

  if (result.responses.empty() && !result.anything_new) {
    rounds_.Fruitless(Clock::now());
  } else {
    rounds_.Fruitful();
  }
  bool stands = false;  // this round has brought all ranks to the boundary of a planned change
  for (Response& response : result.responses) {
    const bool shuts = response.error == RM_OK && response.kind() == Kind::kShutdown;
    // A rank that stands at the boundary must be let go before it rests. So the shutdown stays
    // pending on all ranks, and they agree on it anew when the gate has opened.
    if (shuts && stands) continue;
    stands = stands || (response.error == RM_OK && response.armed);
    if (Status s = Execute(std::move(response)); !s.ok()) return Break(s);
    if (shuts) return;  // it was the round's last operation, and all that was pending has failed
  }
  if (stalls_.Update(result.unanswered, connection_.view().self, Clock::now())) {
    options_.listener->OnStalls(stalls_.stalls(), true);
  }
  // The others learn of it when this worker's process exits.
  if (!stalls_.give_up().empty()) End({RM_ERR_TIMEOUT, stalls_.give_up()});
}

Status EngineLoop::Execute(Response response) {
  const uint64_t number = pipeline_.next_number();
  options_.Reach(FaultPoint::kBeforeExecute, number);
  trace_.OperationBegins(response, asked_.pending());
  info_->work.Runs(Clock::now());
  const Retained* result = nullptr;
  if (Status s = pipeline_.Execute(std::move(response), &result); !s.ok()) {
    info_->work.Ran(Clock::now(), 0, true);
    return s;
  }
  options_.Reach(FaultPoint::kAfterExecute, number);
  info_->ran_epoch = connection_.view().epoch;
  trace_.OperationEnds(result->response);
  const uint64_t bytes = BytesOf(*result);
  Finish(*result);
  info_->work.Ran(Clock::now(), bytes, !asked_.idle());
  options_.Reach(FaultPoint::kAfterPublish, number);
  return {};
}

void EngineLoop::Finish(const Retained& result, bool handed_over) {
  const Response& response = result.response;
  if (response.error == RM_OK && response.kind() == Kind::kShutdown) {
    FinishShutdown(handed_over);
    return rebuild_.Rest(Clock::now());
  }
  asked_.FreeNames(response);
  if (!handed_over && RenamesRanks(response)) gate_.Rename();
  Publish(result);
  if (response.error == RM_OK && response.kind() == Kind::kStepEnd) EndStep(response.armed);
  if (!rebuild_.pending()) return;
  const RebuildTimes& times = rebuild_.Resumed(Clock::now());
  info_->SetLastRebuild(times);
  trace_.Rebuilt(times);
  // If this rank's step_end is pending, the interrupted step will be completed here: by hand-over,
  // or because it is agreed on once more. The survivors go on from there.
  const bool ends = asked_.pending().Find(kStepEndName) != nullptr;
  options_.listener->OnRebuilt(times, gate_.step(), gate_.step() + (ends ? 1 : 0));
}

void EngineLoop::Publish(const Retained& result) {
  const auto left_over = pipeline_.ApplySets(result);
  const Kind kind = result.response.kind();
  if (kind == Kind::kAddSet || kind == Kind::kRemoveSet) {
    info_->SetSets(pipeline_.sets().sets());
  }
  pipeline_.Publish(result);
  asked_.FailLeftOver(left_over);
}

// The rank stays in its view and takes part in every recovery, so that the script can begin again.
void EngineLoop::FinishShutdown(bool handed_over) {
  // The barrier keeps every process alive until all ranks know of the shutdown. If a death breaks
  // it, the ranks that don't know yet are handed the shutdown over in the next view, or hear that
  // the job is over.
  if (!handed_over) (void)connection_.communicator()->Barrier();
  options_.listener->OnShutDown(connection_.view().epoch);
  if (stalls_.Clear()) options_.listener->OnStalls({}, false);
  const auto operation = asked_.pending().Take(kShutdownName);
  pipeline_.Void();
  info_->SetSets({});
  asked_.Rest({RM_ERR_SHUTDOWN, "all ranks have called rm_shutdown"});
  if (operation != nullptr) operation->Complete({});
}

void EngineLoop::EndStep(bool armed) {
  gate_.Reach(asked_.pending().Take(kStepEndName));
  trace_.StepEnds(gate_.step());
  // In a recovery it is Enter() that opens the gate, or leaves it closed.
  if (!connection_.active()) return;
  if (!armed) return gate_.Open();
  options_.Reach(FaultPoint::kAtBoundary, gate_.step());
  gate_.Tell();
}

void EngineLoop::Break(const Status& why) {
  if (inbox_->refusals().refused()) return;  // this worker's part in the job has ended already
  rebuild_.Broke(Clock::now());
  if (!connection_.Break(why)) End(why);
}

// ---- A new view

void EngineLoop::Install(WorkerView view, Clock::time_point since) {
  if (!connection_.Takes(view.epoch) || inbox_->refusals().refused()) return;
  if (view.self < 0) {
    connection_.PassBy(view.epoch);
    return Detach(GoesOnWithout(view));
  }

  const bool first = !participation_.entered();
  participation_.ListIn(view);
  rebuild_.Begin(since);
  gate_.set_synced(false);
  LeaveView();
  if (Status s = connection_.Connect(std::move(view)); !s.ok()) return Break(s);
  const WorkerView& in = connection_.view();
  pipeline_.Install(connection_.communicator(), in.workers, in.planned);
  rebuild_.Connected(in.epoch, in.reason, Clock::now() - since);
  info_->SetMembership(MembershipOf(in), in.workers);
  options_.listener->OnInstalled(in.epoch, rebuild_.connect_seconds());

  const auto redo_begin = Clock::now();
  RecoveryPlan plan;
  options_.Reach(FaultPoint::kBeforeExchange);
  if (Status s = Recover(&plan); !s.ok()) return Break(s);
  const auto now = Clock::now();
  rebuild_.Redone(now, now - redo_begin, first);
  Enter(plan);
}

// Brings all ranks to the same point: a result that some ranks have and others lack is handed over,
// and an operation that nobody has executed stays pending and runs again. Each hand-over leaves a
// rank with a valid, longer prefix of the sequence of operations, so that a recovery which a death
// interrupts can simply begin again in the next view.
Status EngineLoop::Recover(RecoveryPlan* plan) {
  gate_.Obey(inbox_->TakeArmed());  // the sidecar's order may have come behind the view
  const Holding mine{participation_.has_state(),
                     gate_.waits(),
                     pipeline_.next_number(),
                     gate_.step(),
                     pipeline_.Holdings(),
                     pipeline_.sets(),
                     options_.fusion_bytes,
                     gate_.ranks().epoch,
                     gate_.armed() && participation_.entered()};
  std::vector<Holding> by_rank;
  if (Status s = ExchangeHoldings(connection_.communicator(), mine, &by_rank); !s.ok()) return s;
  trace_.ViewBegins(connection_.view());
  if (Status s = PlanRecovery(by_rank, plan); !s.ok()) return s;
  pipeline_.SetFusionBytes(plan->fusion_bytes);
  options_.Reach(FaultPoint::kAfterExchange);
  if (plan->names_ranks >= 0) {
    StepRanks ranks = gate_.ranks();
    if (Status s = ShareStepRanks(connection_.communicator(), plan->names_ranks, &ranks); !s.ok())
      return s;
    gate_.Adopt(std::move(ranks));
  }
  for (const auto& handover : plan->handovers) {
    const Retained* lacked = nullptr;
    if (Status s = pipeline_.HandOver(handover, participation_.has_state(), &lacked); !s.ok())
      return s;
    if (lacked != nullptr) Finish(*lacked, /*handed_over=*/true);
    options_.Reach(FaultPoint::kAfterHandover, handover.result.response.number);
    if (inbox_->refusals().refused())
      return {RM_ERR_EPOCH_MOVED, "this worker's part in the job has ended"};
  }
  rounds_.Restart();
  if (plan->joiners.empty()) return {};
  if (Status s = SyncState(*plan); !s.ok()) return s;
  options_.Reach(FaultPoint::kAfterSync);
  return {};
}

Status EngineLoop::SyncState(const RecoveryPlan& plan) {
  StateTransfer transfer(connection_.communicator(), options_.state, users_,
                         {plan.donor, participation_.has_state(), options_.user_patience});
  if (Status s = transfer.Run(); !s.ok()) return s;
  if (transfer.loaded().code() == RM_ERR_TIMEOUT) return Abandon(transfer.loaded());
  if (!participation_.has_state() && transfer.loaded().ok()) {
    participation_.GetState(connection_.view().epoch);
    pipeline_.Restart(plan.next_number, plan.sets);
    info_->SetSets(plan.sets.sets());
    gate_.Restart(plan.step);
  }
  if (Status s = transfer.AwaitAll(); !s.ok()) return s;
  if (!participation_.has_state()) return transfer.loaded();
  gate_.set_synced(transfer.saved().ok());
  return {};
}

// The others stand at the boundary until this worker has the state. They are let go by the end of
// the view, in whose successor this worker is not.
Status EngineLoop::Abandon(const Status& why) {
  End({RM_ERR_DROPPED,
       "this worker was let into the job when it had given up waiting for that, so "
       "the others went on without it: start again (" +
           why.message() + ")"});
  options_.listener->OnAbandoned(connection_.view().epoch);
  return {RM_ERR_EPOCH_MOVED, "this worker's part in the job has ended"};
}

void EngineLoop::Enter(const RecoveryPlan& plan) {
  connection_.Activate();
  participation_.TakeBack();
  inbox_->Resume();
  if (inbox_->refusals().rests()) rebuild_.Rest(Clock::now());
  // If all ranks stand at a boundary they stay there where the view doesn't train, because it is
  // below minReplicas, and where a planned change is to happen in it. A change that was planned in
  // the view before is cancelled by the fault.
  const bool stays = !connection_.view().train || plan.all_armed;
  if (plan.all_at_boundary && stays) return gate_.Tell();
  if (plan.ranks_follow_views) gate_.Rename();
  gate_.Open(plan.names_ranks >= 0);  // before the user that waits to be let in goes on
  participation_.Enter();
  info_->work.Begin(Clock::now());
  if (asked_.idle()) info_->work.Clear(Clock::now());
  users_->Notify();
}

void EngineLoop::LeaveView() {
  if (stalls_.Clear()) options_.listener->OnStalls({}, false);
  pipeline_.Uninstall();
  connection_.Leave();
}

}  // namespace ringmaster::engine
