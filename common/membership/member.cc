#include "common/membership/member.h"

#include <algorithm>

#include "common/membership/member_impl.h"

namespace ringmaster::membership {

std::string_view RoleText(Role role) {
  switch (role) {
    case Role::kWaiting:
      return "Waiting";
    case Role::kMember:
      return "Member";
    case Role::kResigned:
      return "Resigned";
    case Role::kJoining:
      return "Joining";
    case Role::kLeft:
      return "Left";
  }
  return "Unknown";
}

Member::Member(Config config, PersistentState state)
    : impl_(std::make_unique<MemberImpl>(std::move(config), std::move(state))) {}
Member::~Member() = default;
Member::Member(Member&&) noexcept = default;
Member& Member::operator=(Member&&) noexcept = default;

std::vector<Action> Member::Step(const Event& event, TimePoint now) {
  std::vector<Action> actions;
  impl_->Step(event, now, &actions);
  return actions;
}
void Member::Step(const Event& event, TimePoint now, std::vector<Action>* out) {
  impl_->Step(event, now, out);
}
std::optional<TimePoint> Member::NextDeadline() const { return impl_->NextDeadline(); }
Role Member::role() const { return impl_->role(); }
const ViewPtr& Member::current() const { return impl_->state().view; }
bool Member::is_coordinator() const { return impl_->IsCoordinator(); }
bool Member::changing() const { return impl_->Changing(); }
bool Member::done() const { return impl_->Done(); }
bool Member::draining() const { return impl_->Draining(); }
bool Member::state_lost() const { return impl_->StateLost(); }
bool Member::able() const { return impl_->Able(); }
const PersistentState& Member::state() const { return impl_->state(); }
const MemberCounters& Member::counters() const { return impl_->counters(); }

MemberImpl::MemberImpl(Config config, PersistentState state)
    : config_(std::move(config)), state_(std::move(state)), random_(config_.seed * 2 + 1) {
  config_.self.incarnation = state_.incarnation;
  if (state_.view) ForgetView();
}

Role MemberImpl::role() const {
  if (left_) return Role::kLeft;
  if (!state_.view) return Role::kWaiting;
  if (self_ < 0) return Role::kJoining;
  return state_.resigned ? Role::kResigned : Role::kMember;
}

bool MemberImpl::Voting() const {
  return self_ >= 0 && (!state_.resigned || !Holds(Clause::kResignedSilent));
}

void MemberImpl::Step(const Event& event, TimePoint now, std::vector<Action>* out) {
  now_ = now;
  out_ = out;
  if (const auto* heard = std::get_if<PodHeard>(&event)) {
    HandleHeard(*heard);  // the most frequent one: settles only if it changes something
    return;
  }
  struct Visitor {
    MemberImpl* m;
    void operator()(const Started&) { m->HandleStarted(); }
    void operator()(const Tick&) {}
    void operator()(const MessageReceived& e) { m->Handle(e); }
    void operator()(const ViewDecided& e) {
      if (e.view) {
        m->record_knows_ = std::max(m->record_knows_, e.view->epoch);
        m->Learn(e.view);
      }
    }
    void operator()(const WorkersStopped& e) {
      if (m->state_.view && e.epoch >= m->view().epoch) m->stopped_ = true;
      m->way_stopped_ = std::max(m->way_stopped_, e.epoch);
    }
    void operator()(const WorkersChanged& e) { m->HandleWorkers(e); }
    void operator()(const BoundaryReached& e) {
      if (e.epoch != EpochOf(m->state_.view) || m->self_ < 0 || m->boundary_) return;
      m->boundary_ = m->facts_[m->self_].boundary = true;
      m->report_repeat_.Stop();
    }
    void operator()(const FirstOperationDone& e) {
      if (e.epoch != EpochOf(m->state_.view) || m->self_ < 0 || m->ran_) return;
      m->ran_ = true;
      if (!m->IsCoordinator()) m->SendTo(m->view().coordinator, m->Make(MessageKind::kRan));
    }
    void operator()(const PodSuspected& e) { m->HandleSuspected(e); }
    void operator()(const PodHeard&) {}
    void operator()(const DrainRequested& e) {
      m->draining_.insert(e.uids.begin(), e.uids.end());
      m->report_repeat_.Stop();
      // Others' deadlines are their own affair.
      const bool mine = std::find(e.uids.begin(), e.uids.end(), m->uid()) != e.uids.end();
      if (!mine || !e.deadline) return;
      // Operator and TERM each know one; what ends the pod is the earlier.
      m->drain_deadline_ = std::min(m->drain_deadline_.value_or(*e.deadline), *e.deadline);
    }
    void operator()(const RecordAnswered& e) { m->HandleRecord(e.message); }
    void operator()(const TargetChanged& e) {
      m->config_.min_pods = e.min_pods;
      m->expected_pods_ = e.expected_pods;
    }
    void operator()(const RecoveryAsked& e) { m->OnRecoveryReport(e); }
    void operator()(const Finishing& e) {
      if (m->finishing_ >= e.epoch) return;
      m->finishing_ = e.epoch;
      if (m->self_ >= 0) m->SendToOthers(m->Make(MessageKind::kFinishing));
    }
  };
  std::visit(Visitor{this}, event);
  Settle();
}

std::optional<TimePoint> MemberImpl::NextDeadline() const {
  if (Frozen()) return std::nullopt;  // asked again, it answers; what it may do next it is told
  std::optional<TimePoint> next;
  auto consider = [&](const std::optional<TimePoint>& at) {
    if (at && (!next || *at < *next)) next = at;
  };
  consider(campaign_at_);
  consider(campaign_.repeat.at);
  consider(report_repeat_.at);
  consider(plan_repeat_.at);
  consider(join_repeat_.at);
  consider(record_repeat_.at);
  if (self_ >= 0 && !expired_ && !state_.resigned) consider(drain_deadline_);
  if (applied_since_ && plan_ == 0) {
    TimePoint complete = *applied_since_ + config_.timers.join_batch;
    if (complete > now_) consider(complete);
  }
  return next;
}

void MemberImpl::Settle() {
  CheckRecovery();
  if (!state_.view || Frozen()) return;
  if (left_) {
    CheckRecord();
    return;
  }
  CheckJoin();
  // A decision starts a new view; what follows from the old one is over then.
  for (Epoch seen = 0; seen != view().epoch;) {
    seen = view().epoch;
    if (self_ < 0) break;
    CheckPending();
    CheckDrain();
    CheckCampaign();
    CheckWorkers();
    CheckTallies();
    if (view().epoch != seen || self_ < 0) continue;
    CheckFault();
    CheckPlan();
    CheckCampaign();
    CheckTallies();
  }
  if (left_) {
    CheckRecord();
    return;
  }
  Report();
  CheckJoin();
  CheckRecord();
}

void MemberImpl::HandleStarted() {
  if (!state_.view) return;
  EnterView(false);
  // What a plan was for is forgotten with the process, but workers may stand at its boundary: begin
  // it again rather than leave them there.
  if (IsCoordinator() && state_.planning) plan_ = PlanNumber();
}

// Everything known about the current view starts afresh.
void MemberImpl::ForgetView() {
  self_ = Holds(Clause::kIncarnationMatches) ? view().FindMember(uid(), state_.incarnation)
                                             : view().FindPod(uid());
  facts_.assign(view().pods.size(), {});
  lost_.assign(view().ranks.size(), false);
  accusations_.clear();
  ran_ = stop_sent_ = stopped_ = all_dead_ = armed_ = boundary_ = expired_ = false;
  plan_ = plan_seen_ = 0;
  plan_repeat_.Stop();
  report_repeat_.Stop();
  campaign_at_.reset();
  max_round_ = std::max<std::int64_t>(0, state_.promised.round);
  campaign_ = {};
  pending_.reset();
  tallies_.clear();
  if (self_ >= 0 && state_.resigned) {
    facts_[self_].resignation = {state_.promised, state_.accepted, state_.accepted_value};
    stopped_ = all_dead_ = true;
  }
}

void MemberImpl::Learn(const ViewPtr& next) {
  Epoch own = EpochOf(state_.view);
  if (next->epoch == own || (next->epoch < own && Holds(Clause::kInstallNewerOnly))) return;
  if (EpochLineage(next->epoch) < state_.lineage) return;  // rule 9: promised to a higher one
  std::vector<std::string> silent;  // whoever was silent is suspected in the next view too
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    if (facts_[i].suspected) silent.push_back(view().pods[i].uid);
  }
  bool was_in = self_ >= 0;
  bool was_resigned = state_.resigned;
  if (own != 0 && was_in && !stop_sent_) Emit(StopWorkers{own});
  if (own != 0) {
    for (const Pod& pod : view().pods) addresses_[pod.uid] = pod.address;
  }
  state_.view = next;
  state_.promised = {};
  state_.accepted = {};
  state_.accepted_value = nullptr;
  state_.stopping = false;
  state_.resigned = false;
  state_.planning = false;
  ForgetView();
  for (const std::string& pod : silent) {
    if (int i = view().FindPod(pod); i >= 0) facts_[i].suspected = true;
  }
  std::erase_if(applicants_, [&](const auto& entry) {
    return view().FindMember(entry.first, entry.second.joiner.candidate.pod.incarnation) >= 0;
  });
  if (applicants_.empty()) applied_since_.reset();
  join_repeat_.Stop();
  record_repeat_.Stop();
  if (was_in && self_ < 0) join_reason_ = was_resigned ? Reason::kWorkerJoined : Reason::kRejoin;
  Store();
  EnterView(true);
}

void MemberImpl::EnterView(bool newly) {
  if (Draining() && self_ < 0) {
    left_ = true;
    Emit(LeftByPlan{view().epoch});
    Say("left by plan: " + Describe(view()));
    return;
  }
  left_ = false;  // if somebody who had not heard has let it in again, it leaves again
  std::erase_if(draining_, [&](const std::string& pod) {
    bool left = newly && pod != uid() && view().FindPod(pod) < 0;
    if (left) applicants_.erase(pod);
    return left;
  });
  // A view that this member has begun to leave is over: it is not handed out again.
  bool over = self_ >= 0 && (state_.resigned || state_.stopping || state_.accepted_value);
  if (!over) Emit(InstallView{state_.view});
  if (newly) Say("view " + Describe(view()) + (self_ < 0 ? ", without this pod" : ""));
  if (over) {
    EnsureStopped();
    campaign_at_ = now_ + Patience(Position() + 1);
  } else if (self_ >= 0 && !view().train) {
    Arm();  // held: finish the step, stand at the boundary
  }
}

// ---- Who lives

void MemberImpl::HandleWorkers(const WorkersChanged& event) {
  const bool news = !workers_known_ || workers_ != event.workers;
  workers_known_ = true;
  workers_ = event.workers;
  join_repeat_.Stop();
  if (news && Frozen()) {
    if (asked_lineage_ == 0) asked_lineage_ = reported_lineage_;
    way_asked_ = way_stopped_ = 0;  // somebody may have come who has not been asked
  }
}

// Rule 7: all workers dead, the pod resigns; some dead, it stays with new ranks.
void MemberImpl::CheckWorkers() {
  if (!workers_known_ || state_.resigned || finishing_ >= view().epoch) return;
  bool any_alive = false;
  bool news = false;
  for (std::size_t r = 0; r < view().ranks.size(); ++r) {
    const RankEntry& rank = view().ranks[r];
    if (rank.pod != static_cast<std::uint32_t>(self_)) continue;
    bool alive = std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
      return worker.slot == rank.slot && worker.incarnation == rank.incarnation;
    });
    any_alive = any_alive || alive;
    if (!alive && !lost_[r]) lost_[r] = news = true;
  }
  if (news) report_repeat_.Stop();
  if (any_alive && !all_dead_) return;
  all_dead_ = stopped_ = true;
  CheckPending();  // an acceptance given before the resignation helps to a majority
  ResignSelf();
}

bool MemberImpl::StateLost() const {
  if (!state_.view || self_ < 0 || left_ || finishing_ >= view().epoch) return false;
  for (std::size_t r = 0; r < view().ranks.size(); ++r) {
    const RankEntry& rank = view().ranks[r];
    bool holds = ran_ || !rank.joined;
    bool dead = lost_[r] || facts_[rank.pod].resignation.has_value();
    if (holds && !dead) return false;
  }
  return true;
}

void MemberImpl::HandleSuspected(const PodSuspected& event) {
  applicants_.erase(event.uid);
  if (self_ < 0) return;
  int pod = view().FindPod(event.uid);
  if (pod < 0 || pod == self_ || facts_[pod].suspected) return;
  facts_[pod].suspected = true;
  report_repeat_.Stop();
  Say("suspects " + view().pods[pod].name + ": " + event.why);
}

void MemberImpl::HandleHeard(const PodHeard& event) {
  if (!state_.view) return;
  int pod = -1;
  bool changed = false;
  if (self_ >= 0 && (pod = view().FindPod(event.uid)) >= 0 && facts_[pod].suspected) {
    facts_[pod].suspected = false;
    changed = true;
  }
  if (event.epoch != 0 && event.epoch < view().epoch) {
    TellView(event.uid);
  } else if (event.epoch > view().epoch) {
    TimePoint& told = told_[event.uid];
    if (now_ - told >= config_.timers.retry || told == TimePoint{}) {
      told = now_;
      SendTo(event.uid, Make(MessageKind::kFetch));
    }
  }
  if (changed) Settle();
}

// What others must know from this member, said again until a newer view comes.
void MemberImpl::Report() {
  if (self_ < 0 || finishing_ >= view().epoch) return;
  if (report_repeat_.at && !Due(report_repeat_)) return;
  std::size_t before = out_->size();
  if (state_.resigned) {
    BroadcastResign();
  } else {
    ReportLosses();
    if (boundary_ && !IsCoordinator()) {
      Message message = Make(MessageKind::kBoundary);
      message.number = plan_seen_;
      SendTo(view().coordinator, std::move(message));
    }
    std::vector<std::string> leaving = LeavingPods();
    if (!leaving.empty() && !IsCoordinator()) {
      Message message = Make(MessageKind::kLeave);
      message.pods = std::move(leaving);
      SendTo(view().coordinator, std::move(message));
    }
  }
  if (out_->size() == before) {
    report_repeat_.Stop();
  } else {
    Again(&report_repeat_, config_.timers.retry);
  }
}

void MemberImpl::ReportLosses() {
  if (IsCoordinator()) return;
  Message lost = Make(MessageKind::kWorkersLost);
  for (std::size_t r = 0; r < lost_.size(); ++r) {
    const RankEntry& rank = view().ranks[r];
    if (lost_[r] && rank.pod == static_cast<std::uint32_t>(self_)) {
      lost.workers.push_back({rank.slot, rank.incarnation, "", "", false});
    }
  }
  if (!lost.workers.empty()) SendTo(view().coordinator, std::move(lost));
  Message silent = Make(MessageKind::kSuspect);
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    if (facts_[i].suspected) silent.pods.push_back(view().pods[i].uid);
  }
  int coordinator = view().FindPod(view().coordinator);
  bool reachable = coordinator >= 0 && !facts_[coordinator].suspected;
  if (!silent.pods.empty() && reachable) SendTo(view().coordinator, std::move(silent));
}

// Decided views are copied to the record by their coordinator (rule 8), and by who leaves with
// them: the others may not have heard yet, and it will not be there to tell them.
void MemberImpl::CheckRecord() {
  if ((!IsCoordinator() && !left_) || record_knows_ >= view().epoch) {
    record_repeat_.Stop();
    return;
  }
  if (record_repeat_.at && !Due(record_repeat_)) return;
  Message message = Make(MessageKind::kDecided);
  message.value = state_.view;
  Emit(SendToRecord{std::move(message)});
  Again(&record_repeat_, config_.timers.record_retry);
}

// ---- Messages in

void MemberImpl::Handle(const MessageReceived& event) {
  if (event.message.from == uid()) return;
  HandlePeer(event.message, event.address);
}

void MemberImpl::HandlePeer(const Message& message, const std::string& address) {
  if (!address.empty()) addresses_[message.from] = address;
  max_round_ = std::max({max_round_, message.ballot.round, message.promised.round});
  switch (message.kind) {
    case MessageKind::kDecided:
      if (message.value) Learn(message.value);
      return;
    case MessageKind::kFetch:
      // Once it knows the view it may vote on what comes after it.
      if (EpochOf(state_.view) > message.view && TellView(message.from)) AskAgain(message.from);
      return;
    case MessageKind::kJoin:
      OnJoin(message, address);
      return;
    default:
      break;
  }
  Epoch own = EpochOf(state_.view);
  if (message.view > own) {  // parked by asking: the sender repeats what matters
    SendTo(message.from, Make(MessageKind::kFetch));
    return;
  }
  if (message.view < own) {
    AnswerOutsider(message);
    return;
  }
  int from = own != 0 ? view().FindMember(message.from, message.incarnation) : -1;
  if (!Holds(Clause::kIncarnationMatches) && own != 0) from = view().FindPod(message.from);
  if (from >= 0 && self_ >= 0) HandleForView(message, from);
}

void MemberImpl::HandleForView(const Message& message, int from) {
  if (Frozen()) return;  // rule 5
  switch (message.kind) {
    case MessageKind::kPrepare:
      OnPrepare(message);
      return;
    case MessageKind::kPropose:
      OnPropose(message.ballot, message.value, message.from);
      return;
    case MessageKind::kPromise:
      OnPromise(message, from);
      return;
    case MessageKind::kAccepted:
      OnAccepted(message, from);
      return;
    case MessageKind::kRefused:
      OnRefused(message);
      return;
    case MessageKind::kResign:
      OnResign(message, from);
      return;
    case MessageKind::kSuspect:
      OnSuspect(message, from);
      return;
    case MessageKind::kPlan:
      OnPlan(message);
      return;
    case MessageKind::kBoundary:
      OnBoundary(message, from);
      return;
    case MessageKind::kRan:
      ran_ = true;
      return;
    case MessageKind::kFinishing:
      finishing_ = std::max(finishing_, view().epoch);
      return;
    case MessageKind::kLeave:
      draining_.insert(message.pods.begin(), message.pods.end());
      return;
    case MessageKind::kWorkersLost:
      for (const Worker& worker : message.workers) {
        int rank = view().FindRank(message.from, worker.slot, worker.incarnation);
        if (rank >= 0) lost_[rank] = true;
      }
      return;
    default:
      return;
  }
}

void MemberImpl::HandleRecord(const Message& message) {
  if (message.kind == MessageKind::kDecided && message.value) {
    record_knows_ = std::max(record_knows_, message.value->epoch);
    Learn(message.value);
    return;
  }
  if (self_ < 0 || Frozen()) return;
  if (message.view != view().epoch || !RecordHasVote(view(), config_.without)) return;
  max_round_ = std::max({max_round_, message.ballot.round, message.promised.round});
  if (message.kind == MessageKind::kPromise) OnPromise(message, RecordIndex(view()));
  if (message.kind == MessageKind::kAccepted) OnAccepted(message, RecordIndex(view()));
  if (message.kind == MessageKind::kRefused) OnRefused(message);
}

// ---- Messages out

Message MemberImpl::Make(MessageKind kind) const {
  Message message;
  message.kind = kind;
  message.from = uid();
  message.incarnation = state_.incarnation;
  message.view = EpochOf(state_.view);
  return message;
}

const std::string& MemberImpl::AddressOf(const std::string& pod) const {
  static const std::string kUnknown;
  if (state_.view) {
    if (int i = view().FindPod(pod); i >= 0) return view().pods[i].address;
  }
  auto known = addresses_.find(pod);
  return known == addresses_.end() ? kUnknown : known->second;
}

void MemberImpl::SendTo(const std::string& to, Message message) {
  if (to == uid()) return;
  Emit(Send{to, AddressOf(to), std::move(message)});
}

void MemberImpl::SendToOthers(const Message& message) {
  for (const Pod& pod : view().pods) SendTo(pod.uid, message);
}

bool MemberImpl::TellView(const std::string& to) {
  TimePoint& told = told_[to];
  if (told != TimePoint{} && now_ - told < config_.timers.retry) return false;
  told = now_;
  Message message = Make(MessageKind::kDecided);
  message.value = state_.view;
  SendTo(to, std::move(message));
  return true;
}

void MemberImpl::Again(Repeat* repeat, Duration first) {
  repeat->at = now_ + first * (1 << std::min(repeat->times, 3));
  ++repeat->times;
}

std::uint64_t MemberImpl::Random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

}  // namespace ringmaster::membership
