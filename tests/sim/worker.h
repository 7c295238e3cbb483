// A simulated worker process: what its library and its script know, as far as the sidecar can see
// it. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "collectives/engine/recovery.h"
#include "collectives/engine/result_log.h"
#include "common/membership/view.h"
#include "sidecar/app/agent.h"
#include "tests/sim/ring.h"
#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

using nlohmann::json;

enum class Role : std::uint8_t { kUnknown, kBootstrap, kJoining, kStandby, kMember };
enum class Phase : std::uint8_t { kNoView, kConnecting, kConnected, kActive, kBroken };

struct Worker {
  int pod = 0, slot = -1;
  std::uint64_t incarnation = 0;
  std::int64_t pid = 0;
  bool standby = false;  // began as one
  bool alive = true;
  Micros stopped_until = 0;                   // by a signal
  std::vector<std::function<void()>> asleep;  // what came meanwhile

  // collectives/sidecar_client
  std::uint64_t stream = 0;  // 0: not connected
  bool welcomed = false;
  bool fenced = false;
  std::deque<json> queued;  // for the next welcome
  Micros connect_wait = 0;
  Micros answered = 0;  // when the last answered ping was sent; 0: none
  std::uint64_t pings = 0;
  std::map<std::uint64_t, Micros> unanswered;

  // collectives/elastic
  Role role = Role::kUnknown;
  bool user_waits = false, wants_to_enter = false;
  Epoch reported_installed = 0;
  Epoch boundary_epoch = 0;
  std::int64_t boundary_step = 0;

  // collectives/engine
  ViewPtr view;
  Epoch epoch = 0;  // newest that it was given
  Epoch given = 0;  // the same, until it hears that it is in no view any more
  Phase phase = Phase::kNoView;
  Epoch stopped = 0, armed = 0, ran = 0, held = 0;
  bool has_state = true;
  bool entered = false, detached = false, standing = false, ended = false;
  bool rebuild_pending = false;
  std::set<int> suspected;    // ranks of the view
  std::optional<int> broken;  // what it has said of the view: the link that broke, -1: unknown
  std::int64_t step = 0;
  Epoch finished = 0;  // the ranks of this view agreed to end

  // Its operations: which call of the view's ring it is in or comes to next, and what it keeps.
  Call call = Call::kExchange;
  std::size_t place = 0;   // of that call in the ring
  bool in_call = false;    // it has given its part
  bool busy = false;       // on its way through calls; else it waits for its script
  std::uint64_t turn = 0;  // rises when it is interrupted
  engine::RecoveryPlan plan;
  std::size_t handover = 0;                  // of the plan, the next one
  std::size_t agreed = 0;                    // operations of the round that are still to run
  bool armed_round = false;                  // the round's step end is the boundary
  std::optional<engine::Retained> executed;  // not confirmed yet
  engine::ResultLog log;

  // What its script has seen: results of the step that is under way, and all results ever.
  std::size_t done = 0;
  std::uint64_t model = 0;
  std::map<std::uint64_t, std::uint64_t> recent;  // results by number, the last few

  bool holds = false;  // the truth, which it doesn't know itself
};

using WorkerPtr = std::shared_ptr<Worker>;

// It lives, and has not given this view up. `worker` may be null.
inline bool InView(const WorkerPtr& worker, Epoch epoch) {
  return worker != nullptr && worker->alive && worker->epoch == epoch &&
         worker->phase != Phase::kNoView;
}
// What it gives to the next call of its ring.
Given GivenBy(const Worker& worker);

}  // namespace ringmaster::app::sim
