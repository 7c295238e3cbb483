// The two listening sockets of a process and the thread that answers them, so that a process whose
// own thread is busy still refuses stale peers, parks early ones and tells probes that it lives.
//
// Thread rule: public functions from any thread; the listener's thread owns connections whose Hello
// handshake is not complete.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "collectives/transport/handshake.h"
#include "collectives/transport/parked_hellos.h"
#include "collectives/transport/socket.h"
#include "collectives/transport/unique_fd.h"
#include "collectives/transport/wire.h"
#include "common/sync/mutex.h"

namespace ringmaster::transport {

class Listener {
 public:
  // A listening socket and its address as peers know it.
  struct Socket {
    UniqueFd fd;
    std::string address;
  };

  // `unix_socket` may be invalid: then this process is reached over TCP alone.
  Listener(Socket tcp_socket, Socket unix_socket, RingCredentials credentials);
  ~Listener();
  Status Start();

  // From now on every connection has to prove this key. Connections that have proven another key,
  // or none, and that nobody has taken yet are dropped.
  void SetKey(const RingKey& key);
  RingCredentials credentials() const;

  // From now on Hellos of older epochs are refused, and those of this epoch can be taken with
  // Take(). RM_ERR_INVALID if this epoch was begun before, RM_ERR_EPOCH_MOVED if a newer one was.
  Status Begin(uint64_t epoch);
  std::vector<Arrival> Take(uint64_t epoch);
  // This process does not use views up to this epoch any more. The answers to probes say so.
  void GiveUp(uint64_t epoch);
  // The newest epoch that was begun or that a peer has announced.
  uint64_t Newest() const;
  // A descriptor that is readable when there may be something to take.
  int event() const { return arrived_.get(); }

 private:
  // A connection whose dialer has not proven the key yet.
  struct Pending {
    UniqueFd fd;
    UniqueFd arena;
    bool is_unix;
    uint64_t key_number;  // the key_number_ of the key that it has to prove
    Clock::time_point deadline;
    ListenerHandshake handshake;
  };

  void Loop();
  void Accept(const Socket& socket, bool is_unix);
  int Patience() const;
  // Closes the connection that has waited for longest without proof; false if there is none.
  bool GiveUpOldest();
  Pending Begun(UniqueFd fd, const Socket& socket, bool is_unix) const;
  // True when the connection is settled: parked, answered or closed.
  bool Read(Pending* pending);
  ListenerHandshake::Answer AnswerTo(const Hello& hello) const;
  void Park(Pending* pending);

  // Constant after Start.
  Socket tcp_;
  Socket unix_;
  UniqueFd stop_;
  UniqueFd arrived_;
  std::thread thread_;

  // Listener's thread only.
  std::vector<Pending> pending_;  // oldest first

  mutable sync::Mutex mu_;
  uint64_t epoch_ GUARDED_BY(mu_) = 0;
  uint64_t given_up_ GUARDED_BY(mu_) = 0;
  RingCredentials credentials_ GUARDED_BY(mu_);
  uint64_t key_number_ GUARDED_BY(mu_) = 0;  // counts SetKey
  ParkedHellos parked_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::transport
