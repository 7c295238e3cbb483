// A view: one immutable membership of a job, the value that its members agree on.
//
// Plain data, no threads. Views are shared as `ViewPtr` and never changed once they are made. The
// JSON text that crosses process boundaries is view_json.h; docs/contracts.md section 3 shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::membership {

// A view's lineage and number as one integer, only ever rising: `L << 40 | n`. 0 is no view.
using Epoch = std::uint64_t;

inline constexpr int kEpochNumberBits = 40;

constexpr Epoch MakeEpoch(std::uint64_t lineage, std::uint64_t number) {
  return lineage << kEpochNumberBits | number;
}
constexpr std::uint64_t EpochLineage(Epoch epoch) { return epoch >> kEpochNumberBits; }
constexpr std::uint64_t EpochNumber(Epoch epoch) {
  return epoch & ((Epoch{1} << kEpochNumberBits) - 1);
}
// What people see: `1.7`.
std::string EpochText(Epoch epoch);

// A pod of a view. Identity is `uid` with `incarnation`: a sidecar that lost its state file has a
// new incarnation.
struct Pod {
  std::string uid;
  std::string name;
  std::uint64_t incarnation = 0;
  std::string node;
  std::string zone;
  std::string address;    // rendezvous service, host:port or unix:/path
  std::string heartbeat;  // heartbeat listener, host:port
  std::string http;       // /healthz /metrics /status, host:port
  // Its heartbeats prove that it holds the job's key. A sidecar of an older version never sets
  // this, and drops it from the entries of other pods in a view that it proposes.
  bool proves_heartbeats = false;
  // It reads a view that is sent as what changed against another one (view_changes.h). Sidecars of
  // older versions treat this field as they treat the one above.
  bool reads_changes = false;

  bool operator==(const Pod&) const = default;
};

// A worker of a view; its place in `View::ranks` is its rank.
struct RankEntry {
  std::uint32_t pod = 0;  // index into View::pods
  std::uint32_t slot = 0;
  std::uint64_t incarnation = 0;  // of the worker process in its slot
  std::string tcp;
  std::string shm;
  // Gets the state in this view, and has no part in the operations that were interrupted before it.
  bool joined = false;

  bool operator==(const RankEntry&) const = default;
};

enum class Reason : std::uint8_t {
  kBootstrap,
  kWorkerLost,       // a worker process died, its sidecar lives
  kPodLost,          // a pod went silent
  kPodDrained,       // a pod left by plan
  kWorkerJoined,     // a worker restarted in place
  kPodJoined,        // a new pod
  kRejoin,           // a pod that a wrong suspicion had dropped
  kQuorumRecovered,  // a new lineage, from the pods that were left (rule 9)
  // A connection broke between two living workers: all connect anew, or one pod is left out.
  kLinkBroken,
};
std::string_view ReasonText(Reason reason);

struct View {
  Epoch epoch = 0;
  Epoch parent = 0;
  Reason reason = Reason::kBootstrap;
  bool train = true;     // false below min_pods: workers finish the step and stand at the boundary
  bool planned = false;  // made at a boundary: nothing was interrupted
  std::string coordinator;
  std::vector<Pod> pods;
  std::vector<RankEntry> ranks;

  bool operator==(const View&) const = default;

  // Index of the pod, or -1.
  int FindPod(std::string_view uid) const;
  // Index of the pod if it is listed with this very incarnation, or -1.
  int FindMember(std::string_view uid, std::uint64_t incarnation) const;
  // Rank of the worker, or -1.
  int FindRank(std::string_view uid, std::uint32_t slot, std::uint64_t incarnation) const;
};

using ViewPtr = std::shared_ptr<const View>;

inline Epoch EpochOf(const ViewPtr& view) { return view ? view->epoch : 0; }

// One living worker process, as a sidecar reports it.
struct Worker {
  std::uint32_t slot = 0;
  std::uint64_t incarnation = 0;
  std::string tcp;
  std::string shm;
  // Has sent `enter` since it was last notified that it is in no view, so it may be put into one.
  bool ready = false;
  // Has built a view, so its memory is no longer that of a fresh process.
  bool used = false;
  // Can take over the state from other workers. A worker that can't may only be in a view in which
  // all begin together.
  bool loads = true;
  // The newest view in which it has the job's state. A joiner gets it before the view's first
  // operation.
  Epoch holds = 0;

  bool operator==(const Worker&) const = default;
};

// A pod and its workers, as they apply for a view.
struct Candidate {
  Pod pod;
  std::vector<Worker> workers;

  bool operator==(const Candidate&) const = default;
};

// Compares digits as numbers: worker-9 comes before worker-10, and worker-1 equals worker-01.
bool NaturalLess(std::string_view a, std::string_view b);
// By zone, node, then pod name. The order of newcomers that join together.
bool TopologyLess(const Pod& a, const Pod& b);

using PodOrder = std::function<bool(const Pod&, const Pod&)>;
// The first view of a job (`1.1`): ranks in this order, so that neighbours in the ring are near.
// The first pod is the coordinator.
View BootstrapView(std::vector<Candidate> candidates, std::uint32_t min_pods,
                   const PodOrder& order = TopologyLess);

// For people: `1.7 PodLost: 3 pods, 3 ranks, coordinator digits-worker-0`.
std::string Describe(const View& view);

}  // namespace ringmaster::membership
