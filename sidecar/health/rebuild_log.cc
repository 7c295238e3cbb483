#include "sidecar/health/rebuild_log.h"

#include <nlohmann/json.hpp>

namespace ringmaster::health {

nlohmann::json ToJson(const Rebuild& rebuild) {
  nlohmann::json seconds = nlohmann::json::object();
  for (const char* phase : kPhases) {
    auto it = rebuild.seconds.find(phase);
    seconds[phase] = it == rebuild.seconds.end() ? 0.0 : it->second;
  }
  return {{"epoch", rebuild.epoch},          {"parent", rebuild.parent},
          {"reason", rebuild.reason},        {"planned", rebuild.planned},
          {"atUnixMs", rebuild.at_unix_ms},  {"worldSize", rebuild.world_size},
          {"members", rebuild.members},      {"left", rebuild.left},
          {"joined", rebuild.joined},        {"seconds", std::move(seconds)},
          {"stepsLost", rebuild.steps_lost}, {"complete", rebuild.complete}};
}

}  // namespace ringmaster::health
