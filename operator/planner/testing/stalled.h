// A job whose view can't train any more, for the tests of recovery from quorum loss.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "operator/planner/testing/world.h"

namespace ringmaster::planner {

using std::chrono::seconds;

inline std::string Uid(int index) { return World::Uid(index); }

// Pods 0 to n-1 are in view 1.5, can't train, and have said so for a minute; tests start from
// there.
class Stalled : public World {
 public:
  explicit Stalled(int n) : World(n) {
    in.view_since = kNow - seconds(600);
    in.lineage = 1;
    std::vector<membership::Candidate> candidates;
    for (int i = 0; i < n; ++i) {
      Add(i);
      candidates.push_back(in.sidecars.back().candidate);
    }
    membership::View view = membership::BootstrapView(candidates, 1);
    view.epoch = membership::MakeEpoch(1, 5);
    view.parent = membership::MakeEpoch(1, 4);
    in.view = std::make_shared<const membership::View>(view);
    for (SidecarFacts& sidecar : in.sidecars) {
      sidecar.epoch = view.epoch;
      sidecar.candidate.workers[0].used = true;
    }
  }

  // A pod that is connected and ready, in no view.
  Stalled& Add(int index) {
    PodFacts pod;
    pod.name = PodName("digits", index);
    pod.uid = Uid(index);
    pod.index = index;
    pod.node = "node-" + std::to_string(index);
    pod.phase = PodPhase::kRunning;
    pod.scheduled = true;
    pod.created = kNow - seconds(700);
    pod.running_since = kNow - seconds(700);
    pod.http = "10.0.0.1:80";
    in.pods.push_back(pod);
    SidecarFacts sidecar;
    sidecar.pod_name = pod.name;
    sidecar.pod_uid = pod.uid;
    sidecar.connected = sidecar.ready = true;
    sidecar.http_address = pod.http;
    sidecar.ready_since = kNow - seconds(100);
    sidecar.unable_since = kNow - seconds(60);
    sidecar.candidate.pod = {pod.uid, pod.name, 1, pod.node, "", "a", "h", "w"};
    sidecar.candidate.workers = {{0, 1, "t", "s", true, false}};
    in.sidecars.push_back(sidecar);
    return *this;
  }
  // The pod's sidecar is not connected, and its death is not proven.
  Stalled& Silent(int index) {
    Sidecar(index).connected = Sidecar(index).able = false;
    return *this;
  }
  Stalled& ProvenDead(int index) {
    Silent(index).Pod(index).proven_dead = true;
    Pod(index).phase = PodPhase::kFailed;
    Pod(index).all_terminated = true;
    return *this;
  }
  // The record is at lineage 2, and these pods have joined it.
  Stalled& QuorumLost(const std::vector<int>& reported) {
    in.lineage = 2;
    for (const int index : reported) {
      Sidecar(index).report =
          membership::RecoveryReport{2, in.view, false, true, Sidecar(index).candidate};
    }
    return *this;
  }
  Stalled& Fork() {
    in.job.spec.elastic_policy.on_quorum_loss = api::OnQuorumLoss::kRestartFromCheckpoint;
    return *this;
  }
};

inline std::vector<std::string> PodsOf(const membership::ViewPtr& view) {
  std::vector<std::string> names;
  for (const membership::Pod& pod : view->pods) names.push_back(pod.name);
  return names;
}

inline std::vector<std::string> Reasons(const Decision& out) {
  std::vector<std::string> reasons;
  for (const Event& event : out.events) reasons.push_back(event.reason);
  return reasons;
}

}  // namespace ringmaster::planner
