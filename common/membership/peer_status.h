// What is known about the pods of the current view: silence, accusations, resignations. Forgotten
// with each new view, except for silence.
//
// Owned by MemberImpl; reads MemberState; used by the member's thread only.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/membership/clause.h"
#include "common/membership/hearsay.h"
#include "common/membership/member_state.h"
#include "common/membership/message.h"
#include "common/membership/quorum.h"

namespace ringmaster::membership {

class PeerStatus {
 public:
  PeerStatus(const MemberState* state, Duration hearsay, ClauseSet without);

  // Call when the state's view has changed.
  void EnterView();

  // This member does not hear a pod any more, or hears it again. False: nothing new.
  bool Suspect(const std::string& uid);
  bool ClearSuspicion(const std::string& uid);
  bool suspected(int pod) const { return pods_[pod].suspected; }
  std::vector<std::string> SuspectedPods() const;
  // The pod runs with a newer incarnation, so the one that this view lists will never answer.
  void SetReplaced(int pod) { pods_[pod].replaced = true; }
  // Another member says that it doesn't hear this one.
  void Accuse(int accuser, int accused) { hearsay_.Accuse(accuser, accused); }
  // Call when something has happened or has become due, before anything follows from it.
  void WeighHearsay(TimePoint now);
  const std::optional<TimePoint>& hearsay_due() const { return hearsay_.due(); }
  // The ring is broken though both live; `accused`: the link to them has been too often. False:
  // nothing new.
  bool SetLinkBroken(const std::vector<std::string>& accused);
  // Pod `from` reports pods that it doesn't hear, or links that break. `rebuilds`: a broken link is
  // a reason for another view, because the job goes on.
  void OnSuspect(const Message& message, int from, bool rebuilds);
  bool link_broken() const { return link_broken_; }
  // What this member has to tell the coordinator of.
  std::vector<std::string> AccusedLinks() const;
  // Of both kinds, as far as they count.
  Hearsay::Edges accusations() const;
  const Hearsay::Edges& silence_accusations() const { return hearsay_.counted(); }
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
  // This member's place in the order of campaigns: how many pods go before it.
  int Position() const;
  // Whether the pods that may answer are a quorum. If not, a campaign would only drop members that
  // may come back. R counts: that it can't be reached is not known before it is asked.
  bool QuorumInReach() const;
  // False: the pods that may answer are a quorum without the record, so it is not asked.
  bool RecordNeeded() const;

 private:
  struct Peer {
    bool suspected = false;  // by this member; taken back when it is heard
    bool replaced = false;
    std::optional<Resignation> resignation;
  };
  struct Reach {
    std::size_t votes = 0;
    bool all = true;  // every pod may answer or has resigned
  };
  Reach CountReachable() const;

  // Constant after construction.
  const MemberState* state_;
  ClauseSet without_;

  ViewPtr view_;
  std::vector<Peer> pods_;
  Hearsay hearsay_;
  std::set<std::pair<int, int>> link_accusations_;  // {accuser, accused}; said again and again
  bool link_broken_ = false;
};

}  // namespace ringmaster::membership
