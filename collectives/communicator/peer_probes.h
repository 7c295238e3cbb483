// Asks peers whether they live, while a view is built: one that has closed its connection, and in
// turn those that this rank only waits for.
//
// Owner: Bootstrap. Thread rule: the one thread that builds the communicator.
#pragma once

#include <functional>
#include <optional>

#include "collectives/transport/endpoint.h"
#include "collectives/transport/handshake.h"
#include "ringmaster/communicator.h"

namespace ringmaster::communicator {

class PeerProbes {
 public:
  static constexpr std::chrono::milliseconds kEvery{20};

  // `options` outlive it. `deadline`: by then the view is built or has failed.
  PeerProbes(const CommunicatorOptions& options, transport::RingCredentials credentials,
             transport::Clock::time_point now, transport::Clock::time_point deadline);

  // False: the rank has not answered a probe in time. What is cut short by the deadline proves
  // nothing.
  bool MayLive(int rank) const;

  // It is time to probe again; true once in kEvery.
  bool TakeDue(transport::Clock::time_point now);
  // Whose turn it is among the ranks that are `awaited`; no value: none is.
  std::optional<int> NextOf(const std::function<bool(int rank)>& awaited);

 private:
  const CommunicatorOptions& options_;
  const transport::RingCredentials credentials_;
  const transport::Clock::time_point deadline_;
  transport::Clock::time_point next_at_;
  int turn_ = 0;  // the rank to begin with
};

}  // namespace ringmaster::communicator
