#include "common/membership/member_impl.h"

#include <utility>

namespace ringmaster::membership {
namespace {

template <typename... Handlers>
struct EventHandlers : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
EventHandlers(Handlers...) -> EventHandlers<Handlers...>;  // clang 14 can't deduce it by itself

Pod WithIncarnation(Pod pod, std::uint64_t incarnation) {
  pod.incarnation = incarnation;
  return pod;
}

}  // namespace

MemberImpl::MemberImpl(const Config& config, PersistentState stored)
    : without_(config.without),
      outbox_(config.self.uid, stored.incarnation, config.timers.retry),
      state_(config.self.uid, std::move(stored), without_, &outbox_),
      peers_(&state_, config.timers.hearsay),
      workers_(&state_, &outbox_),
      moves_({&state_, &peers_, &workers_, &outbox_},
             WithIncarnation(config.self, state_.stored().incarnation), config.timers),
      plan_({&state_, &workers_, &outbox_}, config.timers, without_),
      successor_({&state_, &peers_, &ranks_, &moves_.drains(), &moves_.applicants(), &plan_},
                 config.sizes, without_),
      succession_({&state_, &peers_, &ranks_, &workers_, &successor_, &outbox_}, config),
      lineage_({&state_, &workers_, &ranks_, &outbox_},
               WithIncarnation(config.self, state_.stored().incarnation), without_),
      record_(config.timers.record_retry, &outbox_),
      report_(
          {&state_, &peers_, &ranks_, &workers_, &plan_, &moves_.drains(), &succession_, &outbox_},
          config.timers.retry) {
  ranks_.EnterView(state_.stored().view);
  if (state_.stored().ran) ranks_.SetRan();
}

bool MemberImpl::Done() const {
  // The record has the view without this pod, or will never take it because a higher lineage has
  // begun.
  return moves_.left() && (record_.Knows(state_.epoch()) || state_.frozen());
}

bool MemberImpl::Admits() const {
  return state_.is_coordinator() && !moves_.left() && !moves_.applicants().Admissible().empty();
}

bool MemberImpl::StateLost() const {
  if (!state_.in_view() || moves_.left() || workers_.finishing()) return false;
  return ranks_.StateLost(peers_.Resignations());
}

void MemberImpl::Step(const Event& event, TimePoint now, std::vector<Action>* out) {
  outbox_.Begin(now, out);
  // Heartbeats are by far the most frequent events, so they call Settle() only if they change
  // something.
  if (const auto* heard = std::get_if<PodHeard>(&event)) {
    if (!HandleHeard(*heard)) return;
  } else {
    Handle(event);
  }
  Settle();
}

void MemberImpl::Handle(const Event& event) {
  auto handlers = EventHandlers{
      [&](const Started&) {
        if (!state_.has_view()) return;
        EnterView(false);
        plan_.Resume();
      },
      [&](const Tick&) {},
      [&](const PodHeard&) {},
      [&](const MessageReceived& e) { HandleMessage(e.message, e.address); },
      [&](const ViewDecided& e) {
        if (!e.view) return;
        record_.SetKnown(e.view->epoch);
        Learn(e.view);
      },
      [&](const WorkersStopped& e) { workers_.SetStopped(e.epoch); },
      [&](const WorkersChanged& e) {
        const bool news = workers_.Update(e.workers);
        moves_.RenewRequest();
        if (news && state_.frozen()) lineage_.Renew();
      },
      [&](const BoundaryReached& e) {
        if (e.epoch == state_.epoch() && plan_.SetOwnBoundary()) report_.Renew();
      },
      [&](const FirstOperationDone& e) {
        if (e.epoch != state_.epoch() || !state_.in_view() || ranks_.ran()) return;
        ranks_.SetRan();
        if (state_.is_coordinator()) return;
        outbox_.SendTo(state_.view().coordinator, outbox_.MakeMessage(MessageKind::kRan));
      },
      [&](const PodSuspected& e) {
        moves_.applicants().Remove(e.uid);
        if (!peers_.Suspect(e.uid)) return;
        report_.Renew();
        const View& view = state_.view();
        outbox_.EmitLog("suspects " + view.pods[view.FindPod(e.uid)].name + ": " + e.why);
      },
      [&](const DrainRequested& e) {
        moves_.drains().Request(e);
        report_.Renew();
      },
      [&](const RecordAnswered& e) {
        if (e.message.kind == MessageKind::kDecided && e.message.value) {
          record_.SetKnown(e.message.value->epoch);
          Learn(e.message.value);
        } else {
          succession_.HandleRecord(e.message);
        }
      },
      [&](const TargetChanged& e) {
        successor_.SetSizes(e.sizes);
        moves_.applicants().SetExpected(e.expected_pods);
      },
      [&](const RecoveryAsked& e) { lineage_.Ask(e.lineage); },
      [&](const LinkBroken& e) {
        if (e.epoch != state_.epoch() || workers_.finishing()) return;
        if (!peers_.SetLinkBroken(e.accused)) return;
        report_.Renew();
        outbox_.EmitLog("the ring of " + EpochText(e.epoch) + " is broken" +
                        (e.accused.empty() ? "" : " again and again"));
      },
      [&](const Finishing& e) {
        if (!workers_.SetFinishing(e.epoch) || !state_.in_view()) return;
        outbox_.SendToMembers(outbox_.MakeMessage(MessageKind::kFinishing));
      }};
  std::visit(handlers, event);
}

std::optional<TimePoint> MemberImpl::NextDeadline() const {
  // A frozen member waits for events only: the operator asks again, or a view of the new lineage
  // comes.
  if (state_.frozen()) return std::nullopt;
  std::optional<TimePoint> next;
  auto consider = [&](const std::optional<TimePoint>& at) {
    if (at && (!next || *at < *next)) next = at;
  };
  consider(succession_.proposer().NextDeadline());
  consider(peers_.hearsay().due());
  consider(report_.repeat().at);
  consider(plan_.repeat().at);
  consider(record_.repeat().at);
  consider(moves_.NextDeadline(plan_.begun()));
  return next;
}

// ---- What follows from the facts

void MemberImpl::Settle() {
  if (lineage_.Advance()) succession_.Abandon();
  if (!state_.has_view() || state_.frozen()) return;
  if (!moves_.left()) {
    moves_.CheckRequest();
    SettleView();
  }
  if (!moves_.left()) {
    report_.Check();
    moves_.CheckRequest();  // again, because SettleView() may have entered a view
    // Stored, so that a sidecar that starts again knows that the joiners of the view hold the
    // state.
    if (ranks_.ran()) state_.SetRan();
  }
  record_.Check(state_.is_coordinator() || moves_.left(), state_.epoch());
}

void MemberImpl::SettleView() {
  peers_.WeighHearsay(outbox_.now());
  Proposer& proposer = succession_.proposer();
  // A decision starts a new view, in which everything is checked anew.
  for (Epoch seen = 0; seen != state_.epoch() && state_.in_view();) {
    seen = state_.epoch();
    succession_.AcceptPending();
    CheckOwnPod();
    CheckDecision();
    if (state_.epoch() != seen || !state_.in_view()) continue;
    proposer.CheckFault(succession_.fault(), !moves_.about_to_resign());
    const bool may_plan = state_.is_coordinator() && state_.voting() && !workers_.finishing() &&
                          !succession_.fault() && proposer.idle();
    const bool wanted = may_plan && !plan_.begun() && successor_.ChangeWanted();
    if (plan_.Advance(may_plan, wanted)) proposer.Begin();
    proposer.Advance();
    CheckDecision();
  }
}

// Resigns from the view if this pod has to: the deadline of its drain has passed, or all of its
// workers are dead.
void MemberImpl::CheckOwnPod() {
  if (moves_.DrainOver()) {
    succession_.Resign("the time that this pod had to leave is over");
    report_.Renew();
  }
  succession_.proposer().Advance();
  if (succession_.CheckWorkers()) report_.Renew();
}

// Every member that sees a quorum notifies the others: the proposer may be dead by now.
void MemberImpl::CheckDecision() {
  const ViewPtr next = succession_.TakeDecision();
  if (!next) return;
  for (const Pod& pod : next->pods) outbox_.RememberAddress(pod.uid, pod.address);
  moves_.applicants().RememberAddresses();
  Message message = outbox_.MakeMessage(MessageKind::kDecided);
  message.value = next;
  outbox_.SendToMembers(message);
  for (const Pod& pod : next->pods) {
    if (state_.FindPod(pod.uid) < 0) outbox_.SendTo(pod.uid, message);
  }
  Learn(next);
}

// ---- Views

void MemberImpl::Learn(const ViewPtr& next) {
  const Epoch own = state_.epoch();
  if (next->epoch == own) return;
  if (next->epoch < own && !without_.Has(Clause::kInstallNewerOnly)) return;
  if (EpochLineage(next->epoch) < state_.stored().lineage) return;  // rule 9
  const bool was_in = state_.in_view();
  const bool was_resigned = state_.stored().resigned;
  if (was_in && !workers_.stop_sent()) outbox_.Emit(StopWorkers{own});
  state_.EnterView(next);
  peers_.EnterView();
  ranks_.EnterView(next);
  workers_.EnterView();
  plan_.EnterView();
  succession_.EnterView();
  moves_.EnterView(was_in, was_resigned);
  record_.EnterView();
  report_.Renew();
  EnterView(true);
}

void MemberImpl::EnterView(bool newly) {
  const View& view = state_.view();
  moves_.FindDepartures(newly);
  if (moves_.left()) {
    outbox_.Emit(LeftByPlan{view.epoch});
    outbox_.EmitLog("left by plan: " + Describe(view));
    return;
  }
  // The workers don't get a view again that this member has begun to leave.
  const bool leaving = state_.leaving_view();
  if (!leaving) outbox_.Emit(InstallView{state_.stored().view});
  if (newly) {
    outbox_.EmitLog("view " + Describe(view) + (state_.in_view() ? "" : ", without this pod"));
  }
  if (leaving) {
    workers_.StopView();
    succession_.PostponeTurn();
  } else if (state_.in_view() && !view.train) {
    workers_.Arm();  // held below min_pods: the workers finish the step and stand at the boundary
  }
}

// ---- Messages

bool MemberImpl::HandleHeard(const PodHeard& event) {
  if (!state_.has_view()) return false;
  const bool changed = peers_.ClearSuspicion(event.uid);
  if (event.epoch != 0 && event.epoch < state_.epoch()) {
    outbox_.SendLimited(event.uid, outbox_.MakeViewMessage());
  } else if (event.epoch > state_.epoch()) {
    outbox_.SendLimited(event.uid, outbox_.MakeMessage(MessageKind::kFetch));
  }
  return changed;
}

void MemberImpl::HandleMessage(const Message& message, const std::string& address) {
  if (message.from == state_.uid()) return;
  if (!address.empty()) outbox_.RememberAddress(message.from, address);
  succession_.proposer().rounds().Observe(message);
  const Epoch own = state_.epoch();
  if (message.kind == MessageKind::kDecided) {
    if (message.value) Learn(message.value);
  } else if (message.kind == MessageKind::kFetch) {
    // Once the sender knows the view it may vote on what comes after it.
    if (own > message.view && outbox_.SendLimited(message.from, outbox_.MakeViewMessage())) {
      succession_.proposer().AskAgain(message.from);
    }
  } else if (message.kind == MessageKind::kJoin) {
    moves_.applicants().OnJoin(message);
  } else if (message.view > own) {
    // The message is dropped: its sender repeats what matters until this member has the view.
    outbox_.SendTo(message.from, outbox_.MakeMessage(MessageKind::kFetch));
  } else if (message.view < own) {
    succession_.AnswerOutdated(message);
  } else if (state_.in_view() && !state_.frozen()) {
    const int from = without_.Has(Clause::kIncarnationMatches)
                         ? state_.FindPod(message.from)
                         : state_.FindMember(message.from, message.incarnation);
    if (from >= 0) HandleForView(message, from);
  }
}

void MemberImpl::HandleForView(const Message& message, int from) {
  switch (message.kind) {
    case MessageKind::kSuspect:
      if (state_.is_coordinator()) peers_.OnSuspect(message, from, !workers_.finishing());
      return;
    case MessageKind::kPlan:
      if (plan_.OnPlan(message)) report_.Renew();
      return;
    case MessageKind::kBoundary:
      plan_.OnBoundary(message, from);
      return;
    case MessageKind::kRan:
      ranks_.SetRan();
      return;
    case MessageKind::kFinishing:
      workers_.SetFinishing(state_.epoch());
      return;
    case MessageKind::kLeave:
      moves_.drains().Add(message.pods);
      return;
    case MessageKind::kWorkersLost:
      ranks_.LoseWorkers(message.from, message.workers);
      return;
    default:
      succession_.Handle(message, from);
  }
}

}  // namespace ringmaster::membership
