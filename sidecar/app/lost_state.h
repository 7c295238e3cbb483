// Looks whether the job's state is lost with the workers that had it, and gives the job up for this
// pod's workers where no operator begins it again.
//
// Thread rule: the sidecar's loop only.
#pragma once

#include <chrono>

#include "sidecar/app/agent_outputs.h"
#include "sidecar/app/departure.h"
#include "sidecar/app/membership_loop.h"
#include "sidecar/app/operator_orders.h"
#include "sidecar/app/state_lost_timer.h"
#include "sidecar/app/worker_table.h"

namespace ringmaster::app {

// The parts that it looks at, and the workers that it tells; they outlive it.
struct LostStateParts {
  const MembershipLoop* membership;
  const Departure* departure;
  const OperatorOrders* orders;
  WorkerTable* table;
};

class LostState {
 public:
  LostState(bool has_operator, std::chrono::seconds operator_patience, AgentClock clock,
            LostStateParts parts);

  void Check();

 private:
  const bool has_operator_;
  const AgentClock clock_;
  const LostStateParts parts_;
  StateLostTimer timer_;
};

}  // namespace ringmaster::app
