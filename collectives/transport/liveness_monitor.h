// The life of one view as its communicator sees it: dead or alive, and every wait within it.
//
// It dies once, for the first reason that is given: Abort() from any thread, a connection that
// broke, a peer that left. Dying shuts the connections, so that the peers' waits end too. A broken
// connection alone doesn't make its peer a suspect: the peer may live and have given the view up,
// which it says when it is probed. A peer that no longer answers is reported as dead; a peer that
// answers and is still in the view is reported as the other end of a broken link.
//
// Thread rule: Abort() and aborted() from any thread, the rest from the thread of the collective.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/transport/arena.h"
#include "collectives/transport/connection.h"
#include "collectives/transport/peer_connections.h"
#include "collectives/transport/ring_key.h"
#include "collectives/transport/view_death.h"
#include "ringmaster/endpoint.h"

namespace ringmaster::transport {

class LivenessMonitor {
 public:
  struct Options {
    uint64_t epoch = 0;
    int rank = 0;
    Credentials credentials;
    std::vector<PeerEndpoint> peers;
    std::function<void(int rank, const std::string& why)> on_suspect;
    std::function<void(int rank, const std::string& why)> on_broken_link;
    std::function<void()> on_given_up;  // before a peer can see that this rank leaves the view
  };

  explicit LivenessMonitor(Options options);

  // Fixed once the view is built. `spin`: the ranks of this machine have a core each.
  void SetSpin(bool spin) { spin_ = spin; }
  // Null for the own rank and for peers not connected yet.
  void SetConnection(int peer, std::unique_ptr<Connection> connection) {
    connections_.Set(peer, std::move(connection));
  }
  Connection* connection(int peer) const { return connections_[peer]; }

  void Abort(const std::string& why);
  bool aborted() const { return death_.dead(); }
  Status status() const { return death_.status(); }
  int abort_event() const { return death_.event(); }

  // Returns the view's first error; makes this one the first if there was none.
  Status Fail(rm_status code, const std::string& why);
  // Turns what a step of I/O with that peer has returned into a Status. kSome and kNone are OK.
  Status Explain(Progress progress, int peer);
  // Looks for broken connections. `op`: number of the operation in progress.
  Status CheckConnections(uint64_t op);
  // Looks for connections whose packets get lost, which neither end closes.
  Status CheckLinks();
  // Reports that rank as dead, and fails.
  Status Suspect(int peer, const std::string& why, bool forged = false);
  // Reports that the connection to that rank, which lives and is in the view, broke or can't be
  // made. The caller ends the view with Fail().
  void ReportBrokenLink(int peer, const std::string& why);

  // Waits until the flag has reached `count`.
  Status WaitFlag(Flag* flag, uint64_t tag, uint64_t count, uint64_t op);
  // Called after a round of I/O without progress; `idle` counts such rounds. Returns when it makes
  // sense to try again.
  Status WaitIo(std::span<pollfd> wanted, int idle, uint64_t op);

  // Tells all peers that this rank leaves the view after `op` operations, all complete.
  void SendBye(uint64_t op);

 private:
  // The connections of these ranks are closed: asks each rank why.
  Status ExplainClosed(std::span<const int> peers);
  void SayGivenUp() const;

  const Options options_;
  bool spin_ = false;
  std::vector<bool> suspected_;
  std::vector<pollfd> polls_;
  PeerConnections connections_;
  ViewDeath death_;
};

}  // namespace ringmaster::transport
