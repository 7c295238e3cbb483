// The proposer: when to campaign, ballots, quorums, and the decision (rules 4, 6, 11).
#include <algorithm>

#include "common/membership/member_impl.h"

namespace ringmaster::membership {
namespace {

constexpr int kPatientResends = 5;

}  // namespace

bool MemberImpl::Gone(int pod) const {
  const Facts& facts = facts_[pod];
  return facts.suspected || facts.replaced || facts.resignation.has_value();
}

// May be reached for a vote: nothing speaks against it.
bool MemberImpl::CanAnswer(int pod) const {
  if (pod == self_) return Voting();
  return !Gone(pod);
}

// The current view can't go on as it is.
bool MemberImpl::Fault() const {
  if (stop_sent_ || stopped_ || pending_ || state_.accepted_value || !accusations_.empty()) {
    return true;
  }
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    if (Gone(static_cast<int>(i))) return true;
  }
  return std::find(lost_.begin(), lost_.end(), true) != lost_.end();
}

// Whether those who may answer are enough; if not, an attempt would only cost members that come
// back. R counts: that it can't be reached is not known before it is asked.
bool MemberImpl::Feasible() const {
  std::size_t votes = 0;
  bool all = true;
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    bool answers = CanAnswer(static_cast<int>(i));
    votes += answers ? 1 : 0;
    all = all && (answers || facts_[i].resignation);
  }
  if (all && (votes > 0 || !Holds(Clause::kOneAccepted))) return true;
  if (RecordHasVote(view(), config_.without)) ++votes;
  return votes >= MajorityOf(view(), config_.without);
}

bool MemberImpl::RoundZeroFree() const {
  if (!IsCoordinator() || state_.promised.round > 0) return false;
  return state_.accepted.none() || !Holds(Clause::kRoundZeroOnce);
}

// The record is spared where the pods can do without it.
bool MemberImpl::RecordNeeded() const {
  if (!RecordHasVote(view(), config_.without)) return false;
  if (campaign_.repeat.times > 0) return true;
  std::size_t votes = 0;
  bool all = true;
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    bool answers = CanAnswer(static_cast<int>(i));
    votes += answers ? 1 : 0;
    all = all && (answers || facts_[i].resignation);
  }
  return !all && votes < MajorityOf(view(), config_.without);
}

// How many would campaign before this member: the coordinator, then the pods in their order.
int MemberImpl::Position() const {
  int position = 0;
  int coordinator = view().FindPod(view().coordinator);
  if (coordinator == self_) return 0;
  if (coordinator >= 0 && !Gone(coordinator)) ++position;
  for (int i = 0; i < self_; ++i) {
    if (i != coordinator && !Gone(i)) ++position;
  }
  return position;
}

Duration MemberImpl::Patience(int position) {
  if (position == 0) return Duration::zero();
  auto jitter = static_cast<std::int64_t>(Random() % 1024);
  return config_.timers.campaign * position + config_.timers.campaign * jitter / 1024;
}

void MemberImpl::CheckFault() {
  bool may = Voting() || (self_ >= 0 && !Holds(Clause::kOneAccepted));
  if (expired_ && !state_.resigned) may = false;  // about to resign
  if (!may || campaign_.phase != Phase::kIdle || finishing_ >= view().epoch) {
    if (campaign_.phase != Phase::kIdle || !may) campaign_at_.reset();
    return;
  }
  if (!Fault()) {
    // A promise may have been given to somebody who was wrong: nothing follows from it.
    campaign_at_.reset();
    return;
  }
  // Whose attempt is under way is waited for, unless its owner has gone silent.
  const Ballot& attempt = pending_ ? pending_->ballot : state_.accepted;
  int owner = attempt.none() ? -1 : view().FindPod(attempt.pod);
  int position = Position();
  bool orphan = owner >= 0 && owner != self_ && facts_[owner].suspected;
  if (orphan && campaign_at_) {
    campaign_at_ = std::min(*campaign_at_, now_ + Patience(position));
  }
  bool own = owner == self_;
  if (!campaign_at_) campaign_at_ = now_ + (own ? Duration::zero() : Patience(position));
  if (*campaign_at_ <= now_) Begin();
}

void MemberImpl::Begin() {
  campaign_at_.reset();
  if (!Feasible() || (!state_.accepted_value && !FreeValue(false))) {
    campaign_at_ = now_ + Patience(Position() + 1);
    return;
  }
  if (pending_) pending_.reset();
  campaign_ = {};
  bool resume = IsCoordinator() && state_.accepted == Ballot{0, uid()} &&
                state_.promised == state_.accepted && max_round_ == 0;
  if (resume) {
    campaign_.ballot = state_.accepted;
    campaign_.value = state_.accepted_value;
    campaign_.phase = Phase::kStopping;
  } else if (RoundZeroFree()) {
    campaign_.ballot = {0, uid()};
    campaign_.phase = Phase::kStopping;
  } else {
    BeginPrepare();
    return;
  }
  // What the workers had completed, and so who holds the state, is known when they have stopped.
  EnsureStopped();
}

void MemberImpl::BeginPrepare() {
  ++counters_.campaigns;
  std::int64_t round = std::max({max_round_, state_.promised.round, std::int64_t{0}}) + 1;
  max_round_ = round;
  campaign_.ballot = {round, uid()};
  campaign_.phase = Phase::kPreparing;
  campaign_.adopted = state_.accepted;
  campaign_.value = state_.accepted_value;
  if (Voting()) {
    state_.promised = campaign_.ballot;
    if (Holds(Clause::kStoreBeforeAnswer)) Store();
    campaign_.promises.Add(self_);
  }
  if (!Holds(Clause::kPrepareFirst)) {
    campaign_.phase = Phase::kStopping;
    EnsureStopped();
    return;
  }
  Resend();
  CheckPromises();
}

void MemberImpl::OnPromise(const Message& message, std::size_t voter) {
  ran_ = ran_ || message.number == 1;
  if (campaign_.phase != Phase::kPreparing || message.ballot != campaign_.ballot) return;
  campaign_.promises.Add(voter);
  if (message.value && campaign_.adopted < message.accepted && Holds(Clause::kAdoptAccepted)) {
    campaign_.adopted = message.accepted;
    campaign_.value = message.value;
  }
}

void MemberImpl::CheckPromises() {
  Quorum quorum =
      FindQuorum(view(), campaign_.ballot, campaign_.promises, Resignations(), config_.without);
  if (quorum == Quorum::kNone) return;
  for (const Facts& facts : facts_) {
    if (!facts.resignation || !facts.resignation->value || !Holds(Clause::kAdoptResigned)) continue;
    if (campaign_.adopted < facts.resignation->accepted) {
      campaign_.adopted = facts.resignation->accepted;
      campaign_.value = facts.resignation->value;
    }
  }
  campaign_.phase = Phase::kStopping;
  campaign_.repeat.Stop();
  EnsureStopped();
}

// Whether the own ballot has no hope left: somebody resigned with a higher promise, or nobody has
// said anything for long (the answer may be one that only a higher ballot brings).
bool MemberImpl::Overtaken() const {
  for (const Facts& facts : facts_) {
    if (facts.resignation && campaign_.ballot < facts.resignation->promised) return true;
  }
  return Due(campaign_.repeat) && campaign_.repeat.times >= kPatientResends;
}

// Carries the own attempt on.
void MemberImpl::CheckCampaign() {
  bool asking = campaign_.phase == Phase::kPreparing || campaign_.phase == Phase::kProposing;
  if (asking && Voting() && Overtaken()) {
    GiveUp();
    BeginPrepare();
  }
  if (campaign_.phase == Phase::kPreparing) {
    CheckPromises();
    if (campaign_.phase == Phase::kPreparing && Due(campaign_.repeat)) Resend();
  }
  if (campaign_.phase == Phase::kStopping) {
    bool moved_on = campaign_.ballot < state_.promised && Holds(Clause::kPromiseKept);
    if (moved_on ||
        (state_.resigned && Holds(Clause::kOneAccepted) && Holds(Clause::kResignedSilent))) {
      GiveUp();
    } else if (stopped_ || !Holds(Clause::kStopBeforeAccept)) {
      if (!campaign_.value) campaign_.value = FreeValue(false);
      if (campaign_.value) {
        Propose(false);
      } else {
        GiveUp();  // nobody who holds the state would be left
        campaign_at_ = now_ + Patience(Position() + 1);
      }
    }
  }
  if (campaign_.phase == Phase::kProposing) {
    bool once = campaign_.ballot.round > 0 || Holds(Clause::kRoundZeroOnce);
    if (!once && !state_.resigned) {
      ViewPtr other = FreeValue(false);
      if (other && *other != *campaign_.value) {
        campaign_.value = other;
        Propose(false);
      }
    }
    if (Due(campaign_.repeat)) Resend();
  }
}

// Accepts the own proposal first (stored: so round 0 has one value), then sends it.
void MemberImpl::Propose(bool resigning) {
  campaign_.phase = Phase::kProposing;
  campaign_.repeat.Stop();
  TallyFor(campaign_.ballot, campaign_.value);
  if (Voting()) Accept(campaign_.ballot, campaign_.value, resigning);
  Resend();
}

Message MemberImpl::CampaignMessage() const {
  bool preparing = campaign_.phase == Phase::kPreparing;
  Message message = Make(preparing ? MessageKind::kPrepare : MessageKind::kPropose);
  message.ballot = campaign_.ballot;
  if (!preparing) message.value = campaign_.value;
  return message;
}

void MemberImpl::AskAgain(const std::string& pod) {
  bool asking = campaign_.phase == Phase::kPreparing || campaign_.phase == Phase::kProposing;
  if (asking && self_ >= 0 && view().FindPod(pod) >= 0) SendTo(pod, CampaignMessage());
}

void MemberImpl::Resend() {
  bool preparing = campaign_.phase == Phase::kPreparing;
  Message message = CampaignMessage();
  const VoterSet& done =
      preparing ? campaign_.promises : TallyFor(campaign_.ballot, campaign_.value)->yes;
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    if (!done.Has(i) && !facts_[i].resignation) SendTo(view().pods[i].uid, message);
  }
  if (RecordNeeded() && !done.Has(RecordIndex(view()))) {
    message.base = state_.view;
    Emit(SendToRecord{std::move(message)});
  }
  Again(&campaign_.repeat, config_.timers.retry);
}

void MemberImpl::GiveUp() { campaign_ = {}; }

void MemberImpl::OnRefused(const Message& message) {
  if (campaign_.phase == Phase::kIdle || message.ballot != campaign_.ballot) return;
  if (message.promised <= campaign_.ballot) return;
  ++counters_.refused;
  GiveUp();
  campaign_at_ = now_ + Patience(Position() + 1);
}

void MemberImpl::OnSuspect(const Message& message, int from) {
  for (const std::string& pod : message.pods) {
    if (int i = view().FindPod(pod); i >= 0 && i != from && IsCoordinator()) {
      accusations_.emplace_back(from, i);
    }
  }
}

void MemberImpl::OnAccepted(const Message& message, std::size_t voter) {
  if (!message.value || message.value->parent != view().epoch || message.ballot.none()) return;
  TallyFor(message.ballot, message.value)->yes.Add(voter);
}

MemberImpl::Tally* MemberImpl::TallyFor(const Ballot& ballot, const ViewPtr& value) {
  for (Tally& tally : tallies_) {
    bool same = Holds(Clause::kRoundZeroOnce) || tally.value == value;
    if (tally.ballot == ballot && same) return &tally;
  }
  tallies_.push_back({ballot, value, {}});
  return &tallies_.back();
}

std::vector<const Resignation*> MemberImpl::Resignations() const {
  std::vector<const Resignation*> resigned(facts_.size());
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    if (facts_[i].resignation) resigned[i] = &*facts_[i].resignation;
  }
  return resigned;
}

// Whoever sees the quorum says so.
void MemberImpl::CheckTallies() {
  for (const Tally& tally : tallies_) {
    Quorum quorum = FindQuorum(view(), tally.ballot, tally.yes, Resignations(), config_.without);
    if (quorum == Quorum::kNone) continue;
    ViewPtr value = tally.value;
    Decide(value, quorum);
    return;
  }
}

void MemberImpl::Decide(const ViewPtr& value, Quorum quorum) {
  if (quorum == Quorum::kMajority) ++counters_.decided_by_majority;
  if (quorum == Quorum::kRecord) ++counters_.decided_by_record;
  if (quorum == Quorum::kAll) ++counters_.decided_by_all;
  for (const Pod& pod : value->pods) addresses_[pod.uid] = pod.address;
  for (const auto& [pod, applicant] : applicants_) {
    addresses_[pod] = applicant.joiner.candidate.pod.address;
  }
  Message message = Make(MessageKind::kDecided);
  message.value = value;
  SendToOthers(message);
  for (const Pod& pod : value->pods) {
    if (view().FindPod(pod.uid) < 0) SendTo(pod.uid, message);
  }
  Learn(value);
}

// The successor that follows from what this member knows; null where there can be none.
ViewPtr MemberImpl::FreeValue(bool without_self) {
  Change change;
  change.proposer = uid();
  change.min_pods = config_.min_pods;
  change.ran = ran_;
  change.lost_worker = lost_;
  change.gone.assign(facts_.size(), false);
  change.draining.assign(facts_.size(), false);
  bool fault = std::find(lost_.begin(), lost_.end(), true) != lost_.end();
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    change.gone[i] = Gone(static_cast<int>(i));
    change.draining[i] = draining_.contains(view().pods[i].uid);
    change.pod_lost = change.pod_lost || facts_[i].suspected || facts_[i].replaced;
    fault = fault || change.gone[i];
  }
  std::vector<int> accused = PodsToDrop(accusations_, self_);
  for (int pod : accused) change.gone[pod] = change.pod_lost = fault = true;
  if (without_self) {
    change.gone[self_] = fault = true;
  } else {
    // The drain deadline or a suspicion by others does not make this member drop itself.
    change.gone[self_] = change.gone[self_] && state_.resigned;
  }
  bool boundary = AllAtBoundary() || !Holds(Clause::kBoundaryFirst);
  change.planned = !fault && IsCoordinator() && boundary;
  if (change.planned || !Holds(Clause::kFaultAdmitsNobody)) change.joiners = Admissible();
  if (!change.planned) {
    ViewPtr next = NextView(view(), change, config_.without);
    if (next || accused.empty()) return next;
    // The accused hold the state: hearsay does not weigh as much.
    for (int pod : accused) change.gone[pod] = Gone(pod);
    return NextView(view(), change, config_.without);
  }
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    if (change.draining[i]) change.gone[i] = change.drained = true;
  }
  ViewPtr next = NextView(view(), change, config_.without);
  if (next || !change.drained) return next;
  // Nobody would be left: who was to leave stays.
  for (std::size_t i = 0; i < facts_.size(); ++i) change.gone[i] = false;
  change.drained = false;
  return NextView(view(), change, config_.without);
}

}  // namespace ringmaster::membership
