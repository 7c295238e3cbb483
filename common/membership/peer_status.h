// What is known about the pods of the current view: silence, accusations, resignations. Forgotten
// with each new view, except for silence, which is forgotten where this pod is out of the view.
//
// Owned by MemberImpl; reads MemberState; used by the member's thread only.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/membership/broken_links.h"
#include "common/membership/hearsay.h"
#include "common/membership/member_state.h"
#include "common/membership/message.h"
#include "common/membership/quorum.h"

namespace ringmaster::membership {

class PeerStatus {
 public:
  PeerStatus(const MemberState* state, Duration hearsay);
  PeerStatus(const PeerStatus&) = delete;
  PeerStatus& operator=(const PeerStatus&) = delete;

  // Call when the state's view has changed.
  void EnterView();

  // Note that this member does not hear a pod any more, or hears it again. False: that was known.
  bool Suspect(const std::string& uid);
  bool ClearSuspicion(const std::string& uid);
  bool suspected(int pod) const { return pods_[pod].suspected; }
  std::vector<std::string> SuspectedPods() const;
  // The pod runs with a newer incarnation, so the one that this view lists will never answer.
  void SetReplaced(int pod);
  // Decides which accusations of silence count now. Call it after each event and when
  // `hearsay().due()` is reached, before the functions below.
  void WeighHearsay(TimePoint now);
  const Hearsay& hearsay() const { return hearsay_; }
  // Notes that a connection between workers broke though both ends live. `accused`: uids of the
  // pods to which this pod's own link has broken too often. False: all of this was known.
  bool SetLinkBroken(const std::vector<std::string>& accused);
  // Handles kSuspect from pod `from`: it reports pods that it doesn't hear, or links that break.
  // `rebuilds`: a broken link is a reason for another view, because the job is not about to end.
  void OnSuspect(const Message& message, int from, bool rebuilds);
  const BrokenLinks& links() const { return links_; }
  // All accusations that count now, of silence and of broken links.
  Hearsay::Edges accusations() const;
  void SetResignation(int pod, Resignation resignation);
  bool resigned(int pod) const { return pods_[pod].resignation.has_value(); }
  // One entry for each pod, null where it has not resigned.
  const std::vector<const Resignation*>& Resignations() const { return resignations_; }

  // As far as this member knows, the pod takes no more part in this view: it is lost or has
  // resigned.
  bool Gone(int pod) const;
  // The pod is silent, or runs with a newer incarnation.
  bool Lost(int pod) const { return pods_[pod].suspected || pods_[pod].replaced; }
  bool AnyFault() const { return gone_ > 0 || links_.broken() || !hearsay_.counted().empty(); }

 private:
  struct Peer {
    bool suspected = false;  // by this member; taken back when it is heard
    bool replaced = false;
    std::optional<Resignation> resignation;
  };

  // Changes what is known of a pod.
  template <typename Act>
  void Change(int pod, const Act& act) {
    const bool before = Gone(pod);
    act(&pods_[static_cast<std::size_t>(pod)]);
    gone_ += (Gone(pod) ? 1 : 0) - (before ? 1 : 0);
  }

  const MemberState* state_;  // constant after construction

  ViewPtr view_;
  std::vector<Peer> pods_;
  std::vector<const Resignation*> resignations_;  // those in pods_
  int gone_ = 0;                                  // how many pods are Gone()
  Hearsay hearsay_;
  BrokenLinks links_;
};

}  // namespace ringmaster::membership
