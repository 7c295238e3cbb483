// The life of one view as its communicator sees it: whether it is alive or dead, and every wait
// within it.
//
// The view dies once, for the first reason that is given: Abort() from any thread, a connection
// that broke, a peer that left. Its death shuts the connections down, so that the waits of the
// peers end too. A broken connection alone doesn't make its peer a suspect: the peer may live and
// have given the view up, which it says when it is probed. A peer that no longer answers is
// reported as dead; a peer that answers and is still in the view is reported as the other end of a
// broken link.
//
// Thread rule: Abort() and aborted() from any thread, the rest from the thread of the collective.
#pragma once

#include <poll.h>

#include <chrono>
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
    RingCredentials credentials;
    std::vector<PeerEndpoint> peers;
    std::chrono::milliseconds probe_limit{500};  // CommunicatorOptions::probe_limit
    std::function<void(int rank, const std::string& why)> on_suspect;
    std::function<void(int rank, const std::string& why)> on_broken_link;
    // Called before a peer can see that this rank leaves the view.
    std::function<void()> on_given_up;
  };

  explicit LivenessMonitor(Options options);

  // Called once, when the view has been built. `spin`: each rank of this machine has a core of its
  // own.
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

  // Ends the view for this reason, and returns it. If the view is dead already, returns the reason
  // of its death, with RM_ERR_EPOCH_MOVED.
  Status Fail(rm_status code, const std::string& why);
  // Turns what a step of I/O with that peer has returned into a Status. kSome and kNone are OK.
  Status Explain(Progress progress, int peer);
  // Looks for connections that the other end has closed. `op`: number of the operation in progress.
  Status CheckConnections(uint64_t op);
  // Looks for connections whose packets get lost, which neither end closes (IsDeadLink).
  Status CheckLinks();
  // Reports that rank as dead, and ends the view. `forged`: bytes came over its connection that it
  // has not sent; otherwise it doesn't answer.
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
  // The connections to these ranks are closed or dead: probes each rank to learn why.
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
