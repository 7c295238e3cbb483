#include "sidecar/app/status_document.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "common/membership/view_json.h"
#include "sidecar/app/stalls.h"

namespace ringmaster::app {
namespace {

using nlohmann::json;

const char* PodState(const StatusInput& in) {
  if (in.finishing) return in.processes.AnyLiving() ? "Finishing" : "Finished";
  if (in.leaving) return "Draining";
  if (in.member.current() == nullptr) return "Waiting";
  if (in.member.role() != membership::Role::kMember || in.installed == nullptr) return "Joining";
  if (!in.installed->train) return "Held";
  const auto& workers = in.processes.all();
  const bool rebuilding =
      in.member.changing() || std::any_of(workers.begin(), workers.end(), [&](const auto& worker) {
        return worker.views.sent() == in.installed->epoch &&
               worker.views.installed() < worker.views.sent();
      });
  return rebuilding ? "Rebuilding" : "Training";
}

const char* WorkerState(const StatusInput& in, const WorkerProcess& worker, int rank) {
  if (worker.standby()) return "standby";
  if (worker.stage.finished()) return "finished";
  if (worker.stage.left()) return "leaving";
  if (!worker.connection.greeted()) return "starting";
  if (rank < 0) return in.member.current() == nullptr ? "waiting" : "joining";
  return worker.views.installed() < in.installed->epoch ? "rebuilding" : "training";
}

json WorkerStatus(const StatusInput& in, const WorkerProcess& worker) {
  PodView view(in.options.pod_uid);
  view.Set(in.installed);
  const int rank = view.RankOf(worker);
  return {{"slot", worker.slot()},
          {"incarnation", worker.identity.incarnation()},
          {"pid", worker.identity.pid()},
          {"library", worker.library},
          {"rank", rank},
          {"state", WorkerState(in, worker, rank)},
          {"step", worker.figures.step()},
          {"times", job::ToJson(worker.figures.times())},
          {"standby", worker.standby()},
          {"takesState", worker.stage.takes_state()},
          {"connected", worker.connection.open()}};
}

json ProgressStatus(const StatusInput& in) {
  const Progress& progress = in.history.progress();
  const auto& workers = in.processes.all();
  json values = json::object();
  for (const auto& [name, value] : progress.Values(workers)) values[name] = value;
  return {{"step", progress.Step(workers)},
          {"values", std::move(values)},
          {"samplesPerSecond", progress.SamplesPerSecond()}};
}

}  // namespace

json SidecarIdentity(const SidecarOptions& options) {
  return {{"version", options.version},
          {"job",
           {{"namespace", options.job_namespace},
            {"name", options.job_name},
            {"uid", options.job_uid}}},
          {"pod", {{"name", options.pod_name}, {"uid", options.pod_uid}}}};
}

json StatusDocument(const StatusInput& in) {
  json workers = json::array(), exits = json::array(), rebuilds = json::array();
  json links = json::array();
  for (const WorkerProcess& worker : in.processes.all())
    workers.push_back(WorkerStatus(in, worker));
  for (const job::WorkerExit& exit : in.exits) exits.push_back(job::StatusJson(exit));
  for (const BrokenLink& link : in.broken_links)
    links.push_back({{"pod", link.pod}, {"breaks", link.breaks}, {"kept", link.kept}});
  const auto& changes = in.history.rebuilds().all();
  const std::size_t older = changes.size() - std::min(in.rebuilds, changes.size());
  for (std::size_t i = older; i < changes.size(); ++i) rebuilds.push_back(job::ToJson(changes[i]));
  const ViewPtr& view = in.member.current();
  json status = SidecarIdentity(in.options);
  status.update(
      {{"coordinator", in.member.is_coordinator()},
       {"state", PodState(in)},
       {"epoch", membership::EpochOf(view)},
       {"view", view ? membership::ToJson(*view) : json()},
       {"workers", std::move(workers)},
       {"missingSlots", in.processes.MissingSlots()},
       {"operatorConnected", in.operator_connected},
       {"progress", ProgressStatus(in)},
       {"stalls", job::ToJson(StallsIn(in.installed.get(), in.processes.all(), in.options.slots))},
       {"gpus", job::ToJson(in.gpus.All())},
       {"historySince", in.history.record().since_unix_ms()},
       {"brokenLinks", std::move(links)},
       {"exits", std::move(exits)},
       {"rebuilds", std::move(rebuilds)}});
  return status;
}

}  // namespace ringmaster::app
