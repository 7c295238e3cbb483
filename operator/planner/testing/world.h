// Jobs and decisions for tests of the planner: a fluent builder of snapshots, and short forms of
// decisions.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "operator/planner/planner.h"

namespace ringmaster::planner {

inline const Time kNow = *api::ParseTime("2026-01-31T12:00:00Z");

// A job of `n` training pods, from which tests start.
class World {
 public:
  explicit World(int replicas) {
    in.now = kNow;
    in.job.name = "digits";
    in.job.uid = "job-uid";
    in.job.generation = 1;
    in.job.spec.worker.replicas = replicas;
  }
  static World Training(int n) {
    World world(n);
    for (int i = 0; i < n; ++i) world.Running(i).Ready(i);
    world.View(1, n);
    world.Settle();
    return world;
  }

  World& Pending(int index) {
    in.pods.push_back({.name = PodName("digits", index),
                       .uid = Uid(index),
                       .version = "1",
                       .index = index,
                       .created = kNow});
    return *this;
  }
  World& Running(int index) {
    Pending(index);
    PodFacts& pod = in.pods.back();
    pod.phase = PodPhase::kRunning;
    pod.scheduled = true;
    pod.node = "node";
    pod.running_since = kNow;
    pod.accepted = true;
    return *this;
  }
  World& Connected(int index) {
    SidecarFacts sidecar;
    sidecar.pod_name = PodName("digits", index);
    sidecar.pod_uid = Uid(index);
    sidecar.connected = true;
    sidecar.http_address = "10.0.0.1:80";
    sidecar.missing_slots = {0};
    sidecar.candidate.pod.uid = Uid(index);
    sidecar.candidate.pod.name = sidecar.pod_name;
    sidecar.candidate.workers = {
        {.slot = 0, .incarnation = 1, .tcp = "t", .shm = "", .ready = true}};
    in.sidecars.push_back(sidecar);
    return *this;
  }
  World& Ready(int index) {
    Connected(index);
    in.sidecars.back().ready = true;
    in.sidecars.back().ready_since = in.now;
    in.sidecars.back().missing_slots.clear();
    return *this;
  }
  // Pods 0 to n-1 are in view 1.number.
  World& View(std::uint64_t number, int n) {
    std::vector<int> indexes;
    for (int i = 0; i < n; ++i) indexes.push_back(i);
    return Members(number, indexes);
  }
  // The newest view has the pods of these indexes.
  World& Members(std::uint64_t number, const std::vector<int>& indexes) {
    std::vector<membership::Candidate> candidates;
    for (const int i : indexes) candidates.push_back(Sidecar(i).candidate);
    membership::View view = membership::BootstrapView(candidates, 1);
    view.epoch = membership::MakeEpoch(1, number);
    in.view = std::make_shared<const membership::View>(view);
    for (SidecarFacts& sidecar : in.sidecars) {
      if (view.FindPod(sidecar.pod_uid) >= 0) sidecar.epoch = view.epoch;
      sidecar.able = view.FindPod(sidecar.pod_uid) >= 0;
    }
    return *this;
  }
  // All pods leave, and their sidecars say that they know it.
  World& AllKnowThatTheyLeave() {
    for (SidecarFacts& sidecar : in.sidecars) sidecar.knows_that_all_leave = true;
    return *this;
  }
  // The status as the planner would have written it.
  World& Settle() {
    in.job.status = Plan(in).status;
    return *this;
  }
  World& End(int index, PodPhase phase, int exit_code, std::string reason = "") {
    PodFacts& pod = Pod(index);
    pod.phase = phase;
    pod.exit_code = exit_code;
    pod.reason = std::move(reason);
    pod.ended_at = in.now;
    pod.all_terminated = true;
    pod.proven_dead = true;
    pod.proof = "terminated";
    Sidecar(index).connected = false;
    return *this;
  }
  World& Remove(int index) {
    std::erase_if(in.pods, [&](const PodFacts& p) { return p.index == index; });
    Sidecar(index).connected = false;
    return *this;
  }

  // The pod gets a node of its own that is Ready.
  World& On(int index, const std::string& node) {
    Pod(index).node = node;
    if (FindNode(node) == nullptr) {
      in.nodes.push_back(
          {.name = node, .ready = true, .boot_id = "boot-1", .machine = "m " + node});
    }
    return *this;
  }
  NodeFacts* FindNode(const std::string& name) {
    const auto at = std::find_if(in.nodes.begin(), in.nodes.end(),
                                 [&](const NodeFacts& n) { return n.name == name; });
    return at == in.nodes.end() ? nullptr : &*at;
  }
  NodeFacts& Node(const std::string& name) { return *FindNode(name); }

  static std::string Uid(int index) { return "uid-" + std::to_string(index); }
  PodFacts& Pod(int index) {
    return *std::find_if(in.pods.begin(), in.pods.end(),
                         [&](const PodFacts& p) { return p.index == index; });
  }
  SidecarFacts& Sidecar(int index) {
    return *std::find_if(in.sidecars.begin(), in.sidecars.end(),
                         [&](const SidecarFacts& s) { return s.pod_uid == Uid(index); });
  }

  Snapshot in;
};

inline std::vector<int> Created(const Decision& decision) {
  std::vector<int> indexes;
  for (const PodCreate& create : decision.creates) indexes.push_back(create.index);
  return indexes;
}
inline std::vector<std::string> Drained(const Decision& decision) {
  std::vector<std::string> names;
  for (const PodDrain& drain : decision.drains) names.push_back(drain.name);
  return names;
}
inline std::vector<std::string> Deleted(const Decision& decision) {
  std::vector<std::string> names;
  for (const PodDelete& pod : decision.deletes) names.push_back(pod.name);
  return names;
}
template <class T>
std::vector<std::string> Told(const Decision& decision) {
  std::vector<std::string> uids;
  for (const PodNotice& sent : decision.notices) {
    if (std::holds_alternative<T>(sent.notice)) uids.push_back(sent.pod_uid);
  }
  return uids;
}

// The pods that are told to be gone; all sidecars hear the same.
inline std::vector<GonePod> Gone(const Decision& decision) {
  std::vector<GonePod> gone;
  for (const PodNotice& sent : decision.notices) {
    if (const auto* notice = std::get_if<PodsGoneNotice>(&sent.notice)) gone = *notice->pods;
  }
  return gone;
}

}  // namespace ringmaster::planner
