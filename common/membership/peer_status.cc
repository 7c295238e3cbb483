#include "common/membership/peer_status.h"

#include <utility>

namespace ringmaster::membership {

PeerStatus::PeerStatus(const MemberState* state, Duration hearsay, ClauseSet without)
    : state_(state), without_(without), hearsay_(hearsay) {
  EnterView();
}

void PeerStatus::EnterView() {
  const std::vector<std::string> silent = SuspectedPods();
  view_ = state_->stored().view;
  pods_.assign(view_ ? view_->pods.size() : 0, {});
  hearsay_.Clear();
  link_accusations_.clear();
  link_broken_ = false;
  for (const std::string& pod : silent) {
    if (int i = view_->FindPod(pod); i >= 0) pods_[i].suspected = true;
  }
  if (state_->in_view() && state_->stored().resigned) {
    SetResignation(state_->self(), ResignationOf(state_->stored()));
  }
}

bool PeerStatus::Suspect(const std::string& uid) {
  if (!state_->in_view()) return false;
  const int pod = view_->FindPod(uid);
  if (pod < 0 || pod == state_->self() || pods_[pod].suspected) return false;
  pods_[pod].suspected = true;
  return true;
}

bool PeerStatus::ClearSuspicion(const std::string& uid) {
  if (!state_->in_view()) return false;
  const int pod = view_->FindPod(uid);
  if (pod < 0 || !pods_[pod].suspected) return false;
  pods_[pod].suspected = false;
  return true;
}

bool PeerStatus::SetLinkBroken(const std::vector<std::string>& accused) {
  if (!state_->in_view()) return false;
  bool news = !std::exchange(link_broken_, true);
  for (const std::string& uid : accused) {
    const int pod = view_->FindPod(uid);
    if (pod < 0 || pod == state_->self()) continue;
    news = link_accusations_.emplace(state_->self(), pod).second || news;
  }
  return news;
}

void PeerStatus::OnSuspect(const Message& message, int from, bool rebuilds) {
  const bool link = message.number == 1;
  if (link && rebuilds) SetLinkBroken({});
  for (const std::string& uid : message.pods) {
    const int accused = view_->FindPod(uid);
    if (accused < 0 || accused == from) continue;
    if (link) {
      link_accusations_.emplace(from, accused);
    } else {
      Accuse(from, accused);
    }
  }
}

std::vector<std::string> PeerStatus::AccusedLinks() const {
  std::vector<std::string> uids;
  for (const auto& [accuser, accused] : link_accusations_) {
    if (accuser == state_->self()) uids.push_back(view_->pods[accused].uid);
  }
  return uids;
}

void PeerStatus::WeighHearsay(TimePoint now) {
  std::vector<bool> gone;
  for (std::size_t i = 0; i < pods_.size(); ++i) gone.push_back(Gone(static_cast<int>(i)));
  hearsay_.Weigh(gone, state_->self(), now);
}

Hearsay::Edges PeerStatus::accusations() const {
  Hearsay::Edges all = hearsay_.counted();
  all.insert(all.end(), link_accusations_.begin(), link_accusations_.end());
  return all;
}

std::vector<std::string> PeerStatus::SuspectedPods() const {
  std::vector<std::string> uids;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (pods_[i].suspected) uids.push_back(view_->pods[i].uid);
  }
  return uids;
}

std::vector<const Resignation*> PeerStatus::Resignations() const {
  std::vector<const Resignation*> resigned(pods_.size());
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (pods_[i].resignation) resigned[i] = &*pods_[i].resignation;
  }
  return resigned;
}

bool PeerStatus::Gone(int pod) const { return Lost(pod) || resigned(pod); }

bool PeerStatus::AnyFault() const {
  if (link_broken_ || !hearsay_.counted().empty()) return true;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (Gone(static_cast<int>(i))) return true;
  }
  return false;
}

int PeerStatus::Position() const {
  const int self = state_->self();
  const int coordinator = view_->FindPod(view_->coordinator);
  if (coordinator == self) return 0;
  int position = coordinator >= 0 && !Gone(coordinator) ? 1 : 0;
  for (int i = 0; i < self; ++i) {
    if (i != coordinator && !Gone(i)) ++position;
  }
  return position;
}

PeerStatus::Reach PeerStatus::CountReachable() const {
  Reach reach;
  for (int i = 0; i < static_cast<int>(pods_.size()); ++i) {
    const bool answers = i == state_->self() ? state_->voting() : !Gone(i);
    reach.votes += answers ? 1 : 0;
    reach.all = reach.all && (answers || resigned(i));
  }
  return reach;
}

bool PeerStatus::QuorumInReach() const {
  Reach reach = CountReachable();
  if (reach.all && (reach.votes > 0 || without_.Has(Clause::kOneAccepted))) return true;
  if (RecordHasVote(*view_, without_)) ++reach.votes;
  return reach.votes >= MajorityOf(*view_, without_);
}

bool PeerStatus::RecordNeeded() const {
  const Reach reach = CountReachable();
  return !reach.all && reach.votes < MajorityOf(*view_, without_);
}

}  // namespace ringmaster::membership
