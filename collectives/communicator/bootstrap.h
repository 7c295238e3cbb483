// Connects one rank with all others of a view, finds out which ranks share memory, and returns when
// all have done so.
//
// The higher rank of a pair dials the lower one: at its abstract unix socket if both want shared
// memory, else at its TCP port. If the job has a ring key, both prove that they hold it; a process
// that can't is not taken for a peer, whatever it says. Then rank 0 hears from each rank which
// arenas it could map, and tells all ranks the groups. So a rank that returns knows that every
// member has come this far.
//
// Owner and thread: one call of Communicator::Create.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/communicator/peer_dialer.h"
#include "collectives/communicator/peer_probes.h"
#include "collectives/communicator/shared_arenas.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/handshake.h"
#include "collectives/transport/liveness_monitor.h"
#include "ringmaster/communicator.h"

namespace ringmaster::communicator {

class Bootstrap {
 public:
  Bootstrap(transport::EndpointImpl* endpoint, const CommunicatorOptions& options,
            transport::LivenessMonitor* liveness);

  Status Run();

  // After Run: the group of each rank; ranks of a group have mapped each other's arenas.
  const std::vector<uint32_t>& groups() const { return groups_; }
  // By rank: the arena of each rank that this one has mapped, its own included; null for the
  // others.
  const std::vector<std::shared_ptr<transport::ArenaMap>>& maps() const { return arenas_.maps(); }

 private:
  struct Peer {
    std::optional<PeerDialer> dialer;  // no value: the peer dials this rank
    bool ready = false;
    std::string trouble;  // of one that dials: why its arena can't be mapped
  };

  int size() const { return static_cast<int>(peers_.size()); }
  Peer& PeerOf(int rank) { return peers_[static_cast<size_t>(rank)]; }
  Status ConnectAll();
  void Ready(int rank, std::unique_ptr<transport::Connection> connection);
  void TakeArrivals();
  void Welcome(transport::Arrival arrival);
  Status WaitForEvents();
  Status LookForTheDead();
  Status LookForNewerEpoch();
  Status TimeoutStatus();

  transport::Listener& listener_;
  const CommunicatorOptions& options_;
  transport::LivenessMonitor* const liveness_;
  const transport::Clock::time_point deadline_;
  const transport::RingCredentials credentials_;

  SharedArenas arenas_;
  PeerProbes probes_;
  std::vector<Peer> peers_;
  int missing_ = 0;  // peers that are not ready yet
  std::vector<uint32_t> groups_;
};

}  // namespace ringmaster::communicator
