// Dials one peer of lower rank until there is a connection to it: finds out at which of its
// addresses it answers, proves the ring key where the job has one, and offers it shared memory.
//
// Owner: Bootstrap, one for each peer that this rank dials. Thread rule: the one thread that builds
// the communicator. Nothing here blocks, but for a probe of a peer that may be dead.
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "collectives/communicator/peer_probes.h"
#include "collectives/communicator/shared_arenas.h"
#include "collectives/transport/handshake.h"
#include "collectives/transport/liveness_monitor.h"
#include "ringmaster/communicator.h"

namespace ringmaster::communicator {

class PeerDialer {
 public:
  // All of them outlive it.
  struct Parts {
    const CommunicatorOptions* options;
    const transport::RingCredentials* credentials;
    const PeerProbes* probes;
    SharedArenas* arenas;
    transport::LivenessMonitor* liveness;
  };
  PeerDialer(const Parts& parts, int rank);

  // No attempt is under way, and it is time for the next one.
  bool MayDial(transport::Clock::time_point now) const {
    return state_ == State::kAbsent && now >= not_before_;
  }
  // An error of this and of OnEvent() ends the view: the peer is dead, has moved on, or is none.
  Status Dial();

  // What to hand to poll(2); no value: no attempt is under way.
  std::optional<pollfd> Awaited() const;
  // poll(2) has something to report of it.
  Status OnEvent();

  bool connected() const { return state_ == State::kConnected; }
  // Call it once, when connected().
  std::unique_ptr<transport::Connection> TakeConnection();
  // Why the last attempt failed; for the message of a timeout.
  const std::string& trouble() const { return trouble_; }

 private:
  // kAsked: this rank waits for the peer's proof. kAnswered: it waits for the peer's reply, which
  // comes when the peer builds the view, too.
  enum class State { kAbsent, kDialing, kAsked, kAnswered, kConnected };

  const PeerEndpoint& where() const { return parts_.options->peers[static_cast<size_t>(rank_)]; }
  // The descriptor of the own arena if the peer is to map it, else -1.
  int OfferedArena() const { return use_unix_ ? parts_.arenas->own().fd() : -1; }
  Status FinishDialing();
  Status SendHello();
  Status ReadChallenge();
  Status ReadReply();
  Status HandleReply();
  Status OnClosed();
  Status Lost(const std::string& why) { return parts_.liveness->Suspect(rank_, why); }
  void TryAgain(const std::string& why,
                std::chrono::milliseconds pause = std::chrono::milliseconds(5));

  const Parts parts_;
  const int rank_;

  State state_ = State::kAbsent;
  bool use_unix_;
  transport::UniqueFd fd_;
  transport::UniqueFd arena_;
  std::optional<transport::DialerHandshake> handshake_;
  std::optional<transport::StreamKeys> keys_;
  transport::HelloReply reply_;
  size_t got_ = 0;                           // bytes of `reply_` received so far
  transport::Clock::time_point not_before_;  // of the next attempt
  std::string trouble_;
};

}  // namespace ringmaster::communicator
