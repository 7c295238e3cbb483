// What a worker's time is spent on. Its engine measures it, a ping brings it to the sidecar, and
// /status and the metrics show it. All values are sums since the worker was in its first view, so
// two looks tell what happened between them (Between).
//
// A plain value that knows no socket and no clock.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace ringmaster::job {

struct WorkerTimes {
  double seconds = 0;  // since the worker was in its first view
  // Seconds in which the script stood in a call of the library until a collective was done.
  double blocked = 0;
  // Seconds in which a collective that this worker asked for waited for other ranks that had not
  // asked for it yet. The script may have computed meanwhile. The rank that the others wait for has
  // the least of it.
  double waiting = 0;
  // Seconds in which a collective ran.
  double running = 0;
  std::uint64_t bytes = 0;  // of tensors, in collectives that have run

  friend bool operator==(const WorkerTimes&, const WorkerTimes&) = default;
};

nlohmann::json ToJson(const WorkerTimes& times);
// Fields that are missing, negative or no numbers become 0.
WorkerTimes WorkerTimesFromJson(const nlohmann::json& json);
// What was added between `earlier` and `later`. A field that is smaller in `later` comes from
// another process, so it counts from 0.
WorkerTimes Between(const WorkerTimes& earlier, const WorkerTimes& later);

}  // namespace ringmaster::job
