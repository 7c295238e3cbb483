#include "collectives/communicator/peer_probes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "collectives/transport/probe.h"

namespace ringmaster::communicator {

using transport::Clock;

PeerProbes::PeerProbes(const CommunicatorOptions& options, transport::RingCredentials credentials,
                       Clock::time_point now, Clock::time_point deadline)
    : options_(options),
      credentials_(std::move(credentials)),
      deadline_(deadline),
      next_at_(now + kEvery) {}

bool PeerProbes::MayLive(int rank) const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
  return transport::ProbeAlive(options_.peers[static_cast<size_t>(rank)], credentials_,
                               std::min(options_.probe_limit, left)) ||
         Clock::now() >= deadline_;
}

bool PeerProbes::TakeDue(Clock::time_point now) {
  if (now < next_at_) return false;
  next_at_ = now + kEvery;
  return true;
}

std::optional<int> PeerProbes::NextOf(const std::function<bool(int rank)>& awaited) {
  const int size = static_cast<int>(options_.peers.size());
  for (int i = 0; i < size; ++i) {
    const int rank = (turn_ + i) % size;
    if (!awaited(rank)) continue;
    turn_ = rank + 1;
    return rank;
  }
  return std::nullopt;
}

}  // namespace ringmaster::communicator
