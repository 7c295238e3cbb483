// The coordinator's list of workers that want to join (rule 13).
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/membership/config.h"
#include "common/membership/drains.h"
#include "common/membership/member_state.h"
#include "common/membership/next_view.h"
#include "common/membership/outbox.h"
#include "common/membership/peer_status.h"

namespace ringmaster::membership {

class Applicants {
 public:
  struct Parts {
    const MemberState* state;
    PeerStatus* peers;
    const Drains* drains;
    Outbox* outbox;
  };
  Applicants(const Parts& parts, const Timers& timers) : parts_(parts), timers_(timers) {}

  // Stores a request to join if this member coordinates. Sends the current view to a sender that
  // doesn't know it, or that should ask the coordinator instead.
  void OnJoin(const Message& message);
  void Add(const Joiner& joiner);
  void Remove(const std::string& pod) { applicants_.erase(pod); }
  // Pods that are in the new view are applicants no more.
  void EnterView();
  // So many pods are expected in the next view; 0: not known.
  void SetExpected(std::uint32_t pods) { expected_pods_ = pods; }

  // The applicants that may be let in, in the order of their uids.
  std::vector<Joiner> Admissible() const;
  // True: some applicants may be let in, and no others are waited for.
  bool Complete() const;
  // When the wait for more applicants ends.
  std::optional<TimePoint> NextDeadline() const;
  // Puts the applicants' addresses into the outbox: they may be in the next view when this pod is
  // not, and must be sent the decision all the same.
  void RememberAddresses() const;

 private:
  struct Applicant {
    Joiner joiner;
    TimePoint renewed;
  };
  bool Fresh(const Applicant& applicant) const;

  // Constant after construction.
  Parts parts_;
  Timers timers_;

  std::map<std::string, Applicant> applicants_;  // by pod uid
  std::optional<TimePoint> since_;               // when the first of `applicants_` came
  std::uint32_t expected_pods_ = 0;
};

}  // namespace ringmaster::membership
