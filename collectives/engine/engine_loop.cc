#include "collectives/engine/engine_loop.h"

#include <algorithm>
#include <new>
#include <utility>

#include "collectives/engine/cpu_backend.h"
#include "collectives/engine/state_transfer.h"

namespace ringmaster::engine {
namespace {

// Long: a rank that can't be reached is the membership protocol's to find out, and its stop ends
// the attempt.
constexpr std::chrono::seconds kConnectTimeout{60};
// How often a rank that has nothing to ask for looks whether others wait for it.
constexpr std::chrono::milliseconds kIdleAtLeast{50}, kIdleAtMost{5000};

uint64_t BytesOf(const Retained& result) {
  uint64_t bytes = 0;
  for (const Part& part : result.parts) bytes += part.bytes;
  return bytes;
}

}  // namespace

EngineLoop::EngineLoop(EngineOptions options, Inbox* inbox, UserTasks* users, EngineInfo* info,
                       HostCommunicator* host)
    : options_(std::move(options)),
      inbox_(inbox),
      users_(users),
      info_(info),
      host_(host),
      has_state_(options_.has_state),
      pipeline_(options_.make_backend ? options_.make_backend()
                                      : std::make_unique<CpuBackend>(options_.direct),
                options_.fusion_bytes),
      stalls_(options_.stall),
      trace_(options_.timeline) {}

void EngineLoop::Run() {
  for (bool open = true; open;) {
    Messages messages;
    try {
      messages = Await();
      open = Turn(messages);
    } catch (const std::bad_alloc&) {
      // This worker can't go on, and its exit tells the others.
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
  HandleArmed(messages);
  HandleSubmitted(messages);
  if (messages.close) return false;
  if (messages.view) Install(*messages.view, messages.view_at);
  if (WantsRound()) Round();
  return true;
}

// ---- What was posted

Messages EngineLoop::Await() {
  if (WantsRound()) {
    info_->busy = true;
    return inbox_->Take();
  }
  info_->busy = phase_ != Phase::kActive;
  Messages messages = inbox_->Wait(RoundDue());
  info_->busy = true;
  return messages;
}

void EngineLoop::HandleStop(const Messages& messages) {
  const uint64_t epoch = *messages.stop;
  stopped_epoch_ = std::max(stopped_epoch_, epoch);
  if (view_.epoch <= epoch) {
    LeaveView();
    rebuild_.Stopped(Clock::now() - messages.stop_at);
  }
  options_.listener->OnStopped(epoch);
}

void EngineLoop::HandleArmed(const Messages& messages) {
  for (const auto& [epoch, armed] : messages.armed) {
    const bool runs = epoch == view_.epoch && phase_ == Phase::kActive;
    if (armed) {
      boundary_.Arm(epoch);
      // A worker that stands there already says so again: its first word may have been lost.
      const bool stands = boundary_.standing() || !info_->entered;
      if (runs && stands) options_.listener->OnBoundary(epoch, boundary_.step());
    } else if (boundary_.Disarm(epoch)) {
      // All stand at the boundary, so each may go on by itself.
      if (runs && view_.train) ReleaseBoundary();
    }
  }
}

void EngineLoop::HandleSubmitted(const Messages& messages) {
  if (messages.submitted.empty()) return;
  const std::optional<Status> refused = inbox_->Refusal();
  for (const auto& operation : messages.submitted) {
    const Status set = pipeline_.CheckSet(operation->request.process_set);
    if (refused) {
      operation->Complete(*refused);
    } else if (!set.ok()) {
      inbox_->Forget(operation->request.name);
      operation->Complete(set);
    } else {
      pipeline_.Add(operation);
      rounds_.Submitted();
    }
  }
  if (!pipeline_.idle()) info_->work.Asked(Clock::now());
  users_->Notify();
}

void EngineLoop::End(const Status& why) {
  inbox_->Refuse(why);
  LeaveView();
  for (auto& operation : pipeline_.TakeAll()) operation->Complete(why);
  info_->work.Clear(Clock::now());
  boundary_.Fail(why);
  users_->Notify();
}

// ---- A round

bool EngineLoop::MayRound() const {
  return phase_ == Phase::kActive && !boundary_.standing() && info_->entered;
}

std::optional<EngineLoop::Clock::time_point> EngineLoop::RoundDue() const {
  if (!MayRound()) return std::nullopt;
  // A round needs all ranks: where there are process sets, those that have nothing pending come
  // too, or a set would wait for ranks that have no part in it.
  const bool wanted = !pipeline_.idle() || !pipeline_.sets().sets().empty();
  if (wanted) return rounds_.urgent() ? Clock::time_point::min() : rounds_.due();
  if (!stalls_.on() || view_.size() == 1) return std::nullopt;
  return rounds_.IdleDue(std::clamp(options_.stall.tell / 4, kIdleAtLeast, kIdleAtMost));
}

bool EngineLoop::WantsRound() const {
  const auto due = RoundDue();
  return due && *due <= Clock::now();
}

void EngineLoop::Round() {
  options_.Reach(FaultPoint::kBeforeNegotiation, pipeline_.next_number());
  rounds_.Begin(Clock::now());
  trace_.RoundBegins();
  RoundResult result;
  // Below minReplicas every step is the last one until the job has enough workers again.
  const bool armed = boundary_.armed(view_.epoch) || !view_.train;
  const auto long_ago = stalls_.LongAgo(Clock::now());
  if (Status s = pipeline_.Agree(armed, long_ago, &result); !s.ok()) return Break(s);
  trace_.RoundEnds(result);
  options_.Reach(FaultPoint::kAfterNegotiation, pipeline_.next_number());

  if (result.responses.empty() && !result.anything_new) {
    rounds_.Fruitless(Clock::now());
  } else {
    rounds_.Fruitful();
  }
  for (Response& response : result.responses) {
    if (Status s = Execute(std::move(response)); !s.ok()) return Break(s);
    if (phase_ != Phase::kActive) return;  // shut down
  }
  TellStalls(result.unanswered);
}

void EngineLoop::TellStalls(const std::vector<Unanswered>& waiting) {
  if (stalls_.Update(waiting, view_.self, Clock::now())) {
    options_.listener->OnStalls(stalls_.stalls(), true);
  }
  // The exit of this worker tells the others.
  if (!stalls_.give_up().empty()) End({RM_ERR_TIMEOUT, stalls_.give_up()});
}

Status EngineLoop::Execute(Response response) {
  const uint64_t number = pipeline_.next_number();
  options_.Reach(FaultPoint::kBeforeExecute, number);
  trace_.OperationBegins(response, pipeline_.pending());
  info_->work.Runs(Clock::now());
  const Retained* result = nullptr;
  if (Status s = pipeline_.Execute(std::move(response), &result); !s.ok()) {
    info_->work.Ran(Clock::now(), 0, true);
    return s;
  }
  options_.Reach(FaultPoint::kAfterExecute, number);
  info_->ran_epoch = view_.epoch;
  trace_.OperationEnds(result->response);
  const uint64_t bytes = BytesOf(*result);
  Finish(*result);
  info_->work.Ran(Clock::now(), bytes, !pipeline_.idle());
  options_.Reach(FaultPoint::kAfterPublish, number);
  return {};
}

// The second half of an operation, whether it was executed here or handed over.
void EngineLoop::Finish(const Retained& result) {
  const Response& response = result.response;
  if (response.error == RM_OK && response.kind() == Kind::kShutdown) return FinishShutdown(result);
  inbox_->Forget(response);
  Publish(result);
  if (response.error == RM_OK && response.kind() == Kind::kStepEnd) EndStep(response.armed);
  if (!rebuild_.pending()) return;
  const RebuildTimes& times = rebuild_.Resumed(Clock::now());
  info_->SetLastRebuild(times);
  trace_.Rebuilt(times);
  // That a step was completed means that all had called step_end: so if ours waits, it will be done
  // here too, by hand-over or once more.
  const uint64_t step = boundary_.step();
  options_.listener->OnRebuilt(times, step, step + (pipeline_.IsPending(kStepEndName) ? 1 : 0));
}

void EngineLoop::Publish(const Retained& result) {
  const auto left_over = pipeline_.ApplySets(result);
  const Kind kind = result.response.kind();
  if (kind == Kind::kAddSet || kind == Kind::kRemoveSet) {
    info_->SetSets(pipeline_.sets().sets());
  }
  pipeline_.Publish(result);
  for (const auto& operation : left_over) {
    inbox_->Forget(operation->request.name);
    operation->Complete(
        {RM_ERR_INVALID, "'" + operation->request.name + "': its process set has been removed"});
  }
}

void EngineLoop::FinishShutdown(const Retained& result) {
  // Nobody leaves before all know. If the barrier fails, another rank knows it and has gone.
  (void)host_->get()->Barrier();
  options_.listener->OnFinished(view_.epoch);
  inbox_->Forget(result.response);
  Publish(result);
  End({RM_ERR_SHUTDOWN, "the job was shut down by all ranks"});
}

void EngineLoop::EndStep(bool armed) {
  boundary_.Reach(pipeline_.Take(kStepEndName));
  info_->step = boundary_.step();
  trace_.StepEnds(boundary_.step());
  // In a recovery the boundary is released when the view is installed: a fault cancels the plan.
  if (phase_ != Phase::kActive) return;
  if (!armed) return ReleaseBoundary();
  options_.Reach(FaultPoint::kAtBoundary, boundary_.step());
  options_.listener->OnBoundary(view_.epoch, boundary_.step());
}

void EngineLoop::ReleaseBoundary() {
  if (boundary_.Release(view_.epoch, view_.size())) users_->Notify();
}

void EngineLoop::Break(const Status& why) {
  if (host_->get() == nullptr) return;  // the job was shut down meanwhile
  phase_ = Phase::kBroken;
  host_->get()->Abort(why.message());
  if (why.code() == RM_ERR_EPOCH_MOVED || why.code() == RM_ERR_TIMEOUT) return TellBroken(why);
  End(why);  // no memory, a defect: this worker can't go on, and its exit tells the others
}

// ---- A new view

void EngineLoop::Install(View view, Clock::time_point since) {
  if (view.epoch <= std::max(view_.epoch, stopped_epoch_) || inbox_->refused()) return;
  if (view.self < 0) {
    view_.epoch = view.epoch;
    return Detach(GoesOnWithout(view));
  }

  const bool first = !info_->entered;
  // The first view of a job, or of one that begins again: everybody has what it began with, also
  // one that was welcomed as a joiner of the view that died, and one that hears of that view only
  // by its successor.
  if (first && !info_->dropped && (view.reason == "Bootstrap" || view.holds)) has_state_ = true;
  view_ = std::move(view);
  rebuild_.Begin();
  boundary_.set_synced(false);
  LeaveView();
  Status connected = host_->Connect(options_.communicators, OptionsForView());
  if (!connected.ok()) return NotConnected(connected);
  pipeline_.Install(host_->get(), view_.workers);
  rebuild_.Connected(view_.epoch, view_.reason, Clock::now() - since);
  info_->SetMembership(MembershipOf(view_), view_.workers);
  options_.listener->OnInstalled(view_.epoch, rebuild_.connect_seconds());

  const auto redo_begin = Clock::now();
  RecoveryPlan plan;
  options_.Reach(FaultPoint::kBeforeExchange);
  if (Status s = Recover(&plan); !s.ok()) return Break(s);
  const auto now = Clock::now();
  rebuild_.Redone(now, now - redo_begin, first);
  Enter(plan);
}

// Brings all ranks to the same point: what some have executed and others lack is handed over, what
// nobody has executed stays pending and runs again. Each hand-over leaves a rank a valid, longer
// prefix, so a death in the middle just starts this again in the next view.
Status EngineLoop::Recover(RecoveryPlan* plan) {
  const Holding mine{has_state_,
                     boundary_.standing() || !info_->entered,
                     pipeline_.next_number(),
                     boundary_.step(),
                     pipeline_.Holdings(),
                     pipeline_.sets()};
  std::vector<Holding> by_rank;
  if (Status s = ExchangeHoldings(host_->get(), mine, &by_rank); !s.ok()) return s;
  trace_.ViewBegins(view_);
  if (Status s = PlanRecovery(by_rank, plan); !s.ok()) return s;
  options_.Reach(FaultPoint::kAfterExchange);
  for (const auto& handover : plan->handovers) {
    const Retained* lacked = nullptr;
    if (Status s = pipeline_.HandOver(handover, has_state_, &lacked); !s.ok()) return s;
    if (lacked != nullptr) Finish(*lacked);
    options_.Reach(FaultPoint::kAfterHandover, handover.result.response.number);
    if (inbox_->refused()) return {RM_ERR_EPOCH_MOVED, "the job was shut down"};
  }
  rounds_.Restart();
  if (plan->joiners.empty()) return {};
  if (Status s = SyncState(*plan); !s.ok()) return s;
  options_.Reach(FaultPoint::kAfterSync);
  return {};
}

Status EngineLoop::SyncState(const RecoveryPlan& plan) {
  StateTransfer transfer(host_->get(), options_.state, users_, {plan.donor, has_state_});
  if (Status s = transfer.Run(); !s.ok()) return s;
  if (!has_state_ && transfer.loaded().ok()) {
    has_state_ = true;
    pipeline_.Restart(plan.next_number, plan.sets);
    info_->SetSets(plan.sets.sets());
    boundary_.Restart(plan.step);
    info_->step = plan.step;
  }
  if (Status s = transfer.AwaitAll(); !s.ok()) return s;
  if (!has_state_) return transfer.loaded();
  boundary_.set_synced(transfer.saved().ok());
  return {};
}

void EngineLoop::Enter(const RecoveryPlan& plan) {
  phase_ = Phase::kActive;
  info_->dropped = false;
  inbox_->Resume();
  if (!view_.train && plan.all_at_boundary) {
    // Below minReplicas: everybody stands at a boundary already and stays there.
    return options_.listener->OnBoundary(view_.epoch, boundary_.step());
  }
  info_->entered = true;
  info_->work.Begin(Clock::now());
  if (pipeline_.idle()) info_->work.Clear(Clock::now());
  ReleaseBoundary();
  users_->Notify();
}

void EngineLoop::LeaveView() {
  phase_ = Phase::kNoView;
  if (stalls_.Clear()) options_.listener->OnStalls({}, false);
  pipeline_.Uninstall();
  host_->Drop();
}

// A death or a stop brings the next view. What can't get better by itself ends this worker, and its
// exit tells the others.
void EngineLoop::NotConnected(const Status& why) {
  if (why.code() == RM_ERR_EPOCH_MOVED || why.code() == RM_ERR_TIMEOUT) return TellBroken(why);
  End(why);
}

// Where somebody has died others know it as well. Where a connection broke between two that live
// nobody else does.
void EngineLoop::TellBroken(const Status& why) {
  if (host_->Aborted(view_.epoch)) return;
  options_.listener->OnBroken(view_.epoch, broken_link_, why.message());
}

CommunicatorOptions EngineLoop::OptionsForView() {
  broken_link_ = -1;
  CommunicatorOptions options;
  options.epoch = view_.epoch;
  options.rank = view_.self;
  options.peers = view_.peers;
  options.connect_timeout = kConnectTimeout;
  options.on_suspect = [listener = options_.listener, epoch = view_.epoch](int rank,
                                                                           const std::string& why) {
    listener->OnSuspect(epoch, rank, why);
  };
  options.on_broken_link = [this](int rank, const std::string&) { broken_link_ = rank; };
  return options;
}

void EngineLoop::Detach(const std::string& why) {
  LeaveView();
  // The others may use it without us: if it is said again, it is not ours any more.
  stopped_epoch_ = std::max(stopped_epoch_, view_.epoch);
  has_state_ = false;
  if (!info_->entered) return;  // still waits to be in a view
  info_->entered = false;
  info_->dropped = true;
  pipeline_.DropResults();
  inbox_->Suspend(why);
  const Status dropped(RM_ERR_DROPPED, why);
  for (auto& operation : pipeline_.TakeAll()) operation->Complete(dropped);
  info_->work.Clear(Clock::now());
  boundary_.Fail(dropped);
  users_->Notify();
}

}  // namespace ringmaster::engine
