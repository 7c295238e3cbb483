// The slots of a pod whose processes use collectives of their own
// (spec.collectives.backend: None).
//
// Such a process can't go on when the world changes, and does not speak to the sidecar. So a
// StandIn is the member of the view in its place, as long as the launcher lives; a process is
// started in each view with the ranks of that view, and ended when the view is over. A process that
// ends breaks the view for all: the same members get a new one. docs/foreign-collectives.md.
// Thread rule: the launcher's one thread.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sidecar/launcher/children.h"
#include "sidecar/launcher/clock.h"
#include "sidecar/launcher/pod_parts.h"
#include "sidecar/launcher/reserved_port.h"
#include "sidecar/launcher/stand_in.h"
#include "sidecar/launcher/unexplained_failures.h"
#include "sidecar/launcher/view_process.h"
#include "sidecar/launcher/world.h"

namespace ringmaster::launcher {

class ForeignSlots {
 public:
  explicit ForeignSlots(PodParts parts);

  // Stand-ins for all slots. The pod fails where one can't have an address.
  void Begin();
  void Poll(TimePoint now);
  void AddTo(std::vector<pollfd>* fds) const;
  TimePoint NextWake() const;

  void OnExit(const ChildExit& exit);
  // The sidecar wants another worker in this place.
  void Kill(int64_t slot, int64_t incarnation, const std::string& reason, bool by_us);
  // Nothing starts any more: failures that wait for an explanation are settled now.
  void OnEnding();
  // For `hello`: stand-ins live as long as the launcher.
  nlohmann::json Running() const;

 private:
  struct Seat {
    int slot = 0;
    std::unique_ptr<ReservedPort> port;
    std::unique_ptr<StandIn> stand_in;  // null: nobody will be here again
    ViewProcess process;
  };

  StandIn::Events EventsOf(Seat* seat);
  void Enter(Seat* seat, World world);
  void StartProcess(Seat* seat, TimePoint now);
  void End(Seat* seat);
  void Leave(Seat* seat);
  void Renew(Seat* seat, const std::string& reason, bool by_us);
  void FinishRenewal(Seat* seat);
  void OnFailure(Seat* seat, const ChildExit& exit);
  void Break(Seat* seat, const ChildExit& exit);
  // Acts on a failure that no other one explains.
  void ActOnFailure(Seat* seat, const ChildExit& exit);
  // If this one failed, it did because another one had.
  void ExplainByAnother(Seat* seat);
  bool Runs(const Seat& seat) const;

  const PodParts parts_;
  std::vector<Seat> seats_;
  UnexplainedFailures unexplained_;
  uint64_t broken_ = 0;  // the newest view that a process of this pod has broken
};

}  // namespace ringmaster::launcher
