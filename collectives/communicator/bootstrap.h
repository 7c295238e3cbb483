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
  const std::vector<std::shared_ptr<transport::ArenaMap>>& maps() const { return maps_; }

 private:
  // kAsked: this rank waits for the peer's proof. kAnswered: it waits for the peer's reply, which
  // comes when the peer builds the view, too.
  enum class State { kAbsent, kDialing, kAsked, kAnswered, kReady };
  struct Peer {
    State state = State::kAbsent;
    bool dial = false;  // this rank dials the peer; otherwise the peer dials this rank
    bool use_unix = false;
    transport::UniqueFd fd;
    transport::UniqueFd arena;
    std::optional<transport::DialerHandshake> handshake;
    std::optional<transport::StreamKeys> keys;
    transport::HelloReply reply;
    size_t got = 0;                           // bytes of `reply` received so far
    transport::Clock::time_point not_before;  // of the next attempt
    std::string trouble;  // why the last attempt failed; for the message of a timeout
  };

  Status ConnectAll();
  Status Dial(int rank);
  Status SendHello(int rank);
  // The descriptor of the own arena if the peer is to map it, else -1.
  int ArenaFor(const Peer& peer) const;
  Status ReadChallenge(int rank);
  Status ReadReply(int rank);
  Status OnClosed(int rank);
  Status HandleReply(int rank);
  Status TakeArrivals();
  void Welcome(transport::Arrival arrival);
  Status WaitForEvents();
  Status LookForTheDead();
  bool MayLive(int rank) const;
  Status LookForNewerEpoch();
  Status Lost(int rank, const std::string& why);
  // Maps the arena of that rank. If that fails the two ranks talk over a stream.
  void MapArena(int rank, const transport::UniqueFd& arena, uint64_t id, size_t bytes);
  void TryAgain(int rank, const std::string& why,
                std::chrono::milliseconds pause = std::chrono::milliseconds(5));
  void Ready(int rank);
  Status TimeoutStatus() const;

  transport::EndpointImpl* const endpoint_;
  const CommunicatorOptions& options_;
  transport::LivenessMonitor* const liveness_;
  const bool shm_;
  const int size_;
  const transport::Clock::time_point deadline_;
  const transport::RingCredentials credentials_;

  std::vector<Peer> peers_;
  int missing_ = 0;  // peers that are not kReady yet
  transport::Clock::time_point next_probe_;
  int probe_turn_ = 0;
  std::vector<std::shared_ptr<transport::ArenaMap>> maps_;
  std::vector<uint32_t> groups_;
};

}  // namespace ringmaster::communicator
