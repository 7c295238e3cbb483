// The joiner, and the coordinator's list of joiners (rule 13).
#include <algorithm>

#include "common/membership/member_impl.h"

namespace ringmaster::membership {
namespace {

bool Contains(const View& view, const Candidate& candidate) {
  if (view.FindMember(candidate.pod.uid, candidate.pod.incarnation) < 0) return false;
  return std::all_of(candidate.workers.begin(), candidate.workers.end(), [&](const Worker& worker) {
    return view.FindRank(candidate.pod.uid, worker.slot, worker.incarnation) >= 0;
  });
}

}  // namespace

void MemberImpl::OnJoin(const Message& message, const std::string& address) {
  if (!state_.view) return;
  const Candidate& candidate = message.candidate;
  if (candidate.pod.uid != message.from) return;
  if (!address.empty()) addresses_[message.from] = address;
  if (message.view > view().epoch) {
    SendTo(message.from, Make(MessageKind::kFetch));
    return;
  }
  if (message.view < view().epoch || !IsCoordinator()) {
    Message answer = Make(MessageKind::kDecided);
    answer.value = state_.view;
    SendTo(message.from, std::move(answer));
  }
  if (self_ >= 0) {
    int pod = view().FindPod(candidate.pod.uid);
    if (pod >= 0 && view().pods[pod].incarnation < candidate.pod.incarnation) {
      facts_[pod].replaced = true;  // it lost its file: its old self will never answer
    }
  }
  bool draining = draining_.contains(candidate.pod.uid);
  if (!IsCoordinator() || !Voting() || candidate.workers.empty()) return;
  if (Contains(view(), candidate) || draining) return;
  if (applicants_.empty()) applied_since_ = now_;
  applicants_[candidate.pod.uid] = {{candidate, message.reason}, now_};
}

bool MemberImpl::Fresh(const Applicant& applicant) const {
  return now_ - applicant.renewed <= config_.timers.join_retry * 5;
}

std::vector<Joiner> MemberImpl::Admissible() const {
  std::vector<Joiner> joiners;
  for (const auto& [pod, applicant] : applicants_) {
    const Candidate& candidate = applicant.joiner.candidate;
    int index = view().FindPod(pod);
    bool other_self = index >= 0 && view().pods[index].incarnation != candidate.pod.incarnation;
    bool leaving = draining_.contains(pod);
    if (Fresh(applicant) && !other_self && !leaving && !Contains(view(), candidate)) {
      joiners.push_back(applicant.joiner);
    }
  }
  return joiners;
}

// What this pod would join with: all its living workers that are in no rank, once all are ready.
std::optional<Message> MemberImpl::JoinMessage() const {
  if (Replaced()) {
    Message message = Make(MessageKind::kJoin);
    message.candidate.pod = config_.self;
    return message;
  }
  if (!workers_known_ || Draining() || finishing_ != 0) return std::nullopt;
  Message message = Make(MessageKind::kJoin);
  message.candidate.pod = config_.self;
  for (const Worker& worker : workers_) {
    if (self_ >= 0 && view().FindRank(uid(), worker.slot, worker.incarnation) >= 0) continue;
    if (!worker.ready) return std::nullopt;
    message.candidate.workers.push_back(worker);
  }
  if (message.candidate.workers.empty()) return std::nullopt;
  message.reason = self_ >= 0 ? Reason::kWorkerJoined : join_reason_;
  return message;
}

// The view counts on what this pod was before it lost its file: it won't answer as that, and must
// say so even if it does not want to come back.
bool MemberImpl::Replaced() const { return self_ < 0 && view().FindPod(uid()) >= 0; }

void MemberImpl::CheckJoin() {
  if (!state_.view) return;
  if (join_repeat_.at && !Due(join_repeat_)) return;
  std::optional<Message> message = JoinMessage();
  if (!message || IsCoordinator()) {
    if (message && Voting()) {
      if (applicants_.empty()) applied_since_ = now_;
      applicants_[uid()] = {{message->candidate, message->reason}, now_};
      join_repeat_.at = now_ + config_.timers.join_retry;
      return;
    }
    join_repeat_.Stop();
    return;
  }
  if (Replaced()) {
    SendToOthers(*message);
    Again(&join_repeat_, config_.timers.join_retry);
    return;
  }
  // The coordinator first; after two tries anybody, who tells where things stand.
  SendTo(view().coordinator, *message);
  if (join_repeat_.times >= 2) {
    const Pod& other = view().pods[join_repeat_.times % view().pods.size()];
    if (other.uid != view().coordinator) SendTo(other.uid, *message);
  }
  join_repeat_.at = now_ + config_.timers.join_retry;
  ++join_repeat_.times;
}

}  // namespace ringmaster::membership
