// A view as a worker sees it: which ranks it has, and which of them is this worker
// (docs/contracts.md, section 3). The sidecars' view, with pods and a coordinator, is
// membership::View; elastic/view_frame.h makes a WorkerView from its JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ringmaster/communicator.h"

namespace ringmaster::engine {

struct WorkerView {
  uint64_t epoch = 0;
  uint64_t parent = 0;
  std::string reason;               // why the view was made, in one word: "PodLost"
  bool train = true;                // false: the job is below minReplicas, and no step may begin
  bool only = false;                // no other view will follow, whoever dies
  bool planned = false;             // it comes from a planned change, so nothing was interrupted
  std::vector<PeerEndpoint> peers;  // by rank
  // By rank: the name of the process that has the rank. In a later view another process may have
  // the rank, but a name always means the same process.
  std::vector<std::string> workers;
  int self = -1;       // this worker's rank; -1: it is not in the view
  bool holds = false;  // the members count this worker among those that have the job's state

  int size() const { return static_cast<int>(peers.size()); }
};

// Which worker a rank means in this step's calls: the ranks of the view in which the step began. A
// fault within the step doesn't move them, so a call means the same on all ranks, before and after.
struct StepRanks {
  uint64_t epoch = 0;                // of that view; 0: no step has begun
  std::vector<std::string> workers;  // by rank
};

// A view's epoch as status and logs show it, "lineage.number": "1.12".
inline std::string ViewNumber(uint64_t epoch) {
  return std::to_string(epoch >> 40) + "." + std::to_string(epoch & ((uint64_t{1} << 40) - 1));
}

// The message for a worker that the view does not list.
inline std::string GoesOnWithout(const WorkerView& view) {
  return "view " + ViewNumber(view.epoch) + " of the job (" + view.reason +
         ") goes on without this worker";
}

// What rm_rank(), rm_size() and the like return.
struct Membership {
  uint64_t epoch = 0;
  int rank = -1;
  int size = 0;
  int local_rank = 0;
  int local_size = 0;
  int cross_rank = 0;
  int cross_size = 0;
};

inline Membership MembershipOf(const WorkerView& view) {
  Membership m{view.epoch, view.self, view.size(), 0, 0, 0, 0};
  if (view.self < 0) return m;
  std::vector<int> pods;  // in rank order
  for (int rank = 0; rank < view.size(); ++rank) {
    const int pod = view.peers[rank].pod;
    if (pods.empty() || std::find(pods.begin(), pods.end(), pod) == pods.end()) pods.push_back(pod);
    if (pod != view.peers[view.self].pod) continue;
    if (rank < view.self) ++m.local_rank;
    ++m.local_size;
  }
  m.cross_size = static_cast<int>(pods.size());
  m.cross_rank = static_cast<int>(std::find(pods.begin(), pods.end(), view.peers[view.self].pod) -
                                  pods.begin());
  return m;
}

}  // namespace ringmaster::engine
