// Connections that wait until this process builds their view. They have proven the key. Their
// number and the time that they wait are bounded.
//
// Thread rule: the owner's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "collectives/transport/handshake.h"
#include "collectives/transport/socket.h"
#include "collectives/transport/unique_fd.h"

namespace ringmaster::transport {

// A connection whose Hello was read and accepted.
struct Arrival {
  UniqueFd fd;
  UniqueFd arena;
  Hello hello;
  bool is_unix = false;
  uint32_t wanted_rank = kAnyRank;  // kAnyRank without a key: then the dialer doesn't say it
  std::optional<StreamKeys> keys;   // none: what follows its HelloReply isn't encrypted
};

class ParkedHellos {
 public:
  struct Limits {
    size_t epochs = 8;  // views with parked connections; those of the oldest view are closed first
    size_t arrivals = 16384;       // of all epochs
    std::chrono::seconds age{60};  // longer than a dialer waits before it dials again
  };

  ParkedHellos() : ParkedHellos(Limits()) {}
  explicit ParkedHellos(Limits limits) : limits_(limits) {}

  // The newest connection of a rank takes the place of an older one, which its dialer has given up.
  // A connection beyond the limits is closed; its dialer tries again.
  void Add(Arrival arrival, Clock::time_point now);
  std::vector<Arrival> Take(uint64_t epoch);
  // Takes all connections of older epochs.
  std::vector<Arrival> TakeBefore(uint64_t epoch);
  void Expire(Clock::time_point now);
  void Clear() { by_epoch_.clear(); }

  uint64_t newest() const { return by_epoch_.empty() ? 0 : by_epoch_.rbegin()->first; }
  size_t size() const;

 private:
  struct Parked {
    Arrival arrival;
    Clock::time_point since;
  };
  using ByRank = std::map<uint32_t, Parked>;

  static void Release(ByRank ranks, std::vector<Arrival>* out);

  const Limits limits_;
  std::map<uint64_t, ByRank> by_epoch_;
};

// Whether a view of `epoch` may follow the one of `current`. A Hello of an epoch that can't follow
// must be ignored: if it were believed, every view would look outdated.
bool MayFollow(uint64_t epoch, uint64_t current);

}  // namespace ringmaster::transport
