#include "collectives/elastic/rebuild_text.h"

#include <nlohmann/json.hpp>

#include "common/job/rebuild.h"

namespace ringmaster::elastic {

std::string RebuildText(const engine::RebuildTimes& times) {
  if (times.epoch == 0) return "";
  // Detection and decision are phases of the sidecars: they are in a sidecar's /status and in the
  // job's status.
  const job::PhaseSeconds seconds = {{job::kStop, times.stop},
                                     {job::kConnect, times.connect},
                                     {job::kRedo, times.redo},
                                     {job::kResume, times.resume}};
  return nlohmann::json(
             {{"epoch", times.epoch}, {"reason", times.reason}, {"seconds", job::ToJson(seconds)}})
      .dump();
}

}  // namespace ringmaster::elastic
