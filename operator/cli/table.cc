#include "operator/cli/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "operator/cli/job_run.h"
#include "operator/cli/text_format.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using Row = std::vector<std::string>;

std::string Cell(const Json& object, const char* pointer) {
  Json::json_pointer at(pointer);
  if (!object.contains(at)) return "-";
  const Json& value = object[at];
  if (value.is_string()) return value.get<std::string>().empty() ? "-" : value.get<std::string>();
  return value.is_null() ? "-" : value.dump();
}

std::string StateOf(const Json& job) {
  std::string state = Cell(job, "/status/state");
  if (state != "-") return state;
  for (const char* type :
       {"Succeeded", "Failed", "Suspended", "Rebuilding", "Running", "Scheduled", "Created"})
    if (TrueCondition(job, type)) return type;
  return "Pending";
}

std::string ViewCell(uint64_t epoch) { return epoch ? ViewName(epoch) : "-"; }

std::string Lay(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text += std::string(widths[i] - row[i].size() + 3, ' ');
    }
    text += "\n";
  }
  return text;
}

uint64_t StepOf(const Json& job) {
  uint64_t step = 0;
  for (const Json& pod : job["status"].value("pods", Json::array()))
    for (const Json& worker : pod.value("workers", Json::array()))
      step = std::max(step, worker.value("step", uint64_t{0}));
  return step;
}

Row JobRow(const Json& job) {
  return {
      Cell(job, "/metadata/name"),
      StateOf(job),
      Cell(job, "/status/replicaStatuses/Worker/active") + "/" + Cell(job, "/spec/worker/replicas"),
      Cell(job, "/status/worldSize"),
      ViewCell(fields::Unsigned(fields::Member(job, "status"), "epoch")),
      std::to_string(StepOf(job)),
      Cell(job, "/status/lastRebuild/reason")};
}

// One row for each worker; a pod without any has a row of its own.
void PodRows(const Json& pod, bool wide, std::vector<Row>* rows) {
  std::string name = Cell(pod, "/name");
  if (pod.value("coordinator", false)) name += " (coordinator)";
  Row common = {name, Cell(pod, "/phase"), Cell(pod, "/state")};
  auto add = [&](Row workers) {
    Row row = common;
    row.insert(row.end(), workers.begin(), workers.end());
    if (wide) {
      row.push_back(Cell(pod, "/node"));
      row.push_back(ViewCell(fields::Unsigned(pod, "epoch")));
      row.push_back(Cell(pod, "/uid"));
    }
    rows->push_back(row);
  };
  if (pod["workers"].empty()) add({"-", "-", "-", "-"});
  for (const Json& worker : pod["workers"]) {
    add({worker.value("standby", false) ? "standby" : Cell(worker, "/slot"), Cell(worker, "/rank"),
         Cell(worker, "/step"), Cell(worker, "/pid")});
    common = {"", "", ""};
  }
}

}  // namespace

std::string JobsTable(const std::vector<Json>& jobs, bool pods, bool wide) {
  if (jobs.empty()) return "no jobs\n";
  std::vector<Row> rows = {{"JOB", "STATE", "PODS", "WORKERS", "VIEW", "STEP", "LAST CHANGE"}};
  for (const Json& job : jobs) rows.push_back(JobRow(job));
  std::string text = Lay(rows);
  if (!pods) return text;
  for (const Json& job : jobs) {
    Row head = {"POD", "PHASE", "STATE", "SLOT", "RANK", "STEP", "PID"};
    if (wide) head.insert(head.end(), {"NODE", "VIEW", "UID"});
    rows = {head};
    for (const Json& pod : job["status"].value("pods", Json::array())) PodRows(pod, wide, &rows);
    text += "\n" + Lay(rows);
  }
  return text;
}

}  // namespace ringmaster::cli
