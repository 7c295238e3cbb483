// What is known about the pods of the current view: silence, accusations, resignations. Forgotten
// with each new view, except for silence.
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

  // Call when the state's view has changed.
  void EnterView();

  // This member does not hear a pod any more, or hears it again. False: nothing new.
  bool Suspect(const std::string& uid);
  bool ClearSuspicion(const std::string& uid);
  bool suspected(int pod) const { return pods_[pod].suspected; }
  std::vector<std::string> SuspectedPods() const;
  // The pod runs with a newer incarnation, so the one that this view lists will never answer.
  void SetReplaced(int pod) { pods_[pod].replaced = true; }
  // Call when something has happened or has become due, before anything follows from it.
  void WeighHearsay(TimePoint now);
  const Hearsay& hearsay() const { return hearsay_; }
  // The ring is broken though both live; `accused`: the link to them has been too often. False:
  // nothing new.
  bool SetLinkBroken(const std::vector<std::string>& accused);
  // Pod `from` reports pods that it doesn't hear, or links that break. `rebuilds`: a broken link is
  // a reason for another view, because the job goes on.
  void OnSuspect(const Message& message, int from, bool rebuilds);
  const BrokenLinks& links() const { return links_; }
  // Of silence and of broken links, as far as they count.
  Hearsay::Edges accusations() const;
  void SetResignation(int pod, Resignation resignation) {
    pods_[pod].resignation = std::move(resignation);
  }
  bool resigned(int pod) const { return pods_[pod].resignation.has_value(); }
  // One entry for each pod, null where it has not resigned.
  std::vector<const Resignation*> Resignations() const;

  // The pod takes no more part in this view as far as this member knows.
  bool Gone(int pod) const;
  // Gone without having resigned.
  bool Lost(int pod) const { return pods_[pod].suspected || pods_[pod].replaced; }
  bool AnyFault() const;

 private:
  struct Peer {
    bool suspected = false;  // by this member; taken back when it is heard
    bool replaced = false;
    std::optional<Resignation> resignation;
  };

  const MemberState* state_;  // constant after construction

  ViewPtr view_;
  std::vector<Peer> pods_;
  Hearsay hearsay_;
  BrokenLinks links_;
};

}  // namespace ringmaster::membership
