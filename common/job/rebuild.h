// The change from one view of a job to the next, and how long its phases took. A sidecar keeps it,
// shows it in /status and reports it to the operator, and the command line tells it to people.
//
// A plain value that knows no socket and no clock.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::job {

// The phases of a rebuild (docs/contracts.md, section 5).
inline constexpr char kDetect[] = "detect";
inline constexpr char kDecide[] = "decide";
inline constexpr char kStop[] = "stop";  // a part of kDecide
inline constexpr char kConnect[] = "connect";
inline constexpr char kRedo[] = "redo";
inline constexpr char kResume[] = "resume";
// In the order of time.
inline constexpr const char* kPhases[] = {kDetect, kDecide, kStop, kConnect, kRedo, kResume};

using PhaseSeconds = std::map<std::string, double>;  // by phase; an absent phase is not known

struct Rebuild {
  std::uint64_t epoch = 0;
  std::uint64_t parent = 0;
  std::string reason;
  bool planned = false;
  std::int64_t at_unix_ms = 0;  // when the sidecar that reports it noticed it; 0: not known
  int world_size = 0;
  std::vector<std::string> members;  // names of workers: the pod, with /slot where it has several
  std::vector<std::string> left;
  std::vector<std::string> joined;
  PhaseSeconds seconds;
  // Steps that were completed in the parent and are absent from the state that the survivors went
  // on with.
  std::int64_t steps_lost = 0;
  bool complete = false;  // the first operation of the view has completed

  // Used inside the sidecar alone, to count steps_lost; not written to JSON.
  std::uint64_t steps_before = 0;   // the most that any worker of the parent is known to have done
  std::uint64_t steps_resumed = 0;  // completed steps that the view goes on from, as a worker said

  friend bool operator==(const Rebuild&, const Rebuild&) = default;
};

// An entry of `rebuilds` in /status, and what a ViewReport carries. Every phase is shown, as 0
// where it is not known.
nlohmann::json ToJson(const Rebuild& rebuild);
nlohmann::json ToJson(const PhaseSeconds& seconds);
// nullopt: the JSON has no epoch, so it is no rebuild. Other fields that are missing, or of another
// type, keep their defaults.
std::optional<Rebuild> RebuildFromJson(const nlohmann::json& json);
// Leaves out phases that this version doesn't know, and values that are no numbers.
PhaseSeconds PhaseSecondsFromJson(const nlohmann::json& json);

// The sum of the phases that follow one another. kStop is a part of kDecide, so it is not added.
double TotalSeconds(const PhaseSeconds& seconds);
// Keeps the longest time of each phase, because a phase ends when the slowest worker ends it.
void KeepLongest(const PhaseSeconds& seen, PhaseSeconds* longest);

}  // namespace ringmaster::job
