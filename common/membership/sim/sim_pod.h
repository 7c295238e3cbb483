// A simulated pod: its sidecar with the real Member, and its workers. Plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/membership/member.h"
#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/random.h"

namespace ringmaster::membership::sim {

// The uid of a pod is made of its number.
inline std::string UidOf(int pod) { return "p" + std::to_string(pod); }
inline int IndexOf(const std::string& uid) {
  int index = 0;
  for (std::size_t i = 1; i < uid.size(); ++i) index = index * 10 + (uid[i] - '0');
  return index;
}

// How many pods the job wants, and how many workers are in each.
struct JobSize {
  int slots = 1, wanted = 1;
  std::uint32_t min_pods = 1;
  std::vector<std::uint32_t> allowed;  // empty: every number of pods

  membership::Sizes Sizes() const { return {min_pods, allowed}; }
};

struct SimWorker {
  std::uint64_t incarnation = 1;
  bool alive = true;
  bool ready = false;
  bool used = false;  // has been in a view
  Epoch installed = 0;
  Epoch newest = 0;   // the newest view that it was given
  Epoch stopped = 0;  // it uses no view up to this one any more
  Epoch armed = 0;
  Epoch boundary = 0;      // stands at the boundary of this view
  bool holds = false;      // it holds the job's state
  std::int64_t step = -1;  // -1: no state at all
  std::uint64_t hash = 0;
};

struct SimPod {
  std::string uid;
  Pod pod;
  std::uint32_t life = 0;  // rises when the sidecar dies
  bool up = false;
  bool gone = false;      // dead for good
  bool started = false;   // its sidecar has run
  Micros proven_at = -1;  // when its death is proven; -1: never
  bool leaving = false;
  Micros paused_until = 0;
  std::uint64_t next_incarnation = 1;
  std::optional<PersistentState> disk;
  std::unique_ptr<Member> member;
  std::vector<SimWorker> workers;
  int crash_after = -1;  // the sidecar dies after so many more actions

  // The sidecar's memory.
  Epoch stop_wanted = 0;
  Epoch arm_wanted = 0;
  // When the last frame in each direction of the worker link arrives: frames keep their order.
  Micros to_workers = 0, from_workers = 0;
  Micros timer = -1;
  std::vector<Micros> heard;

  bool ProvenDead(Micros now) const { return proven_at >= 0 && proven_at <= now; }
  // Draws whether and when there is a proof that the pod is dead. `chance`: per thousand.
  void ProveLater(int chance, Micros now, Random* random) {
    if (random->Chance(chance)) proven_at = now + random->Below(3000 * kMs);
  }
};

}  // namespace ringmaster::membership::sim
