#include "operator/cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/fields/fields.h"
#include "operator/cli/table_layout.h"
#include "operator/inspection/job_conditions.h"
#include "operator/inspection/text_format.h"
#include "operator/inspection/troubles.h"

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
    if (inspection::TrueCondition(job, type)) return type;
  return "Pending";
}

std::string ViewCell(uint64_t epoch) { return epoch ? inspection::ViewName(epoch) : "-"; }

// The newest that a worker tells of. None does after the end of the job.
std::string StepOf(const Json& job) {
  std::optional<uint64_t> step;
  for (const Json& pod : fields::ListAt(job, "/status/pods"))
    for (const Json& worker : fields::List(pod, "workers"))
      step = std::max(step.value_or(0), fields::Unsigned(worker, "step"));
  return step ? std::to_string(*step) : "-";
}

Row JobHead(bool namespaces) {
  Row head = {"JOB", "STATE", "PODS", "WORKERS", "VIEW", "STEP", "LAST CHANGE"};
  if (namespaces) head.insert(head.begin(), "NAMESPACE");
  return head;
}

// A job that no operator has seen yet has no status.
std::string CountOr0(const Json& job, const char* pointer) {
  const std::string cell = Cell(job, pointer);
  return cell == "-" ? "0" : cell;
}

Row JobRow(const Json& job, const std::string& state, bool namespaces) {
  Row row = {Cell(job, "/metadata/name"),
             state.empty() ? StateOf(job) : state,
             CountOr0(job, "/status/replicaStatuses/Worker/active") + "/" +
                 Cell(job, "/spec/worker/replicas"),
             CountOr0(job, "/status/worldSize"),
             ViewCell(fields::Unsigned(fields::Member(job, "status"), "epoch")),
             StepOf(job),
             Cell(job, "/status/lastRebuild/reason")};
  if (namespaces) row.insert(row.begin(), Cell(job, "/metadata/namespace"));
  return row;
}

// One row for each worker; a pod without workers has one row.
void PodRows(const Json& pod, bool wide, std::vector<Row>* rows) {
  std::string name = Cell(pod, "/name");
  if (fields::Flag(pod, "coordinator")) name += " (coordinator)";
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
  const Json& workers = fields::List(pod, "workers");
  if (workers.empty()) add({"-", "-", "-", "-"});
  for (const Json& worker : workers) {
    add({fields::Flag(worker, "standby") ? "standby" : Cell(worker, "/slot"),
         fields::Integer(worker, "rank", -1) < 0 ? "-" : Cell(worker, "/rank"),
         Cell(worker, "/step"), Cell(worker, "/pid")});
    common = {"", "", ""};
  }
}

// Lines about the job's problems; empty if there are none.
std::string TroubleLines(const Json& job, const TableColumns& columns) {
  const auto troubles = inspection::TroublesOf(job);
  const std::string name = (columns.namespaces ? Cell(job, "/metadata/namespace") + "/" : "") +
                           Cell(job, "/metadata/name");
  std::string text, also;
  for (const inspection::Trouble& trouble : troubles) {
    if (columns.pods || text.empty())
      text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", name,
                          inspection::TroubleText(trouble, columns.now));
    else
      also += (also.empty() ? "; also " : ", ") + trouble.reason;
  }
  return text.empty() ? "" : text + also + "\n";
}

}  // namespace

std::string JobsTable(const std::vector<Json>& jobs, const TableColumns& columns) {
  if (jobs.empty()) return "no jobs\n";
  std::vector<Row> rows = {JobHead(columns.namespaces)};
  for (const Json& job : jobs) rows.push_back(JobRow(job, "", columns.namespaces));
  std::string text = Lay(rows), troubles;
  for (const Json& job : jobs) {
    if (columns.pods) {
      const bool none = fields::ListAt(job, "/status/pods").empty();
      text += "\n";
      text += none ? "no pods\n" : PodsTable(job, columns.wide);
    }
    troubles += TroubleLines(job, columns);
  }
  if (!troubles.empty()) text += "\n";
  return text + troubles;
}

std::string PodsTable(const Json& job, bool wide) {
  Row head = {"POD", "PHASE", "STATE", "SLOT", "RANK", "STEP", "PID"};
  if (wide) head.insert(head.end(), {"NODE", "VIEW", "UID"});
  std::vector<Row> rows = {head};
  for (const Json& pod : fields::ListAt(job, "/status/pods")) PodRows(pod, wide, &rows);
  return Lay(rows);
}

std::string WatchTable::Row(const Json& job, const std::string& state) {
  std::vector<cli::Row> rows = {JobHead(namespaces_), JobRow(job, state, namespaces_)};
  const bool first = widths_.empty();
  widths_.resize(rows[0].size());
  for (const cli::Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
  if (!first) rows.erase(rows.begin());
  return Lay(rows, widths_);
}

std::string WatchKey(const Json& job, const std::string& state) {
  Json counted = job;
  // Steps must not count as a change.
  if (counted.contains("status")) counted["status"].erase("pods");
  std::string key;
  for (const std::string& cell : JobRow(counted, state, true)) key += cell + "\n";
  return key;
}

}  // namespace ringmaster::cli
