// The other pods: takes their messages, and judges from heartbeats, closed connections and the
// workers' own suspicions which of them are lost.
//
// Thread rule: the sidecar's loop only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/membership/view_changes.h"
#include "sidecar/app/accusations.h"
#include "sidecar/app/agent_outputs.h"
#include "sidecar/app/departure.h"
#include "sidecar/app/membership_loop.h"
#include "sidecar/app/rebuild_tracker.h"
#include "sidecar/app/ring_trouble.h"

namespace ringmaster::app {

class PeerMonitor {
 public:
  PeerMonitor(std::string pod_uid, AgentClock clock, PeerOutputs outputs,
              MembershipLoop* membership, const Departure* departure, RebuildTracker* rebuilds);

  void OnMessage(const std::string& body, const std::string& from, const std::string& address);
  void OnRecordAnswer(const std::string& body);
  void OnSuspect(const std::string& pod, const std::string& why);
  void OnUnreachable(const std::string& pod, const std::string& why);
  void OnHeard(const std::string& pod, Epoch epoch, uint64_t step);
  void OnWorkerSuspects(Epoch epoch, int rank, const std::string& reason);
  // The view is broken for a worker of this pod, at its link to `rank`; -1: it doesn't know where.
  void OnWorkerBroken(Epoch epoch, int rank, const std::string& reason);
  void OnRan(Epoch epoch) { ring_.Ran(epoch); }

  void Watch(const std::vector<membership::Pod>& pods) const { outputs_.watch(pods); }
  // A new view: its pods are watched if this one is among them.
  void EnterView(const membership::View& view);
  std::vector<BrokenLink> BrokenLinks() const;
  // What the own heartbeats tell the others from now on.
  void SetNews(Epoch epoch) const { outputs_.set_news(epoch, rebuilds_->newest_step()); }
  void Deliver(const membership::Send& send);
  void CheckSuspicions();

 private:
  // False: the view in the message can't be read, so it counts as lost, and the sender is asked
  // for its view.
  bool TakeChange(const std::string& change, membership::Message* message);
  bool IsAccusation(const membership::Message& message) const;
  void Say(const membership::Message& accusation);
  void CheckRing();

  const std::string pod_uid_;
  const AgentClock clock_;
  const PeerOutputs outputs_;
  MembershipLoop* const membership_;
  const Departure* const departure_;
  RebuildTracker* const rebuilds_;
  membership::ViewChanges changes_;
  RingTrouble ring_;
  Accusations accusations_;
};

}  // namespace ringmaster::app
