// A tensor that some ranks asked for long ago and that others have not asked for. The library
// notices it; its sidecar shows it in /status and reports it to the operator, which tells people.
//
// A plain value that knows no socket and no clock.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringmaster::job {

struct Stall {
  std::string tensor;   // of the tensors that wait for the same ranks, the one that waits longest
  int tensors = 1;      // how many tensors wait for these ranks
  int process_set = 0;  // 0: all ranks
  int asked = 0;        // how many ranks have asked for it
  std::vector<int> waiting;  // ranks that have asked, as far as the sender names them; ascending
  std::vector<int> missing;  // ranks that have not asked
  std::vector<int> in_shutdown;   // those of `missing` that have called the library's shutdown()
  std::vector<std::string> pods;  // one for each of `missing`; empty until the sidecar adds them
  std::int64_t waited_ms = 0;

  friend bool operator==(const Stall&, const Stall&) = default;
};

// How many stalls are reported at once. There is seldom more than one.
inline constexpr std::size_t kMostStalls = 8;

nlohmann::json ToJson(const std::vector<Stall>& stalls);
// JSON that is no list gives an empty list. Fields that are missing or of another type keep their
// defaults.
std::vector<Stall> StallsFromJson(const nlohmann::json& json);

// "'grad' and 3 more: asked for by ranks 0, 2, not by rank 1 (digits-worker-1, in shutdown())".
// Where many ranks have asked, their number and the first of them: "asked for by 40 ranks (0, 1, 2,
// 3, ...)".
std::string Describe(const Stall& stall);

}  // namespace ringmaster::job
