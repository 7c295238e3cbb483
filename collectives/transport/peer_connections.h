// The connections of one view, and what can be seen of their other ends without consuming a byte.
//
// Owned by LivenessMonitor. Thread rule: Shutdown() from any thread, the rest from the thread of
// the collective.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/transport/connection.h"
#include "common/sync/mutex.h"

namespace ringmaster::transport {

class PeerConnections {
 public:
  explicit PeerConnections(size_t ranks) : connections_(ranks) {}

  // Null for the own rank and for peers not connected yet.
  void Set(int peer, std::unique_ptr<Connection> connection);
  Connection* operator[](int peer) const { return connections_[static_cast<size_t>(peer)].get(); }
  // Shuts down all connections, and those that are set later.
  void Shutdown();

  // The peers that have closed their ends. A peer that has left the view after `op` operations or
  // more is not among them, and neither is one whose data is still unread: the operation that waits
  // for that data decides.
  struct Ended {
    std::optional<int> left_early;  // a peer that has left sooner; if set, `broken` is incomplete
    std::vector<int> broken;        // peers that have closed without a goodbye
  };
  Ended FindEnded(uint64_t op);
  // Peers to which packets get lost, which neither end closes.
  std::vector<int> FindDeadLinks() const;

  // Tells all peers that this rank leaves the view of `epoch` after `op` operations.
  void SendBye(uint64_t epoch, uint64_t op) const;

 private:
  std::vector<std::unique_ptr<Connection>> connections_;  // by rank
  std::vector<pollfd> polls_;
  sync::Mutex mu_;  // Shutdown() walks over the connections while others are set
  bool shut_ GUARDED_BY(mu_) = false;
};

}  // namespace ringmaster::transport
