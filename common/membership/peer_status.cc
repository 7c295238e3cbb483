#include "common/membership/peer_status.h"

namespace ringmaster::membership {

PeerStatus::PeerStatus(const MemberState* state, Duration hearsay)
    : state_(state), hearsay_(hearsay) {
  EnterView();
}

void PeerStatus::EnterView() {
  // A pod that is in no view watches nobody, so it would not hear that a silent one is back.
  const std::vector<std::string> silent =
      state_->in_view() ? SuspectedPods() : std::vector<std::string>();
  view_ = state_->stored().view;
  pods_.assign(view_ ? view_->pods.size() : 0, {});
  resignations_.assign(pods_.size(), nullptr);
  gone_ = 0;
  hearsay_.Clear();
  links_.Clear();
  for (const std::string& pod : silent) {
    if (int i = state_->FindPod(pod); i >= 0) Change(i, [](Peer* peer) { peer->suspected = true; });
  }
  if (state_->in_view() && state_->stored().resigned) {
    SetResignation(state_->self(), ResignationOf(state_->stored()));
  }
}

bool PeerStatus::Suspect(const std::string& uid) {
  if (!state_->in_view()) return false;
  const int pod = state_->FindPod(uid);
  if (pod < 0 || pod == state_->self() || pods_[pod].suspected) return false;
  Change(pod, [](Peer* peer) { peer->suspected = true; });
  return true;
}

bool PeerStatus::ClearSuspicion(const std::string& uid) {
  if (!state_->in_view()) return false;
  const int pod = state_->FindPod(uid);
  if (pod < 0 || !pods_[pod].suspected) return false;
  Change(pod, [](Peer* peer) { peer->suspected = false; });
  return true;
}

bool PeerStatus::SetLinkBroken(const std::vector<std::string>& accused) {
  if (!state_->in_view()) return false;
  bool news = links_.Break();
  for (const std::string& uid : accused) {
    const int pod = state_->FindPod(uid);
    if (pod < 0 || pod == state_->self()) continue;
    news = links_.Accuse(state_->self(), pod) || news;
  }
  return news;
}

void PeerStatus::OnSuspect(const Message& message, int from, bool rebuilds) {
  const bool link = message.number == 1;
  if (link && rebuilds) SetLinkBroken({});
  for (const std::string& uid : message.pods) {
    const int accused = state_->FindPod(uid);
    if (accused < 0 || accused == from) continue;
    if (link) {
      links_.Accuse(from, accused);
    } else {
      hearsay_.Accuse(from, accused);
    }
  }
}

void PeerStatus::WeighHearsay(TimePoint now) {
  std::vector<bool> gone;
  if (hearsay_.any()) {  // there is none most of the time, and the view may be large
    for (std::size_t i = 0; i < pods_.size(); ++i) gone.push_back(Gone(static_cast<int>(i)));
  }
  hearsay_.Weigh(gone, state_->self(), now);
}

Hearsay::Edges PeerStatus::accusations() const {
  Hearsay::Edges all = hearsay_.counted();
  all.insert(all.end(), links_.accusations().begin(), links_.accusations().end());
  return all;
}

std::vector<std::string> PeerStatus::SuspectedPods() const {
  std::vector<std::string> uids;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (pods_[i].suspected) uids.push_back(view_->pods[i].uid);
  }
  return uids;
}

void PeerStatus::SetResignation(int pod, Resignation resignation) {
  Change(pod, [&](Peer* peer) {
    peer->resignation = std::move(resignation);
    resignations_[static_cast<std::size_t>(pod)] = &*peer->resignation;
  });
}

void PeerStatus::SetReplaced(int pod) {
  Change(pod, [](Peer* peer) { peer->replaced = true; });
}

bool PeerStatus::Gone(int pod) const { return Lost(pod) || resigned(pod); }

}  // namespace ringmaster::membership
