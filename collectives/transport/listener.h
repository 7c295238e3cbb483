// The two listening sockets of a process and the thread that answers them, so that a process whose
// own thread is busy still refuses stale peers, parks early ones and tells probes that it lives.
//
// Thread rule: public functions from any thread; the listener's thread owns connections whose Hello
// is not complete.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "collectives/transport/socket.h"
#include "collectives/transport/unique_fd.h"
#include "collectives/transport/wire.h"
#include "common/sync/mutex.h"

namespace ringmaster::transport {

class Listener {
 public:
  // A connection whose Hello was read and found good.
  struct Arrival {
    UniqueFd fd;
    UniqueFd arena;
    Hello hello;
    bool is_unix = false;
  };

  // `unix_fd` may be invalid.
  Listener(UniqueFd tcp_fd, UniqueFd unix_fd, std::string job);
  ~Listener();
  Status Start();

  // From now on Hellos of older epochs are refused, those of this one are there to be taken.
  Status Begin(uint64_t epoch);
  std::vector<Arrival> Take(uint64_t epoch);
  // The newest epoch that was begun or that a peer has announced.
  uint64_t Newest() const;
  // Readable when there may be something to take.
  int event() const { return arrived_.get(); }

 private:
  struct Pending {
    Arrival arrival;
    size_t got = 0;
    Clock::time_point deadline;
  };

  void Loop();
  void Accept(int listening, bool is_unix);
  // True when the connection is settled: parked, answered or closed.
  bool ReadHello(Pending* pending);
  void Settle(Arrival arrival);

  // Constant after Start.
  UniqueFd tcp_fd_;
  UniqueFd unix_fd_;
  const std::string job_;
  UniqueFd stop_;
  UniqueFd arrived_;
  std::thread thread_;

  // Listener's thread only.
  std::vector<Pending> pending_;

  mutable sync::Mutex mu_;
  uint64_t epoch_ GUARDED_BY(mu_) = 0;
  std::map<uint64_t, std::vector<Arrival>> parked_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::transport
