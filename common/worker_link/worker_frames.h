// What a worker and its sidecar say to each other (docs/contracts.md, section 2): the frames' names
// and fields, in one place for a worker's library, the launcher's stand-in and the sidecar.
//
// Pure. A peer may send anything, so reading is lenient: fields that are absent or of another type
// count as empty.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/job/gpu_health.h"
#include "common/job/rebuild.h"
#include "common/job/stall.h"
#include "common/job/worker_times.h"

namespace ringmaster::worker_link {

// ---- From a worker

// The first frame of each connection.
struct WorkerHello {
  std::optional<std::string> library;  // its version; a stand-in has none
  int slot = -1;
  uint64_t incarnation = 0;
  int64_t pid = 0;
  bool standby = false;
  std::string tcp, shm;  // where the other ranks reach it
  uint64_t epoch = 0;    // the view that it has installed; 0: none
  uint64_t given = 0;    // the newest view that it was sent and is in
  bool keeps_timeline = false;
};
nlohmann::json ToFrame(const WorkerHello& hello);
WorkerHello ReadWorkerHello(const nlohmann::json& frame);

// What a `ping` carries besides its number.
struct PingReport {
  uint64_t epoch = 0;
  uint64_t step = 0;              // completed steps
  uint64_t ran = 0;               // the newest view in which an operation has completed here
  std::optional<uint64_t> holds;  // the newest view in which it has the job's state; 0: none
  bool busy = false;
  std::optional<job::WorkerTimes> times;
  std::map<std::string, double> values;
  std::vector<job::Stall> stalls;
  std::optional<job::GpuHealth> gpu;  // where it has changed since the last ping
};
nlohmann::json PingFields(const PingReport& report);
// `fields`: made by PingFields.
nlohmann::json PingFrame(uint64_t number, nlohmann::json fields);

// A worker can't go on in a view. Not `broken`: it can't reach `rank` and believes that it is lost.
// `broken`: its connection to `rank`, which lives, broke or could not be made; -1: not known.
struct ViewTrouble {
  uint64_t epoch = 0;
  int rank = -1;
  std::string reason;
  bool broken = false;
};
nlohmann::json ToFrame(const ViewTrouble& trouble);
ViewTrouble ReadViewTrouble(const nlohmann::json& frame);

// The first operation of a view has completed. `step`: steps completed by now; `resumed`: completed
// steps from which the worker went on.
nlohmann::json RebuiltFrame(uint64_t epoch, const job::PhaseSeconds& seconds, uint64_t step,
                            uint64_t resumed);
// Only epoch, seconds and steps_resumed are set.
job::Rebuild ReadRebuilt(const nlohmann::json& frame);

// `takes_state`: the worker can take over the state of other workers.
nlohmann::json EnterFrame(bool takes_state);
bool TakesState(const nlohmann::json& enter);
// `holds`: as in a ping.
nlohmann::json StoppedFrame(uint64_t epoch, std::optional<uint64_t> holds);
// nullopt `connect_seconds`: the worker has connected nothing.
nlohmann::json InstalledFrame(uint64_t epoch, std::optional<double> connect_seconds);
nlohmann::json BoundaryFrame(uint64_t epoch, uint64_t step);
nlohmann::json RestingFrame(uint64_t epoch);
nlohmann::json WokenFrame();
nlohmann::json FinishedFrame(uint64_t epoch);
nlohmann::json TimelinePieceFrame(uint64_t request, const std::string& text, bool last);
nlohmann::json ByeFrame(const std::string& reason);

// ---- To a worker

// Where a worker is in its job, or will probably be.
struct WorkerPlace {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
};

struct Welcome {
  std::string job, pod;  // the job's uid and the pod's name
  int slot = 0;
  uint64_t incarnation = 0;
  std::string state;  // bootstrap, joining, standby or member
  uint64_t epoch = 0;
  WorkerPlace place;
  bool rests = false;  // the sidecar knows the frame `resting`
  int64_t ping_ms = 250;
  int64_t fence_ms = 10000;
  std::string ring_key;  // base64; empty: the job has none
};
nlohmann::json ToFrame(const Welcome& welcome);
Welcome ReadWelcome(const nlohmann::json& frame);

// Tells a standby that it has this slot from now on.
nlohmann::json PromotedFrame(int slot, uint64_t incarnation, const WorkerPlace& place);
nlohmann::json StopFrame(uint64_t epoch);
nlohmann::json ArmFrame(uint64_t epoch);
nlohmann::json LeftFrame(uint64_t epoch, const std::string& reason);
nlohmann::json ErrorFrame(const std::string& message);
nlohmann::json PongFrame(int64_t number);

}  // namespace ringmaster::worker_link
