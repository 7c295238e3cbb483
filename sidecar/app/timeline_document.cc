#include "sidecar/app/timeline_document.h"

#include <nlohmann/json.hpp>

#include "sidecar/app/status_document.h"

namespace ringmaster::app {
namespace {

using nlohmann::json;

// The row of this sidecar: above all ranks.
constexpr int kSidecarProcess = 1'000'000;

json Named(const char* what, int process, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", 0}, {"args", {{"name", name}}}};
}

std::string NameOf(const SidecarOptions& options, const WorkerTimeline& worker) {
  std::string name =
      worker.rank < 0 ? "in no view" : std::string("rank ") + std::to_string(worker.rank);
  name += ": " + options.pod_name;
  return options.slots > 1 ? name + "/" + std::to_string(worker.slot) : name;
}

// One after the other, as docs/contracts.md says; `stop` runs inside `decide`.
std::string PhasesOf(const job::Rebuild& rebuild) {
  std::string text;
  double at = static_cast<double>(rebuild.at_unix_ms) * 1000;
  const auto known = [&](const char* phase) {
    const auto found = rebuild.seconds.find(phase);
    return found == rebuild.seconds.end() ? 0.0 : found->second * 1e6;
  };
  at -= known(job::kDetect);
  for (const char* phase : job::kPhases) {
    const double took = known(phase);
    if (phase == std::string(job::kStop) || took <= 0) continue;
    text += ",\n" + json({{"ph", "X"},
                          {"name", phase},
                          {"pid", kSidecarProcess},
                          {"tid", 0},
                          {"ts", at},
                          {"dur", took},
                          {"args",
                           {{"view", rebuild.epoch},
                            {"reason", rebuild.reason},
                            {"workers", rebuild.world_size},
                            {"stepsLost", rebuild.steps_lost}}}})
                        .dump();
    at += took;
  }
  return text;
}

json About(const TimelineInput& in) {
  json workers = json::array(), missing = json::array();
  for (const WorkerTimeline& worker : in.gathering.workers()) {
    json entry = {{"slot", worker.slot}, {"incarnation", worker.incarnation}};
    entry["rank"] = worker.rank;
    if (worker.missing.empty()) {
      entry["process"] = worker.process;
      workers.push_back(std::move(entry));
    } else {
      entry["why"] = worker.missing;
      missing.push_back(std::move(entry));
    }
  }
  const SidecarOptions& options = in.options;
  json about = SidecarIdentity(options);
  about["coordinator"] = in.coordinator;
  about["machine"] = options.boot_id;
  about["workers"] = std::move(workers);
  about["missing"] = std::move(missing);
  return about;
}

}  // namespace

// The texts of the workers are put in as they are: to read them all would hold up the loop.
std::string TimelineDocument(const TimelineInput& in) {
  std::string text =
      "{\"displayTimeUnit\":\"ms\",\n\"ringmaster\":" + About(in).dump() +
      ",\n\"traceEvents\":[\n" +
      Named("process_name", kSidecarProcess,
            "changes of the view, as the sidecar of " + in.options.pod_name + " saw them")
          .dump();
  text += ",\n" + Named("thread_name", kSidecarProcess, "rebuilds").dump();
  for (const job::Rebuild& rebuild : in.rebuilds) {
    const auto lasted = static_cast<int64_t>(job::TotalSeconds(rebuild.seconds) * 1000);
    if (rebuild.at_unix_ms + lasted >= in.since_unix_ms) text += PhasesOf(rebuild);
  }
  for (const WorkerTimeline& worker : in.gathering.workers()) {
    if (!worker.missing.empty()) continue;
    text += ",\n" + Named("process_name", worker.process, NameOf(in.options, worker)).dump();
    text += ",\n" +
            json({{"ph", "M"},
                  {"name", "process_sort_index"},
                  {"pid", worker.process},
                  {"tid", 0},
                  {"args", {{"sort_index", worker.process}}}})
                .dump() +
            worker.text;
  }
  return text + "\n]}\n";
}

}  // namespace ringmaster::app
