#include "common/membership/applicants.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership {
namespace {

// An applicant repeats its request; after so many pauses without one it has given up.
constexpr int kMissedRepeats = 5;

bool InView(const MemberState& state, const Candidate& candidate) {
  if (state.FindMember(candidate.pod.uid, candidate.pod.incarnation) < 0) return false;
  return std::all_of(candidate.workers.begin(), candidate.workers.end(), [&](const Worker& worker) {
    return state.view().FindRank(candidate.pod.uid, worker.slot, worker.incarnation) >= 0;
  });
}

}  // namespace

void Applicants::OnJoin(const Message& message) {
  const MemberState& state = *parts_.state;
  const Candidate& candidate = message.candidate;
  if (!state.has_view() || candidate.pod.uid != message.from) return;
  if (message.view > state.epoch()) {
    parts_.outbox->SendTo(message.from, parts_.outbox->MakeMessage(MessageKind::kFetch));
    return;
  }
  if (message.view < state.epoch() || !state.is_coordinator()) {
    parts_.outbox->SendTo(message.from, parts_.outbox->MakeViewMessage());
  }
  const int pod = state.in_view() ? state.FindPod(candidate.pod.uid) : -1;
  if (pod >= 0 && state.view().pods[pod].incarnation < candidate.pod.incarnation) {
    parts_.peers->SetReplaced(pod);  // it lost its file: the former incarnation will never answer
  }
  if (!state.is_coordinator() || !state.voting() || candidate.workers.empty()) return;
  if (InView(state, candidate) || parts_.drains->Contains(candidate.pod.uid)) return;
  Add({candidate, message.reason});
}

void Applicants::Add(const Joiner& joiner) {
  const TimePoint now = parts_.outbox->now();
  // Others may have waited for long, for a number of pods that may train.
  const bool comes = applicants_.count(joiner.candidate.pod.uid) == 0;
  if (!since_ || (comes && now - *since_ >= timers_.join_batch)) since_ = now;
  applicants_[joiner.candidate.pod.uid] = {joiner, now};
}

void Applicants::EnterView() {
  std::erase_if(applicants_, [&](const auto& entry) {
    const Pod& pod = entry.second.joiner.candidate.pod;
    return parts_.state->FindMember(entry.first, pod.incarnation) >= 0;
  });
  if (applicants_.empty()) since_.reset();
}

bool Applicants::Fresh(const Applicant& applicant) const {
  return parts_.outbox->now() - applicant.renewed <= timers_.join_retry * kMissedRepeats;
}

std::vector<Joiner> Applicants::Admissible() const {
  const View& view = parts_.state->view();
  std::vector<Joiner> joiners;
  for (const auto& [pod, applicant] : applicants_) {
    const Candidate& candidate = applicant.joiner.candidate;
    const int index = parts_.state->FindPod(pod);
    // The pod's former incarnation has to leave the view first.
    const bool twice = index >= 0 && view.pods[index].incarnation != candidate.pod.incarnation;
    if (Fresh(applicant) && !twice && !parts_.drains->Contains(pod) &&
        !InView(*parts_.state, candidate)) {
      joiners.push_back(applicant.joiner);
    }
  }
  return joiners;
}

bool Applicants::Complete() const {
  const std::vector<Joiner> joiners = Admissible();
  if (joiners.empty()) return false;
  std::size_t pods = parts_.state->view().pods.size();
  for (const Joiner& joiner : joiners) {
    if (parts_.state->FindPod(joiner.candidate.pod.uid) < 0) ++pods;
  }
  const bool waited = since_ && parts_.outbox->now() - *since_ >= timers_.join_batch;
  return expected_pods_ == 0 || pods >= expected_pods_ || waited;
}

std::optional<TimePoint> Applicants::NextDeadline() const {
  if (!since_) return std::nullopt;
  const TimePoint end = *since_ + timers_.join_batch;
  return end > parts_.outbox->now() ? std::optional(end) : std::nullopt;
}

void Applicants::RememberAddresses() const {
  for (const auto& [pod, applicant] : applicants_) {
    parts_.outbox->RememberAddress(pod, applicant.joiner.candidate.pod.address);
  }
}

}  // namespace ringmaster::membership
