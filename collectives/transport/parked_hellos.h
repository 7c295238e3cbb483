// Connections that wait until this process builds their view. They have proven the key; their
// number and their time are bounded.
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

// A connection whose Hello was read and found good.
struct Arrival {
  UniqueFd fd;
  UniqueFd arena;
  Hello hello;
  bool is_unix = false;
  uint32_t wanted_rank = kAnyRank;  // without a key it doesn't say
  std::optional<StreamKeys> keys;   // it is encrypted from its HelloReply on; none: it isn't
};

class ParkedHellos {
 public:
  struct Limits {
    size_t epochs = 8;             // views follow one another: those behind are given up
    size_t arrivals = 16384;       // of all epochs
    std::chrono::seconds age{60};  // a peer waits less long and then dials again
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

// Whether a view of `epoch` may follow the one of `current`. A Hello of an epoch that can't
// follow must be ignored: believed, it would make every view look outdated.
bool MayFollow(uint64_t epoch, uint64_t current);

}  // namespace ringmaster::transport
