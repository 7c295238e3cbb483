// What /status shows (docs/contracts.md, section 5).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/membership/view_json.h"
#include "sidecar/app/agent.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app {
namespace {

using nlohmann::json;

// samples/s are taken over this window.
constexpr std::chrono::seconds kSampleWindow{5};

}  // namespace

bool Agent::Ready() const {
  return installed_ != nullptr && installed_->train && table_.AllInstalled(installed_->epoch);
}

uint64_t Agent::Step() const {
  uint64_t step = highest_step_;
  for (const WorkerProcess& worker : table_.processes()) step = std::max(step, worker.step);
  return step;
}

void Agent::RememberProgress() {
  for (const WorkerProcess& worker : table_.processes()) {
    if (worker.standby()) continue;
    highest_step_ = std::max(highest_step_, worker.step);
    if (installed_ != nullptr && worker.installed == installed_->epoch)
      tracker_.SawStep(worker.step);
    for (const auto& [name, value] : worker.values) last_values_[name] = value;
  }
}

std::string Agent::State() const {
  if (finishing_) return table_.AnyLiving() ? "Finishing" : "Finished";
  if (draining_ || left_) return "Draining";
  if (member_.current() == nullptr) return "Waiting";
  if (member_.role() != membership::Role::kMember || installed_ == nullptr) return "Joining";
  if (!installed_->train) return "Held";
  const bool rebuilding =
      member_.changing() ||
      std::any_of(table_.processes().begin(), table_.processes().end(),
                  [this](const WorkerProcess& worker) {
                    return worker.sent == installed_->epoch && worker.installed < worker.sent;
                  });
  return rebuilding ? "Rebuilding" : "Training";
}

json Agent::WorkerStatus(const WorkerProcess& worker) const {
  int rank = -1;
  if (installed_ != nullptr && !worker.standby()) {
    rank = installed_->FindRank(self_.uid, static_cast<uint32_t>(worker.slot), worker.incarnation);
  }
  const char* state = "training";
  if (worker.standby()) {
    state = "standby";
  } else if (worker.finished) {
    state = "finished";
  } else if (worker.left) {
    state = "leaving";
  } else if (!worker.greeted) {
    state = "starting";
  } else if (rank < 0) {
    state = member_.current() == nullptr ? "waiting" : "joining";
  } else if (worker.installed < installed_->epoch) {
    state = "rebuilding";
  }
  return {{"slot", worker.slot},
          {"incarnation", worker.incarnation},
          {"pid", worker.pid},
          {"rank", rank},
          {"state", state},
          {"step", worker.step},
          {"standby", worker.standby()},
          {"connected", worker.connection != 0}};
}

json Agent::Status() const {
  json workers = json::array(), rebuilds = json::array(), values = json::object();
  for (const WorkerProcess& worker : table_.processes()) {
    workers.push_back(WorkerStatus(worker));
    for (const auto& [name, value] : worker.values) {
      if (!values.contains(name)) values[name] = value;
    }
  }
  for (const job::Rebuild& rebuild : rebuilds_.all()) rebuilds.push_back(job::ToJson(rebuild));
  for (const auto& [name, value] : last_values_) {
    if (!values.contains(name)) values[name] = value;
  }
  json exits = json::array();
  for (const job::WorkerExit& exit : exits_) exits.push_back(job::StatusJson(exit));
  const ViewPtr& view = member_.current();
  return {
      {"job",
       {{"namespace", options_.job_namespace},
        {"name", options_.job_name},
        {"uid", options_.job_uid}}},
      {"pod", {{"name", options_.pod_name}, {"uid", options_.pod_uid}}},
      {"coordinator", member_.is_coordinator()},
      {"state", State()},
      {"epoch", CurrentEpoch()},
      {"view", view ? membership::ToJson(*view) : json()},
      {"workers", std::move(workers)},
      {"missingSlots", table_.MissingSlots()},
      {"operatorConnected", operator_connected_},
      {"progress",
       {{"step", Step()}, {"values", std::move(values)}, {"samplesPerSecond", SamplesPerSecond()}}},
      {"exits", std::move(exits)},
      {"rebuilds", std::move(rebuilds)}};
}

void Agent::SampleProgress() {
  const SteadyTime now = outputs_.now();
  double total = 0;
  for (const WorkerProcess& worker : table_.processes()) {
    auto it = worker.values.find("samples");
    if (it != worker.values.end()) total += it->second;
    for (const auto& [name, value] : worker.values) metrics_->SetValue(name, value);
  }
  metrics_->SetStep(Step());
  if (!samples_.empty() && total < samples_.back().second) samples_.clear();  // a worker began anew
  if (samples_.empty() || now - samples_.back().first >= std::chrono::milliseconds(200))
    samples_.push_back({now, total});
  while (now - samples_.front().first > kSampleWindow) samples_.pop_front();
}

double Agent::SamplesPerSecond() const {
  if (samples_.size() < 2) return 0;
  const double seconds =
      std::chrono::duration<double>(samples_.back().first - samples_.front().first).count();
  return seconds > 0 ? (samples_.back().second - samples_.front().second) / seconds : 0;
}

}  // namespace ringmaster::app
