// The health of the GPU that a worker uses. The library watches it; its sidecar shows it in /status
// and in metrics and reports a GPU that fails to the operator, which drains the pod.
//
// A plain value that knows no socket and no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::job {

struct GpuHealth {
  int slot = -1;                      // of the worker that uses it; -1: not known
  std::string gpu;                    // its PCI bus id
  std::string failing;                // why it won't go on, for people; empty: it goes on
  std::vector<std::string> warnings;  // what people should know of a GPU that goes on
  bool throttled = false;             // the hardware slows it down to protect it
  std::optional<int> celsius;
  std::map<int, std::uint64_t> xids;  // errors of the driver since the worker began, by number

  friend bool operator==(const GpuHealth&, const GpuHealth&) = default;
};

// How many GPUs one pod reports, and how many numbers of Xids one GPU.
inline constexpr std::size_t kMostGpus = 64, kMostXids = 32;

nlohmann::json ToJson(const GpuHealth& health);
// Fields that are missing or of another type keep their defaults, and texts are cut.
GpuHealth GpuHealthFromJson(const nlohmann::json& json);
nlohmann::json ToJson(const std::vector<GpuHealth>& gpus);
// JSON that is no list gives an empty list.
std::vector<GpuHealth> GpusFromJson(const nlohmann::json& json);

// "GPU 0000:17:00.0 of worker 1"
std::string NameOf(const GpuHealth& health);
// "GPU 0000:17:00.0 of worker 1 fails: Xid 79, it has fallen off the bus"; of one that goes on its
// warnings; empty: all is well.
std::string Describe(const GpuHealth& health);

}  // namespace ringmaster::job
