// A view as a worker sees it: which ranks take part, and which of them it is (docs/contracts.md,
// section 3). The sidecars' view, with pods and a coordinator, is membership::View;
// elastic/view_frame.h makes this one of its JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ringmaster/communicator.h"

namespace ringmaster::engine {

struct View {
  uint64_t epoch = 0;
  uint64_t parent = 0;
  std::string reason;
  bool train = true;
  bool planned = false;
  std::vector<PeerEndpoint> peers;  // by rank
  // By rank: a name of the process that has the rank. A rank may move to another process in a later
  // view; such a name always means the same process.
  std::vector<std::string> workers;
  int self = -1;       // own rank; -1: not in it
  bool holds = false;  // the members count this worker among those that have the job's state

  int size() const { return static_cast<int>(peers.size()); }
};

// The number of a view as status and logs show it: "1.12".
inline std::string ViewNumber(uint64_t epoch) {
  return std::to_string(epoch >> 40) + "." + std::to_string(epoch & ((uint64_t{1} << 40) - 1));
}

// The message for a worker that the view does not list.
inline std::string GoesOnWithout(const View& view) {
  return "view " + ViewNumber(view.epoch) + " of the job (" + view.reason +
         ") goes on without this worker";
}

// What rm_rank() and its like answer.
struct Membership {
  uint64_t epoch = 0;
  int rank = -1;
  int size = 0;
  int local_rank = 0;
  int local_size = 0;
  int cross_rank = 0;
  int cross_size = 0;
};

inline Membership MembershipOf(const View& view) {
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
